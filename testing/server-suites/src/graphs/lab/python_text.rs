//! JSON values in the text that Python makes of them, for graphs whose originals write such text into their state.
//!
//! The fields of an object are in the order of our map, which need not be that of the request.

use serde_json::Value as Json;

/// Returns what Python's `repr` prints.
pub(super) fn repr(value: &Json) -> String {
    text(value, &REPR)
}

/// Returns what Python's `json.dumps` prints.
pub(super) fn dumps(value: &Json) -> String {
    text(value, &DUMPS)
}

/// How one of the two prints what they print differently.
struct Notation {
    null: &'static str,
    truth: [&'static str; 2],
    quote: fn(&str) -> String,
}

const REPR: Notation = Notation {
    null: "None",
    truth: ["False", "True"],
    quote: quote_repr,
};

const DUMPS: Notation = Notation {
    null: "null",
    truth: ["false", "true"],
    quote: quote_json,
};

fn text(value: &Json, notation: &Notation) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match value {
        Json::Null => notation.null.to_owned(),
        Json::Bool(is_true) => notation.truth[usize::from(*is_true)].to_owned(),
        Json::Number(number) => number.to_string(),
        Json::String(string) => (notation.quote)(string),
        Json::Array(items) => {
            let items = items.iter().map(|item| text(item, notation));
            format!("[{}]", list(items.collect()))
        }
        Json::Object(fields) => {
            let field = |(name, value): (&String, &Json)| {
                format!("{}: {}", (notation.quote)(name), text(value, notation))
            };
            format!("{{{}}}", list(fields.iter().map(field).collect()))
        }
    }
}

/// Python prefers single quotes, and takes double ones for a text that has only single ones inside.
fn quote_repr(string: &str) -> String {
    let quote = match string.contains('\'') && !string.contains('"') {
        true => '"',
        false => '\'',
    };
    let mut quoted = String::from(quote);
    for character in string.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str("\\\\"),
            same if same == quote => quoted.extend(['\\', same]),
            other => quoted.push(other),
        }
    }
    quoted.push(quote);
    quoted
}

fn quote_json(string: &str) -> String {
    Json::from(string).to_string()
}

#[test]
fn values_are_printed_as_python_prints_them() {
    use serde_json::json;
    let value = json!({ "a": [1, true, null, "it's"], "b": "x\n" });
    assert_eq!(
        repr(&value),
        r#"{'a': [1, True, None, "it's"], 'b': 'x\n'}"#
    );
    assert_eq!(
        dumps(&value),
        r#"{"a": [1, true, null, "it's"], "b": "x\n"}"#
    );
}
