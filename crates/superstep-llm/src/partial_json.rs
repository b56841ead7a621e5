//! Reads what is complete in a JSON text that is cut off or damaged.
//!
//! A model that reaches its token limit stops in the middle of a list. What came before is paid for and often useful. The
//! reader keeps every complete value and drops the one that is cut: a half object in a list is not an object, and a number at
//! the very end may miss digits. Text around the JSON, code fences, trailing commas and raw line breaks in strings are accepted,
//! because small models write them.
//!
//! ```
//! use serde_json::json;
//!
//! let cut = r#"{"claims": [{"claim": "One queue."}, {"claim": "Two mach"#;
//! let read = superstep_llm::partial_json::read(cut).unwrap();
//! assert_eq!(read.value, json!({ "claims": [{ "claim": "One queue." }] }));
//! assert!(!read.is_complete);
//! ```

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// What was read of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct PartialJson {
    /// The object or list, without what is incomplete.
    pub value: Json,
    /// Whether the text has all of it.
    pub is_complete: bool,
    /// Field of the outermost object in which the text was cut off, if it was cut off in one.
    pub cut_in: Option<String>,
}

/// Items of a list, as far as they could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialItems<T> {
    /// The items that are complete and fit `T`, in order.
    pub items: Vec<T>,
    /// Number of complete items that do not fit `T`.
    pub unfit: usize,
}

/// Reads the first object of a text, or its first list of objects. Brackets and braces of the text around it are passed over.
/// If there is no such object, returns what the first bracket begins; `None` if there is no bracket.
pub fn read(text: &str) -> Option<PartialJson> {
    let first = text.find(['{', '['])?;
    let (read, mut end) = read_at(text, first)?;
    if read.is_meant() || is_list_of_objects(&text[first..]) {
        return Some(read);
    }
    for _ in 0..ATTEMPTS_MAX {
        // Continues where the last attempt ended, so that the attempts together read the text about once.
        let Some(next) = text.get(end..).and_then(|rest| rest.find('{')) else {
            break;
        };
        let Some((other, other_end)) = read_at(text, end + next) else {
            break;
        };
        if other.is_meant() {
            return Some(other);
        }
        end = other_end;
    }
    Some(read)
}

/// Reads the object or list that begins at `at`. Also returns where reading ended, which is behind `at`.
fn read_at(text: &str, at: usize) -> Option<(PartialJson, usize)> {
    let mut reader = Reader {
        text: text.as_bytes(),
        at,
        whole: text,
        cut_in: None,
    };
    let (value, is_complete) = match reader.value(0) {
        Progress::Whole(value) => (value, true),
        Progress::Cut(value) => (value?, false),
    };
    let read = PartialJson {
        value,
        is_complete,
        cut_in: reader.cut_in,
    };
    Some((read, reader.at))
}

/// Returns whether a text begins with a list whose first item is an object.
fn is_list_of_objects(text: &str) -> bool {
    let inner = text.trim_start_matches(|c: char| c == '[' || c.is_ascii_whitespace());
    text.starts_with('[') && inner.starts_with('{')
}

impl PartialJson {
    /// Returns whether this is an object, and not a brace of the text around it.
    fn is_meant(&self) -> bool {
        let fields = self.value.as_object();
        fields.is_some_and(|fields| self.is_complete || self.cut_in.is_some() || !fields.is_empty())
    }

    /// Returns the items of the list in a field of the object. `None` if there is no such list.
    pub fn items<T: DeserializeOwned>(&self, field: &str) -> Option<PartialItems<T>> {
        items_of(self.value.get(field)?)
    }

    /// Returns the items of the value itself. `None` if it is not a list.
    pub fn own_items<T: DeserializeOwned>(&self) -> Option<PartialItems<T>> {
        items_of(&self.value)
    }
}

fn items_of<T: DeserializeOwned>(list: &Json) -> Option<PartialItems<T>> {
    let list = list.as_array()?;
    let items: Vec<T> = list
        .iter()
        .filter_map(|item| T::deserialize(item).ok())
        .collect();
    let unfit = list.len() - items.len();
    Some(PartialItems { items, unfit })
}

/// How far a value could be read.
enum Progress {
    Whole(Json),
    /// The text ended or became invalid: what is complete of the value, if that is worth keeping.
    Cut(Option<Json>),
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    whole: &'a str,
    cut_in: Option<String>,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Progress {
        self.skip_space();
        match self.peek() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => Progress::Cut(None),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => match self.string() {
                Some(text) => Progress::Whole(Json::String(text)),
                None => Progress::Cut(None),
            },
            _ => self.plain(),
        }
    }

    fn object(&mut self, depth: usize) -> Progress {
        self.at += 1;
        let mut fields = Map::new();
        loop {
            self.skip_space_and_commas();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Progress::Whole(Json::Object(fields));
                }
                Some(b'"') => {}
                _ => return Progress::Cut(Some(Json::Object(fields))),
            }
            let name = self.string();
            self.skip_space();
            let (Some(name), Some(b':')) = (name, self.peek()) else {
                return Progress::Cut(Some(Json::Object(fields)));
            };
            self.at += 1;
            match self.value(depth + 1) {
                Progress::Whole(value) => {
                    fields.insert(name, value);
                }
                Progress::Cut(value) => {
                    if depth == 0 {
                        self.cut_in = Some(name.clone());
                    }
                    if let Some(value) = value {
                        fields.insert(name, value);
                    }
                    return Progress::Cut(Some(Json::Object(fields)));
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Progress {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_space_and_commas();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Progress::Whole(Json::Array(items));
            }
            match self.value(depth + 1) {
                Progress::Whole(value) => items.push(value),
                // A list in a list keeps its complete items; half an object is dropped.
                Progress::Cut(value) => {
                    items.extend(value.filter(Json::is_array));
                    return Progress::Cut(Some(Json::Array(items)));
                }
            }
        }
    }

    /// Reads a string. Returns `None` if it does not end or has an invalid escape.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            match self.text.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        let raw = self.whole.get(start..=at)?;
        if let Ok(text) = serde_json::from_str(raw) {
            return Some(text);
        }
        // JSON requires escapes for line breaks and tabs; models forget them.
        let mut escaped = String::with_capacity(raw.len());
        for char in raw.chars() {
            match char {
                '\n' => escaped.push_str("\\n"),
                '\r' => escaped.push_str("\\r"),
                '\t' => escaped.push_str("\\t"),
                other => escaped.push(other),
            }
        }
        serde_json::from_str(&escaped).ok()
    }

    /// Reads a number, `true`, `false` or `null`.
    fn plain(&mut self) -> Progress {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            self.at += 1;
        }
        // At the end of the text, more digits may be missing.
        let is_ended = self.peek().is_some();
        let read = self.whole.get(start..self.at).filter(|_| is_ended);
        match read.and_then(|plain| serde_json::from_str(plain).ok()) {
            Some(value) => Progress::Whole(value),
            None => Progress::Cut(None),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn skip_space_and_commas(&mut self) {
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',')
        {
            self.at += 1;
        }
    }
}

/// Deeper nesting counts as cut off there: the reader calls itself for each level.
const DEPTH_MAX: usize = 64;
/// Limits how often a string that does not end is searched for its end.
const ATTEMPTS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Json {
        read(text).map_or(Json::Null, |read| read.value)
    }

    #[test]
    fn complete_items_of_a_cut_list_are_kept_and_the_half_one_is_dropped() {
        let whole = json!({ "claims": [
            { "claim": "One \"queue\".", "line": 3 }, { "claim": "Zwei Schlüssel – ja", "line": 12 }
        ], "note": "end" });
        let text = whole.to_string();
        assert_eq!(
            read(&text).unwrap(),
            PartialJson {
                value: whole,
                is_complete: true,
                cut_in: None
            }
        );
        let second = text.find("{\"claim\":\"Zwei").unwrap();
        let one = json!([{ "claim": "One \"queue\".", "line": 3 }]);
        // Cut anywhere in the second claim, the first is left and whole.
        let end = text.find("],\"note").unwrap();
        for at in (second..end).filter(|at| text.is_char_boundary(*at)) {
            let read = read(&text[..at]).unwrap();
            assert_eq!(read.value["claims"], one, "{}", &text[..at]);
            assert!(!read.is_complete);
            assert_eq!(read.cut_in.as_deref(), Some("claims"));
        }
    }

    #[test]
    fn every_prefix_is_read_without_inventing_anything() {
        let whole = json!({ "a": [1, 20, [300, "x\\\"y"], { "b": null }], "c": { "d": true }, "e": "\u{1F980}" });
        let text = whole.to_string();
        for at in (1..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let read = read(&text[..at]).unwrap();
            assert_eq!(read.is_complete, at == text.len());
            let kept = read.value["a"].as_array().cloned().unwrap_or_default();
            for (item, original) in kept.iter().zip(whole["a"].as_array().unwrap()) {
                let is_prefix = match (item.as_array(), original.as_array()) {
                    (Some(item), Some(original)) => original.starts_with(item),
                    _ => item == original,
                };
                assert!(is_prefix, "{} gave {item}", &text[..at]);
            }
        }
    }

    #[test]
    fn what_small_models_write_around_and_into_json_is_accepted() {
        let expected = json!({ "a": [1, 2], "b": "x\ny" });
        for text in [
            "Here it is:\n```json\n{\"a\": [1, 2], \"b\": \"x\\ny\"}\n```\nAnything else?",
            "{\"a\": [1, 2,], \"b\": \"x\ny\",}",
            "{\"a\":[1,2],\"b\":\"x\\ny\"} {\"a\":[]}",
        ] {
            let read = read(text).unwrap();
            assert_eq!(read.value, expected, "{text}");
            assert!(read.is_complete, "{text}");
        }
        assert_eq!(value("[1, 2, 3"), json!([1, 2]), "3 may be half of 30");
        assert_eq!(value("{\"a\": 12"), json!({}));
        assert_eq!(value("{\"a\": nul"), json!({}));
        assert_eq!(read("no JSON at all"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn brackets_before_the_object_are_passed_over() {
        let expected = json!({ "decisions": [{ "claim": "One queue." }] });
        for before in [
            "As asked [see notes]: ",
            "As asked [1]: ",
            "As asked [[notes]] {in short}: ",
            "{ [ ",
        ] {
            let text = format!("{before}{{\"decisions\": [{{\"claim\": \"One queue.\"}}]}}");
            let whole = read(&text).unwrap();
            assert_eq!(whole.value, expected, "{text}");
            assert!(whole.is_complete, "{text}");
            let cut = read(&text[..text.len() - 2]).unwrap();
            assert_eq!(cut.value, expected, "{text}");
            assert_eq!(cut.cut_in.as_deref(), Some("decisions"));
        }
        // A list of objects is not left for one of its objects.
        assert_eq!(value(r#"[{"a": 1}, {"b": {"c": 2"#), json!([{ "a": 1 }]));
        assert_eq!(value(r#"[{"a": nope, "b": {"c": 1}}]"#), json!([]));
        assert_eq!(value("[see notes]"), json!([]));
    }

    #[test]
    fn hostile_texts_end() {
        for text in [
            "[".repeat(1 << 20),
            "{\"a\":".repeat(1 << 18),
            format!("[\"{}", "\\".repeat(1 << 20)),
            "[,,,,,,".to_owned(),
            "[\"\\ud800\", 1]".to_owned(),
            "{\"a\" 1}".to_owned(),
            "[1e999999, 2]".to_owned(),
            "[\"\\".to_owned(),
            "{ ".repeat(1 << 19),
            "{\"\\".repeat(1 << 19),
        ] {
            let read = read(&text);
            assert!(read.is_none_or(|read| !read.is_complete));
        }
    }

    #[test]
    fn items_that_do_not_fit_are_counted() {
        let read = read(r#"{"n": [1, "two", 3, {"#).unwrap();
        let items = read.items::<u32>("n").unwrap();
        assert_eq!((items.items, items.unfit), (vec![1, 3], 1));
        assert_eq!(read.items::<u32>("m"), None);
    }
}
