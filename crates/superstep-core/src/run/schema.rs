//! Holds an answer against the schema of its question, before it is stored.
//!
//! Checked are the words of JSON Schema that a form needs: `type`, `enum`, `const`, `properties`,
//! `required`, `additionalProperties: false`, `items`, `minimum`, `maximum`, `minLength`, `maxLength`.
//! Others are shown to whoever answers and not enforced.

use serde_json::{Map, Value as Json};

use crate::checkpoint::format::Question;

/// Whether an answer fits its question; if not, what does not.
pub fn check_answer(question: &Question, answer: &Json) -> Result<(), String> {
    let Some(schema) = &question.schema else {
        return Ok(());
    };
    let schema: Json = schema
        .decode()
        .map_err(|error| crate::error::chain(&error))?;
    check(&schema, answer, "the answer")
}

fn check(schema: &Json, value: &Json, at: &str) -> Result<(), String> {
    let Json::Object(schema) = schema else {
        return Ok(());
    };
    check_type(schema, value, at)?;
    if let Some(Json::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        return Err(format!(
            "{at} must be one of {}",
            Json::Array(allowed.clone())
        ));
    }
    if let Some(wanted) = schema.get("const")
        && wanted != value
    {
        return Err(format!("{at} must be {wanted}"));
    }
    check_bounds(schema, value, at)?;
    match value {
        Json::Object(fields) => check_object(schema, fields, at),
        Json::Array(items) => match schema.get("items") {
            Some(of) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| check(of, item, &format!("{at}[{i}]"))),
            None => Ok(()),
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
    }
}

fn check_type(schema: &Map<String, Json>, value: &Json, at: &str) -> Result<(), String> {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    let fits = match schema.get("type") {
        Some(Json::String(name)) => is(name),
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).any(is),
        _ => true,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{at} must be of type {}", schema["type"]))
    }
}

fn check_bounds(schema: &Map<String, Json>, value: &Json, at: &str) -> Result<(), String> {
    let bound = |name: &str| schema.get(name).and_then(Json::as_f64);
    let (size, least, most) = match value {
        Json::Number(number) => (number.as_f64(), "minimum", "maximum"),
        Json::String(text) => (Some(text.chars().count() as f64), "minLength", "maxLength"),
        _ => return Ok(()),
    };
    let Some(size) = size else { return Ok(()) };
    match (bound(least), bound(most)) {
        (Some(min), _) if size < min => Err(format!("{at} is below the {least} of {min}")),
        (_, Some(max)) if size > max => Err(format!("{at} is above the {most} of {max}")),
        _ => Ok(()),
    }
}

fn check_object(
    schema: &Map<String, Json>,
    fields: &Map<String, Json>,
    at: &str,
) -> Result<(), String> {
    let required = schema
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str);
    if let Some(missing) = required
        .into_iter()
        .find(|name| !fields.contains_key(*name))
    {
        return Err(format!("{at} lacks `{missing}`"));
    }
    let known = schema.get("properties").and_then(Json::as_object);
    for (name, value) in fields {
        match known.and_then(|known| known.get(name)) {
            Some(of) => check(of, value, &format!("{at}.{name}"))?,
            None if schema.get("additionalProperties") == Some(&Json::Bool(false)) => {
                return Err(format!("{at} has `{name}`, which is not asked for"));
            }
            None => {}
        }
    }
    Ok(())
}
