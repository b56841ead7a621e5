//! Digest of a tool and its arguments, which identifies what was decided.
//!
//! Uses a cryptographic hash because the arguments come from a model that may have read an attacker's text: with a fast hash
//! the attacker could make a harmless call and a harmful one collide.

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// Returns the digest of a call: lowercase hex SHA-256, equal for the same tool and arguments in any field order.
pub fn digest(tool: &str, args: &Json) -> String {
    hash(&["superstep.call.v1", tool, &canonical(args)])
}

/// Hashes several texts, length-prefixed, so different splits of the same text give different hashes.
pub(crate) fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let hash = hasher.finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Serializes JSON with sorted fields and no spaces.
///
/// Sorts explicitly, because a dependency can enable the `serde_json` feature that keeps insertion order.
pub(crate) fn canonical(json: &Json) -> String {
    match json {
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Json::from(name.as_str()), canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_fields_does_not_matter_and_everything_else_does() {
        let one: Json =
            serde_json::from_str(r#"{"b": [1, {"d": 2, "c": null}], "a": "x"}"#).unwrap();
        let same: Json =
            serde_json::from_str(r#"{"a": "x", "b": [1, {"c": null, "d": 2}]}"#).unwrap();
        assert_eq!(canonical(&one), r#"{"a":"x","b":[1,{"c":null,"d":2}]}"#);
        assert_eq!(digest("t", &one), digest("t", &same));
        assert_ne!(digest("t", &one), digest("u", &one));
        assert_ne!(digest("t", &json!([1, 2])), digest("t", &json!([2, 1])));
        assert_ne!(hash(&["a", "bc"]), hash(&["ab", "c"]));
    }
}
