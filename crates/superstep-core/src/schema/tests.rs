//! The checker against a table of cases: which value fits which schema, and the message for those that do not.

use serde_json::{Value as Json, json};

use super::{check, with_integers};

/// Returns why the value does not fit; empty if it does.
fn why(schema: &Json, value: &Json) -> String {
    match check(schema, value, "the call") {
        Ok(()) => String::new(),
        Err(why) => why,
    }
}

#[test]
fn every_keyword_takes_what_fits_and_refuses_what_does_not() {
    // A schema, values that fit it, values that do not.
    let cases = [
        (json!(true), json!([1, null, {}]), json!([])),
        (json!(false), json!([]), json!([1, null])),
        (json!({}), json!([1, "a", null]), json!([])),
        (json!({ "type": "null" }), json!([null]), json!([0, ""])),
        (
            json!({ "type": "boolean" }),
            json!([true]),
            json!([0, "true"]),
        ),
        (json!({ "type": "string" }), json!([""]), json!([0, null])),
        (
            json!({ "type": "number" }),
            json!([0, 1.5, -2]),
            json!(["0"]),
        ),
        (
            json!({ "type": "integer" }),
            json!([0, -7, 1.0, -2.0, 1e3, u64::MAX]),
            json!([1.5, "1", null, true]),
        ),
        (json!({ "type": "array" }), json!([[]]), json!([{}])),
        (json!({ "type": "object" }), json!([{}]), json!([[]])),
        (
            json!({ "type": ["integer", "null"] }),
            json!([1.0, null]),
            json!([1.5, ""]),
        ),
        (json!({ "type": "money" }), json!([1, "a"]), json!([])),
        (
            json!({ "enum": [1, "a", null] }),
            json!([1, 1.0, "a", null]),
            json!([2, "b", false]),
        ),
        (json!({ "const": 2.0 }), json!([2, 2.0]), json!([3, "2"])),
        (
            json!({ "const": { "a": [1, { "b": 2 }] } }),
            json!([{ "a": [1.0, { "b": 2 }] }]),
            json!([{ "a": [1] }, { "a": [1, { "b": 2 }], "c": 0 }]),
        ),
        (
            json!({ "minimum": 1, "maximum": 2 }),
            json!([1, 1.5, 2, "0"]),
            json!([0.9, 3]),
        ),
        (
            json!({ "minLength": 2, "maxLength": 3 }),
            json!(["äö", "abc", 1]),
            json!(["ä", "abcd"]),
        ),
        (
            json!({ "minItems": 1, "maxItems": 2 }),
            json!([[1], [1, 2]]),
            json!([[], [1, 2, 3]]),
        ),
        (
            json!({ "items": { "type": "integer" } }),
            json!([[], [1, 2.0]]),
            json!([[1, "a"]]),
        ),
        (
            json!({ "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } }),
            json!([["a"], ["a", 1]]),
            json!([[1], ["a", "b"]]),
        ),
        (
            json!({ "required": ["a"] }),
            json!([{ "a": null }, 1]),
            json!([{}, { "b": 1 }]),
        ),
        (
            json!({ "properties": { "a": { "type": "integer" } } }),
            json!([{}, { "a": 1.0 }, { "b": "any" }]),
            json!([{ "a": 1.5 }]),
        ),
        (
            json!({ "properties": { "a": {} }, "additionalProperties": false }),
            json!([{}, { "a": 1 }]),
            json!([{ "b": 1 }]),
        ),
        (
            json!({ "additionalProperties": { "type": "string" } }),
            json!([{ "a": "x" }]),
            json!([{ "a": 1 }]),
        ),
        (
            json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }),
            json!([1, 2]),
            json!([0, 3]),
        ),
        (
            json!({ "anyOf": [{ "type": "string" }, { "minimum": 5 }] }),
            json!(["a", 5]),
            json!([4]),
        ),
        (
            json!({ "oneOf": [{ "type": "integer" }, { "minimum": 5 }] }),
            json!([1, 1.0, 5.5]),
            json!([5, 6.0, 4.5]),
        ),
        (
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "integer" } } }),
            json!([1, 1.0]),
            json!(["a"]),
        ),
        (json!({ "$ref": "#/$defs/none" }), json!([]), json!([1])),
        (
            json!({ "$ref": "https://example.com/a" }),
            json!([]),
            json!([1]),
        ),
        (json!({ "$ref": "#" }), json!([]), json!([1])),
        // Not enforced.
        (
            json!({ "pattern": "^a$", "format": "email" }),
            json!(["b"]),
            json!([]),
        ),
    ];
    for (schema, fit, do_not) in &cases {
        for value in fit.as_array().unwrap() {
            assert_eq!(why(schema, value), "", "{schema} takes {value}");
        }
        for value in do_not.as_array().unwrap() {
            assert_ne!(why(schema, value), "", "{schema} refuses {value}");
        }
    }
}

#[test]
fn says_what_does_not_fit_and_where() {
    let schema = json!({
        "type": "object",
        "properties": {
            "to": { "type": "string", "minLength": 3 },
            "copies": { "type": ["integer", "null"], "maximum": 5 },
            "how": { "$ref": "#/$defs/how" },
            "parts": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/part" }] } }
        },
        "required": ["to"],
        "additionalProperties": false,
        "$defs": {
            "how": { "enum": ["fast", "slow"] },
            "part": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }
        }
    });
    for (value, wanted) in [
        (json!({}), "the call lacks `to`"),
        (json!("x"), "the call must be of type \"object\""),
        (
            json!({ "to": "a" }),
            "`to` of the call is below the minLength of 3",
        ),
        (
            json!({ "to": "abc", "x": 1 }),
            "`x` of the call is not asked for",
        ),
        (
            json!({ "to": "abc", "copies": 9 }),
            "`copies` of the call is above the maximum of 5",
        ),
        (
            json!({ "to": "abc", "copies": 1.5 }),
            "`copies` of the call must be of type [\"integer\",\"null\"]",
        ),
        (
            json!({ "to": "abc", "how": "now" }),
            "`how` of the call must be one of [\"fast\",\"slow\"]",
        ),
        (
            json!({ "to": "abc", "parts": ["a", 1] }),
            "`parts[1]` of the call fits none of its forms: `parts[1]` of the call must be of type \"string\"",
        ),
        (
            json!({ "to": "abc", "copies": null, "how": "fast", "parts": ["a", { "n": 1.0 }] }),
            "",
        ),
    ] {
        assert_eq!(why(&schema, &value), wanted, "{value}");
    }
    let nested = json!({ "properties": { "a": { "items": { "required": ["b"] } } } });
    assert_eq!(
        why(&nested, &json!({ "a": [{}] })),
        "`a[0]` of the call lacks `b`"
    );
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    assert!(why(&json!({ "$ref": "#" }), &json!(1)).contains("too deeply"));
    let twice = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
    assert!(why(&twice, &json!(1)).contains("fits none"));
    let first = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, true], "oneOf": [{ "$ref": "#" }, true] });
    why(&first, &json!([1]));
}

#[test]
fn whole_numbers_become_integers_and_others_stay() {
    let value = json!({ "a": [1.0, 1.5, 7, -2.0], "b": 1e300, "c": "1.0", "d": null });
    let wanted = json!({ "a": [1, 1.5, 7, -2], "b": 1e300, "c": "1.0", "d": null });
    assert_eq!(with_integers(value), wanted);
    let n: i64 = serde_json::from_value(with_integers(json!(3.0))).unwrap();
    assert_eq!(n, 3);
}
