//! Checks JSON against a JSON Schema: answers to interrupts here, arguments of tool calls in `superstep-agent`.
//!
//! # What is checked
//!
//! The keywords that describe data, as JSON Schema 2020-12 defines them:
//!
//! | about | keywords |
//! | --- | --- |
//! | any value | `type`, `enum`, `const`, `allOf`, `anyOf`, `oneOf`, `$ref` within the schema, `true` and `false` as schemas |
//! | objects | `properties`, `required`, `additionalProperties` |
//! | arrays | `items`, `prefixItems`, `minItems`, `maxItems` |
//! | numbers | `minimum`, `maximum` |
//! | texts | `minLength`, `maxLength`, in characters |
//!
//! A number without a fraction is an integer however it is written: `1.0` is one. Numbers are equal if their values are.
//!
//! Other keywords (`format`, `pattern`, `not`, conditions, references to other documents by address, ...) are shown to the
//! person who fills in the form and not enforced; a `$ref` to something that is not in the schema refuses every value. A schema
//! is followed 64 levels deep and for 100,000 steps, so one that refers to itself ends.
//!
//! There is one checker because two would disagree. We wrote it because core takes no clock, no randomness and no I/O;
//! ARCHITECTURE.md has the reasons against the `jsonschema` crate.
//!
//! ```
//! use serde_json::json;
//! use superstep_core::schema;
//!
//! let schema = json!({ "type": "object", "properties": { "copies": { "type": "integer", "maximum": 5 } } });
//! assert!(schema::check(&schema, &json!({ "copies": 2.0 }), "the answer").is_ok());
//! let why = schema::check(&schema, &json!({ "copies": 9 }), "the answer").unwrap_err();
//! assert_eq!(why, "`copies` of the answer is above the maximum of 5");
//! ```

use std::cell::Cell;
use std::fmt;

use serde_json::{Map, Number, Value as Json};

/// Checks a value against a schema. `what` names the value in the error message, as in "the answer lacks `name`".
///
/// # Errors
///
/// Returns the first place that does not fit and why, for a person or a model to read.
pub fn check(schema: &Json, value: &Json, what: &str) -> Result<(), String> {
    let checker = Checker {
        root: schema,
        steps_left: Cell::new(STEPS_MAX),
    };
    checker.value(schema, value, &Place::Root(what), DEPTH_MAX)
}

/// Returns the value with every number that has no fraction written as an integer: `1.0` becomes `1`.
///
/// A schema may accept as an integer what the target type of a decoder does not; this converts it. Numbers beyond 2⁵³, of which
/// a float holds only some, stay as they are.
#[must_use]
pub fn with_integers(value: Json) -> Json {
    match value {
        Json::Number(number) => Json::Number(as_integer(&number).unwrap_or(number)),
        Json::Array(items) => items.into_iter().map(with_integers).collect(),
        Json::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, with_integers(value)))
            .collect(),
        Json::Null | Json::Bool(_) | Json::String(_) => value,
    }
}

fn as_integer(number: &Number) -> Option<Number> {
    const EXACT_MAX: f64 = (1_u64 << 53) as f64;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() <= EXACT_MAX).then(|| Number::from(float as i64))
}

/// Deep enough for any form; a schema that refers to itself ends here.
const DEPTH_MAX: u32 = 64;

/// Highest number of schemas applied to parts of one value. Depth alone is not a bound: a hostile schema that refers to itself
/// twice in an `anyOf` would be tried billions of times.
const STEPS_MAX: u32 = 100_000;

/// A place in the checked value. It becomes text only if something does not fit.
enum Place<'a> {
    Root(&'a str),
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// Writes the path from the root to here, and returns the name of the root.
    fn path<'a>(&'a self, f: &mut String) -> &'a str {
        match self {
            Place::Root(what) => what,
            Place::Field(of, name) => {
                let what = of.path(f);
                if !f.is_empty() {
                    f.push('.');
                }
                f.push_str(name);
                what
            }
            Place::Item(of, index) => {
                let what = of.path(f);
                f.push_str(&format!("[{index}]"));
                what
            }
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut path = String::new();
        let what = self.path(&mut path);
        match path.is_empty() {
            true => f.write_str(what),
            false => write!(f, "`{path}` of {what}"),
        }
    }
}

struct Checker<'a> {
    root: &'a Json,
    steps_left: Cell<u32>,
}

impl Checker<'_> {
    fn value(&self, schema: &Json, value: &Json, at: &Place<'_>, depth: u32) -> Result<(), String> {
        let Json::Object(words) = schema else {
            return match schema {
                Json::Bool(false) => Err(format!("{at} must not be there")),
                _ => Ok(()),
            };
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(format!("{at} is nested too deeply"));
        };
        let Some(steps_left) = self.steps_left.get().checked_sub(1) else {
            return Err(format!(
                "{at} cannot be checked: its schema takes too many steps"
            ));
        };
        self.steps_left.set(steps_left);
        if let Some(to) = words.get("$ref").and_then(Json::as_str) {
            let found = to
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path));
            let found = found
                .ok_or_else(|| format!("{at} has the form `{to}`, which is not in the schema"))?;
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
        at: &Place<'_>,
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

    /// Returns how many of the schemas the value fits; an error if none, with what it lacks for the first one.
    fn fitting(
        &self,
        choices: &[Json],
        value: &Json,
        at: &Place<'_>,
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
        at: &Place<'_>,
        depth: u32,
    ) -> Result<(), String> {
        let required = words.get("required").and_then(Json::as_array);
        let mut required = required.into_iter().flatten().filter_map(Json::as_str);
        if let Some(missing) = required.find(|name| !fields.contains_key(*name)) {
            return Err(format!("{at} lacks `{missing}`"));
        }
        let known = words.get("properties").and_then(Json::as_object);
        for (name, value) in fields {
            let at = Place::Field(at, name);
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
        at: &Place<'_>,
        depth: u32,
    ) -> Result<(), String> {
        let first = words.get("prefixItems").and_then(Json::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            let schema = first.get(index).or_else(|| words.get("items"));
            if let Some(schema) = schema {
                self.value(schema, item, &Place::Item(at, index), depth)?;
            }
        }
        Ok(())
    }
}

fn check_type(words: &Map<String, Json>, value: &Json, at: &Place<'_>) -> Result<(), String> {
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

fn check_choice(words: &Map<String, Json>, value: &Json, at: &Place<'_>) -> Result<(), String> {
    if let Some(Json::Array(allowed)) = words.get("enum")
        && !allowed.iter().any(|allowed| is_same(allowed, value))
    {
        let allowed = Json::Array(allowed.clone());
        return Err(format!("{at} must be one of {allowed}"));
    }
    match words.get("const") {
        Some(wanted) if !is_same(wanted, value) => Err(format!("{at} must be {wanted}")),
        _ => Ok(()),
    }
}

/// Whether two values are equal as JSON Schema defines it: numbers by their value, so that `1` equals `1.0`.
fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(a), Json::Number(b)) => {
            let whole = |number: &Number| as_integer(number).unwrap_or_else(|| number.clone());
            whole(a) == whole(b)
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        _ => one == other,
    }
}

fn check_bounds(words: &Map<String, Json>, value: &Json, at: &Place<'_>) -> Result<(), String> {
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
mod tests;
