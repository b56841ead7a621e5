//! Shortens answers to a size that the state can hold.

use serde_json::{Map, Value as Json, json};

/// Shortens a value, which stays valid JSON. Sets `truncated` if something was cut and the value is an object.
pub(super) fn cut(value: Json) -> Json {
    let mut cutter = Cutter {
        bytes_left: BYTES_MAX,
        was_cut: false,
    };
    let mut kept = cutter.cut(value, 0);
    if cutter.was_cut
        && let Some(fields) = kept.as_object_mut()
    {
        fields.insert("truncated".to_owned(), json!(true));
    }
    kept
}

struct Cutter {
    bytes_left: usize,
    was_cut: bool,
}

impl Cutter {
    fn cut(&mut self, value: Json, depth: usize) -> Json {
        if depth > DEPTH_MAX || self.bytes_left == 0 {
            self.was_cut = true;
            return Json::Null;
        }
        match value {
            Json::Array(items) => {
                let mut kept = Vec::new();
                for item in items {
                    if self.bytes_left == 0 {
                        self.was_cut = true;
                        break;
                    }
                    kept.push(self.cut(item, depth + 1));
                }
                Json::Array(kept)
            }
            Json::Object(fields) => {
                let mut kept = Map::new();
                for (name, value) in fields {
                    self.take(name.len());
                    kept.insert(name, self.cut(value, depth + 1));
                }
                Json::Object(kept)
            }
            Json::String(text) => {
                let (cut, was_cut) = match text.char_indices().nth(TEXT_CHARS) {
                    Some((end, _)) => (text[..end].to_owned(), true),
                    None => (text, false),
                };
                self.was_cut |= was_cut;
                self.take(cut.len());
                Json::String(cut)
            }
            plain => {
                self.take(8);
                plain
            }
        }
    }

    fn take(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes + 4);
    }
}

const TEXT_CHARS: usize = 4_000;
pub(super) const BYTES_MAX: usize = 256 * 1024;
const DEPTH_MAX: usize = 60;
