//! Shows where two JSON values differ, and the difference of long texts line by line.

use serde_json::Value as Json;
use superstep::diff::{PathSegment, value_changes};

/// A place where two values differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it is, such as `results[0].markdown`.
    pub path: String,
    /// Lines to print: `- …` only in the first value, `+ …` only in the second.
    pub lines: Vec<String>,
}

/// Returns every place where two values differ, as [`value_changes`] finds them.
pub fn differences(path: &str, one: Option<&Json>, other: Option<&Json>) -> Vec<Difference> {
    let changes = value_changes(one, other).into_iter();
    changes
        .map(|change| Difference {
            path: shown_path(path, &change.path),
            lines: shown_difference(change.before.as_ref(), change.after.as_ref()),
        })
        .collect()
}

fn shown_path(start: &str, path: &[PathSegment]) -> String {
    let mut shown = start.to_owned();
    for segment in path {
        match segment {
            PathSegment::Field(name) => {
                shown.push('.');
                shown.push_str(name);
            }
            PathSegment::Index(at) => shown.push_str(&format!("[{at}]")),
        }
    }
    shown
}

/// Returns the lines that differ, or both values as JSON if they only look the same, such as `1` and `"1"`.
fn shown_difference(one: Option<&Json>, other: Option<&Json>) -> Vec<String> {
    let found = line_differences(&lines(one), &lines(other));
    if !found.is_empty() {
        return found;
    }
    let json = |value: Option<&Json>| value.map_or_else(|| "(absent)".to_owned(), Json::to_string);
    vec![format!("- {}", json(one)), format!("+ {}", json(other))]
}

/// Splits a value into the units of comparison: lines of text, items of a list, otherwise the whole value.
fn lines(value: Option<&Json>) -> Vec<String> {
    match value {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::String(text)) => text.lines().map(str::to_owned).collect(),
        Some(Json::Array(items)) => items.iter().map(value_line).collect(),
        Some(other) => vec![value_line(other)],
    }
}

/// Returns a value on one line, as a person reads it: `role: user, content: Choose a queue`. Lists and objects inside an object
/// are JSON.
pub fn value_line(value: &Json) -> String {
    let inner = |value: &Json| match value {
        Json::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    };
    match value {
        Json::Object(fields) if !fields.is_empty() => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", inner(value)));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => inner(other),
    }
}

/// Returns the lines that only one side has, in the order of the texts.
fn line_differences(one: &[String], other: &[String]) -> Vec<String> {
    let same_start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same_start..], &other[same_start..]);
    let same_end = (one.iter().rev()).zip(other.iter().rev());
    let same_end = same_end.take_while(|(a, b)| a == b).count();
    let (one, other) = (
        &one[..one.len() - same_end],
        &other[..other.len() - same_end],
    );
    let removed = |line: &String| format!("- {line}");
    let added = |line: &String| format!("+ {line}");
    // The table of common lines grows with the product of the two lengths.
    if one.len().saturating_mul(other.len()) > TABLE_MAX {
        return one
            .iter()
            .map(removed)
            .chain(other.iter().map(added))
            .collect();
    }
    let common = common_lines(one, other);
    let (mut from, mut to) = (0, 0);
    let mut found = Vec::new();
    while from < one.len() || to < other.len() {
        let is_same = from < one.len() && to < other.len() && one[from] == other[to];
        if is_same {
            (from, to) = (from + 1, to + 1);
        } else if to == other.len()
            || from < one.len() && common[from + 1][to] >= common[from][to + 1]
        {
            found.push(removed(&one[from]));
            from += 1;
        } else {
            found.push(added(&other[to]));
            to += 1;
        }
    }
    found
}

/// Returns, for every pair of positions, how many lines the rests have in common, in order.
fn common_lines(one: &[String], other: &[String]) -> Vec<Vec<u32>> {
    let mut common = vec![vec![0; other.len() + 1]; one.len() + 1];
    for from in (0..one.len()).rev() {
        for to in (0..other.len()).rev() {
            common[from][to] = match one[from] == other[to] {
                true => common[from + 1][to + 1] + 1,
                false => common[from + 1][to].max(common[from][to + 1]),
            };
        }
    }
    common
}

const TABLE_MAX: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(one: Json, other: Json) -> Vec<String> {
        let found = differences("state", Some(&one), Some(&other));
        found
            .iter()
            .map(|found| format!("{}: {}", found.path, found.lines.join(" | ")))
            .collect()
    }

    #[test]
    fn long_texts_are_compared_in_full_and_shown_by_line() {
        let long = |end: &str| format!("{}\nmiddle\n{end}\nlast", "a long line ".repeat(50));
        assert_eq!(
            shown(
                json!({ "page": long("one") }),
                json!({ "page": long("two") })
            ),
            ["state.page: - one | + two"]
        );
    }

    #[test]
    fn a_line_that_moved_is_found() {
        assert_eq!(
            shown(json!("a\nb\nc\nd"), json!("a\nc\nx\nd")),
            ["state: - b | + x"]
        );
    }

    #[test]
    fn lists_and_objects_are_compared_inside() {
        assert_eq!(
            shown(
                json!({ "results": [{ "score": 62, "text": "a" }], "same": 1 }),
                json!({ "results": [{ "score": 85, "text": "a" }], "same": 1 })
            ),
            ["state.results[0].score: - 62 | + 85"]
        );
        assert_eq!(shown(json!([1, 2]), json!([1, 3, 2])), ["state: + 3"]);
        assert_eq!(shown(json!(null), json!("new")), ["state: + new"]);
    }

    #[test]
    fn objects_are_shown_by_their_fields() {
        assert_eq!(
            shown(json!([]), json!([{ "role": "user", "n": [1] }])),
            ["state: + role: user, n: [1]"]
        );
        assert_eq!(value_line(&json!({})), "{}");
    }

    #[test]
    fn values_that_look_the_same_are_shown_as_json() {
        assert_eq!(shown(json!(1), json!("1")), ["state: - 1 | + \"1\""]);
        assert_eq!(
            shown(json!("a\n"), json!("a")),
            ["state: - \"a\\n\" | + \"a\""]
        );
        let found = differences("state", None, Some(&json!(null)));
        assert_eq!(found[0].lines, ["- (absent)", "+ null"]);
    }
}
