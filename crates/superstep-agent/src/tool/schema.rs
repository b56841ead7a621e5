//! Holds the arguments of a call against the tool's schema, before anything happens.
//!
//! Checked are the words of JSON Schema that describe data: types, choices, fields, items, bounds, and references within
//! the schema. Others (`format`, `pattern`, conditions) are shown to the model and left to the tool. A typed tool decodes
//! its arguments anyway; this says in words what is wrong, and is all there is for tools whose types we do not have.

use serde_json::{Map, Value as Json};

/// What does not fit, in words for a model.
pub(crate) fn check(schema: &Json, args: &Json) -> Result<(), String> {
    let checker = Checker { root: schema };
    checker.value(schema, args, "the call", DEPTH_MAX)
}

/// Deep enough for any form; a schema that refers to itself ends here.
const DEPTH_MAX: u32 = 64;

struct Checker<'a> {
    root: &'a Json,
}

impl Checker<'_> {
    fn value(&self, schema: &Json, value: &Json, at: &str, depth: u32) -> Result<(), String> {
        let Json::Object(words) = schema else {
            return match schema {
                Json::Bool(false) => Err(format!("{at} must not be there")),
                _ => Ok(()),
            };
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("{at} is nested too deeply"));
        };
        if let Some(to) = words.get("$ref").and_then(Json::as_str) {
            let found = to
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path));
            let found =
                found.ok_or_else(|| format!("{at} has a form that is not in the schema"))?;
            self.value(found, value, at, depth)?;
        }
        check_type(words, value, at)?;
        check_choice(words, value, at)?;
        check_bounds(words, value, at)?;
        self.combined(words, value, at, depth)?;
        match value {
            Json::Object(fields) => self.fields(words, fields, at, depth),
            Json::Array(items) => self.items(words, items, at, depth),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
        }
    }

    fn combined(
        &self,
        words: &Map<String, Json>,
        value: &Json,
        at: &str,
        depth: u32,
    ) -> Result<(), String> {
        let list = |word: &str| words.get(word).and_then(Json::as_array);
        for schema in list("allOf").into_iter().flatten() {
            self.value(schema, value, at, depth)?;
        }
        if let Some(choices) = list("anyOf") {
            self.fitting(choices, value, at, depth)?;
        }
        if let Some(choices) = list("oneOf")
            && self.fitting(choices, value, at, depth)? > 1
        {
            return Err(format!("{at} fits several of its forms and must fit one"));
        }
        Ok(())
    }

    /// How many of the forms it fits; an error if none, with what the first one lacks.
    fn fitting(
        &self,
        choices: &[Json],
        value: &Json,
        at: &str,
        depth: u32,
    ) -> Result<usize, String> {
        let tried: Vec<_> = choices
            .iter()
            .map(|schema| self.value(schema, value, at, depth))
            .collect();
        let fit = tried.iter().filter(|tried| tried.is_ok()).count();
        match (fit, tried.into_iter().next()) {
            (0, Some(Err(why))) => Err(format!("{at} fits none of its forms: {why}")),
            _ => Ok(fit),
        }
    }

    fn fields(
        &self,
        words: &Map<String, Json>,
        fields: &Map<String, Json>,
        at: &str,
        depth: u32,
    ) -> Result<(), String> {
        let required = words.get("required").and_then(Json::as_array);
        let mut required = required.into_iter().flatten().filter_map(Json::as_str);
        if let Some(missing) = required.find(|name| !fields.contains_key(*name)) {
            return Err(format!("{at} lacks `{missing}`"));
        }
        let known = words.get("properties").and_then(Json::as_object);
        for (name, value) in fields {
            let at = format!("`{name}` of {at}");
            match known.and_then(|known| known.get(name)) {
                Some(schema) => self.value(schema, value, &at, depth)?,
                None => match words.get("additionalProperties") {
                    Some(Json::Bool(false)) => {
                        return Err(format!("{at} is not asked for"));
                    }
                    Some(schema) => self.value(schema, value, &at, depth)?,
                    None => {}
                },
            }
        }
        Ok(())
    }

    fn items(
        &self,
        words: &Map<String, Json>,
        items: &[Json],
        at: &str,
        depth: u32,
    ) -> Result<(), String> {
        let first = words.get("prefixItems").and_then(Json::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            let schema = first.get(index).or_else(|| words.get("items"));
            if let Some(schema) = schema {
                self.value(schema, item, &format!("{at}[{index}]"), depth)?;
            }
        }
        Ok(())
    }
}

fn check_type(words: &Map<String, Json>, value: &Json, at: &str) -> Result<(), String> {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    let fits = match words.get("type") {
        Some(Json::String(name)) => is(name),
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).any(is),
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => Err(format!("{at} must be of type {}", words["type"])),
    }
}

fn check_choice(words: &Map<String, Json>, value: &Json, at: &str) -> Result<(), String> {
    if let Some(Json::Array(allowed)) = words.get("enum")
        && !allowed.contains(value)
    {
        let allowed = Json::Array(allowed.clone());
        return Err(format!("{at} must be one of {allowed}"));
    }
    match words.get("const") {
        Some(wanted) if wanted != value => Err(format!("{at} must be {wanted}")),
        _ => Ok(()),
    }
}

fn check_bounds(words: &Map<String, Json>, value: &Json, at: &str) -> Result<(), String> {
    let (size, least, most) = match value {
        Json::Number(number) => (number.as_f64(), "minimum", "maximum"),
        Json::String(text) => (Some(text.chars().count() as f64), "minLength", "maxLength"),
        Json::Array(items) => (Some(items.len() as f64), "minItems", "maxItems"),
        _ => return Ok(()),
    };
    let Some(size) = size else { return Ok(()) };
    let bound = |name: &str| words.get(name).and_then(Json::as_f64);
    match (bound(least), bound(most)) {
        (Some(min), _) if size < min => Err(format!("{at} is below the {least} of {min}")),
        (_, Some(max)) if size > max => Err(format!("{at} is above the {most} of {max}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_does_not_fit() {
        let schema = json!({
            "type": "object",
            "properties": {
                "to": { "type": "string", "minLength": 3 },
                "copies": { "type": ["integer", "null"], "maximum": 5 },
                "how": { "$ref": "#/$defs/how" },
                "parts": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "null" }] } }
            },
            "required": ["to"],
            "additionalProperties": false,
            "$defs": { "how": { "enum": ["fast", "slow"] } }
        });
        let why = |args: Json| check(&schema, &args).unwrap_err();
        assert_eq!(why(json!({})), "the call lacks `to`");
        assert_eq!(why(json!("x")), "the call must be of type \"object\"");
        assert_eq!(
            why(json!({ "to": "a" })),
            "`to` of the call is below the minLength of 3"
        );
        assert_eq!(
            why(json!({ "to": "abc", "x": 1 })),
            "`x` of the call is not asked for"
        );
        assert_eq!(
            why(json!({ "to": "abc", "copies": 9 })),
            "`copies` of the call is above the maximum of 5"
        );
        assert!(why(json!({ "to": "abc", "how": "now" })).contains("must be one of"));
        assert!(why(json!({ "to": "abc", "parts": [1] })).contains("fits none of its forms"));
        check(
            &schema,
            &json!({ "to": "abc", "copies": null, "how": "fast", "parts": ["a", null] }),
        )
        .unwrap();
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({ "$ref": "#" });
        assert!(
            check(&schema, &json!(1))
                .unwrap_err()
                .contains("too deeply")
        );
    }
}
