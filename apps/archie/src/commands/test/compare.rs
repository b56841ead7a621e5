//! Compares what a test case expects with what was found. Ids that every run makes for itself are equal if they stand for the same
//! thing everywhere.

use std::collections::{BTreeMap, BTreeSet};

use archie_agent::printable::{json_text, summary_line};
use serde_json::Value as Json;

/// A comparison of several values, in which an id has one meaning.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Where the values differ, at most [`DIFFERENCES_MAX`].
    pub(super) differences: Vec<String>,
    /// Ids of the case, with those that stand for them.
    ids: BTreeMap<String, String>,
}

impl Comparison {
    /// Compares two values, and notes where they differ, by JSON Pointers that begin with `path`.
    pub(super) fn compare(&mut self, path: &str, expected: &Json, found: &Json) {
        match (expected, found) {
            (Json::Object(one), Json::Object(other)) => {
                let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
                for name in names {
                    let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                    self.compare_at(&path, one.get(name), other.get(name));
                }
            }
            (Json::Array(one), Json::Array(other)) => {
                for at in 0..one.len().max(other.len()) {
                    self.compare_at(&format!("{path}/{at}"), one.get(at), other.get(at));
                }
            }
            (Json::String(one), Json::String(other)) => {
                if !self.is_same_text(one, other) {
                    self.note(path, Some(expected), Some(found));
                }
            }
            (one, other) if one == other => {}
            (one, other) => self.note(path, Some(one), Some(other)),
        }
    }

    fn compare_at(&mut self, path: &str, expected: Option<&Json>, found: Option<&Json>) {
        match (expected, found) {
            (Some(expected), Some(found)) => self.compare(path, expected, found),
            (expected, found) => self.note(path, expected, found),
        }
    }

    fn note(&mut self, path: &str, expected: Option<&Json>, found: Option<&Json>) {
        if self.differences.len() >= DIFFERENCES_MAX {
            return;
        }
        let shown = |value: Option<&Json>| {
            value.map_or_else(
                || "nothing".to_owned(),
                |value| summary_line(&json_text(value), SHOWN_CHARS),
            )
        };
        let path = match path {
            "" => "/",
            path => path,
        };
        let (expected, found) = (shown(expected), shown(found));
        self.differences
            .push(format!("{path}: expected {expected}, found {found}"));
    }

    /// Whether two texts differ in nothing but ids, each of which stands for the same one as before.
    fn is_same_text(&mut self, one: &str, other: &str) -> bool {
        // Also if the texts are equal: an id that stands for another one elsewhere differs.
        let (one, other) = (pieces(one), pieces(other));
        one.len() == other.len()
            && one
                .iter()
                .zip(other)
                .all(|(one, other)| match (one, other) {
                    (Piece::Id(one), Piece::Id(other)) => {
                        let known = self.ids.entry((*one).to_owned());
                        known.or_insert_with(|| other.to_owned()).as_str() == other
                    }
                    (one, other) => *one == other,
                })
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// An id that a run made: 32 hexadecimal digits, or a UUID.
    Id(&'a str),
}

/// Splits a text at its ids.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let bytes = text.as_bytes();
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        let is_inside = at > 0 && bytes[at - 1].is_ascii_hexdigit();
        match id_length(&bytes[at..]).filter(|_| !is_inside) {
            None => at += 1,
            Some(length) => {
                pieces.push(Piece::Text(&text[start..at]));
                pieces.push(Piece::Id(&text[at..at + length]));
                at += length;
                start = at;
            }
        }
    }
    pieces.push(Piece::Text(&text[start..]));
    pieces
}

/// Returns the length of the id that a text begins with.
fn id_length(text: &[u8]) -> Option<usize> {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let digits = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    if digits(text) == 32 {
        return Some(32);
    }
    let uuid = text.get(..36)?;
    let groups: Vec<usize> = uuid.split(|byte| *byte == b'-').map(digits).collect();
    let is_over = text.get(36).is_none_or(|next| !is_digit(next));
    (groups == [8, 4, 4, 4, 12] && is_over).then_some(36)
}

const DIFFERENCES_MAX: usize = 20;
const SHOWN_CHARS: usize = 120;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const A: &str = "0190a6b2000070008000000000000001";
    const B: &str = "ffffa6b2000070008000000000000002";
    const UUID: &str = "0190a6b2-0000-7000-8000-000000000001";

    fn differences(expected: &Json, found: &Json) -> Vec<String> {
        let mut comparison = Comparison::default();
        comparison.compare("", expected, found);
        comparison.differences
    }

    #[test]
    fn what_differs_is_named_by_its_place() {
        let expected = json!({ "a": [1, { "b/c": "x" }], "gone": true });
        let found = json!({ "a": [1, { "b/c": "y" }, 2] });
        assert_eq!(
            differences(&expected, &found),
            [
                "/a/1/b~1c: expected \"x\", found \"y\"",
                "/a/2: expected nothing, found 2",
                "/gone: expected true, found nothing",
            ]
        );
        assert_eq!(
            differences(&json!(1), &json!("1")),
            ["/: expected 1, found \"1\""]
        );
    }

    #[test]
    fn an_id_of_the_run_is_equal_wherever_it_stands_for_the_same() {
        let of = |id: &str| json!([{ "id": format!("{id}-0") }, format!("call_{id}_0 by {UUID}")]);
        assert!(differences(&of(A), &of(B)).is_empty());
        let mixed = json!([{ "id": format!("{B}-0") }, format!("call_{A}_0 by {UUID}")]);
        assert_eq!(differences(&of(A), &mixed).len(), 1);
        let other_text = json!([{ "id": format!("{B}-1") }, format!("call_{B}_0 by {UUID}")]);
        assert_eq!(differences(&of(A), &other_text).len(), 1);
        let other_uuid = UUID.replace("0190", "ffff");
        assert!(differences(&json!(UUID), &json!(other_uuid)).is_empty());
    }

    #[test]
    fn a_checksum_is_not_an_id() {
        let (one, other) = (format!("{A}{A}"), format!("{A}{B}"));
        assert_eq!(differences(&json!(one), &json!(other)).len(), 1);
        assert_eq!(
            pieces("no id: 1234-5678, ähnlich"),
            [Piece::Text("no id: 1234-5678, ähnlich")]
        );
    }
}
