//! References within a document.

use percent_encoding::percent_decode_str;
use serde_json::Value as Json;

use super::DocumentError;

/// Checks that every reference stays within the document. A schema may contain itself; a reference must not lead back to
/// itself.
pub(super) fn check(document: &Json) -> Result<(), DocumentError> {
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Json::Array(items) => open.extend(items),
            Json::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Json::as_str) {
                    match follow(document, reference) {
                        // A broken reference may be in an unused part, such as an example. Where it is needed, `follow` reports
                        // it.
                        Ok(_) | Err(DocumentError::Nowhere(_)) => {}
                        Err(other) => return Err(other),
                    }
                }
                open.extend(fields.values());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Follows a reference, through others, to its target.
pub(super) fn follow<'a>(document: &'a Json, reference: &str) -> Result<&'a Json, DocumentError> {
    let mut next = reference.to_owned();
    for _ in 0..HOPS_MAX {
        // Limited because the same reference is followed for every call that uses it.
        if next.len() > REFERENCE_BYTES_MAX {
            return Err(DocumentError::TooMuch("2000 bytes in a reference"));
        }
        let Some(pointer) = next.strip_prefix('#') else {
            return Err(DocumentError::Remote(next));
        };
        // The pointer is the fragment of a URL, so some tools percent-encode it.
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        let Some(found) = document.pointer(&pointer) else {
            return Err(DocumentError::Nowhere(reference.to_owned()));
        };
        match found.get("$ref").and_then(Json::as_str) {
            Some(further) => next = further.to_owned(),
            None => return Ok(found),
        }
    }
    Err(DocumentError::Loop(reference.to_owned()))
}

const HOPS_MAX: usize = 32;
const REFERENCE_BYTES_MAX: usize = 2_000;
