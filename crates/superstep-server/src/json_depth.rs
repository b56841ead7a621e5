//! How deeply the JSON of a request may be nested.
//!
//! The parser of JSON stops at 128 levels. What is stored from a request is wrapped in a few more before it is read again, and must
//! not pass that limit then.

use serde_json::Value as Json;

/// Deepest nesting of objects and lists.
pub(crate) const DEPTH_MAX: usize = 100;

/// What the sender of a text that is too deep reads.
pub(crate) const TOO_DEEP: &str = "The JSON is nested more than 100 levels deep";

/// Whether a JSON text is nested too deeply. Looks at brackets only, so it needs no stack; a text that is not JSON is for the parser
/// to refuse.
pub(crate) fn is_too_deep(text: &[u8]) -> bool {
    let (mut depth, mut is_in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' if !is_in_string => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return true;
                }
            }
            b'}' | b']' if !is_in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Reads JSON that is inside of a text of a request; `None` if it is not JSON, or too deep.
pub(crate) fn read_inner(text: &str) -> Option<Json> {
    match is_too_deep(text.as_bytes()) {
        true => None,
        false => serde_json::from_str(text).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_outside_of_texts() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!is_too_deep(nested(DEPTH_MAX).as_bytes()));
        assert!(is_too_deep(nested(DEPTH_MAX + 1).as_bytes()));
        let wide = format!("[{}]", vec!["[{}]"; 1_000].join(","));
        assert!(!is_too_deep(wide.as_bytes()));
        let text = format!(r#"{{"a": "\"{}"}}"#, "[".repeat(1_000));
        assert!(!is_too_deep(text.as_bytes()));
        let after = format!(r#"["\\", {}]"#, nested(DEPTH_MAX));
        assert!(is_too_deep(after.as_bytes()));
        assert!(read_inner(&nested(DEPTH_MAX + 1)).is_none());
        assert!(read_inner(&nested(DEPTH_MAX)).is_some());
    }
}
