//! Parameters of a call: found in the question and checked, never invented.

mod affinity;
mod finder;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::catalogue::{Api, Parameter, Place};
use super::question::Question;
use super::stemming::tokens;
use finder::Finder;

pub(super) use affinity::Affinity;
pub(super) use finder::StatedValues;

/// Name of the parameter that limits how many items are shown. Applied to the answer here, even if the call has no such
/// parameter.
pub(super) const LIMIT: &str = "limit";
/// Number of items to show if the question does not state one.
pub(super) const LIMIT_USUAL: u64 = 10;

/// Returns whether a parameter is applied here, whether or not the call has it.
pub(super) fn is_local(name: &str) -> bool {
    name == LIMIT
}

/// Returns the values that the question states, or the defaults. A required parameter without a value is null.
pub(super) fn find(
    question: &Question,
    api: &Api,
    entity_name: Option<&str>,
) -> BTreeMap<String, Json> {
    let mut stated = Finder::new(question, api, entity_name).read();
    let mut found = BTreeMap::new();
    let shows_all = api.optional_parameters.len() <= SHOWN_MAX;
    for parameter in api.parameters() {
        let said = stated.values.remove(&parameter.name);
        let is_needed = api.required_parameters.contains(parameter);
        // A header is sent only if a person states its value, because its effect is not visible in the answer.
        let default = Some(&parameter.default)
            .filter(|value| !value.is_null() && parameter.place != Place::Header);
        match said.or_else(|| default.cloned()) {
            Some(value) => {
                found.insert(parameter.name.clone(), value);
            }
            None if is_needed || shows_all => {
                found.insert(parameter.name.clone(), Json::Null);
            }
            None => {}
        }
    }
    let gives_many = api.is_read() && !api.api_url.ends_with('}');
    if gives_many {
        let known = found.get(LIMIT).filter(|value| !value.is_null());
        if known.is_none() {
            let limit = question.how_many().unwrap_or(LIMIT_USUAL);
            found.insert(LIMIT.to_owned(), json!(limit));
        }
    }
    found
}

/// Returns what the question says about the parameters of a call, without defaults.
pub(super) fn stated(question: &Question, api: &Api) -> StatedValues {
    Finder::new(question, api, None).read()
}

/// Parses a text as a value of a parameter. `None` if it does not fit the type.
pub(super) fn value_of(parameter: &Parameter, text: &str) -> Option<Json> {
    let text = text.trim();
    if let Some(choice) = parameter
        .choices
        .iter()
        .find(|choice| is_choice(choice, text))
    {
        return Some(match parameter.kind.as_str() {
            "array" => json!([choice]),
            _ => choice.clone(),
        });
    }
    match parameter.kind.as_str() {
        "integer" => text.parse::<i64>().ok().map(Json::from),
        "number" => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(|number| json!(number)),
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(json!(true)),
            "false" | "no" => Some(json!(false)),
            _ => None,
        },
        "array" => match serde_json::from_str::<Json>(text) {
            Ok(list @ Json::Array(_)) => Some(list),
            _ => Some(Json::Array(
                text.split(',').map(|part| json!(part.trim())).collect(),
            )),
        },
        "object" => serde_json::from_str::<Json>(text)
            .ok()
            .filter(Json::is_object),
        _ => Some(json!(text)),
    }
}

/// Checks whether a value may be sent. The error is a message for a person.
pub(super) fn check(parameter: &Parameter, value: &Json) -> Result<(), String> {
    let name = &parameter.name;
    let fits = match (parameter.kind.as_str(), value) {
        (_, Json::Null) => return Err(format!("`{name}` is missing")),
        ("integer", value) => value.is_i64() || value.is_u64(),
        ("number", value) => value.is_number(),
        ("boolean", value) => value.is_boolean(),
        ("array", value) => value.is_array(),
        ("object", value) => value.is_object(),
        (_, value) => value.is_string() || value.is_number(),
    };
    if !fits {
        return Err(format!(
            "`{name}` must be of the type {}, and is {value}",
            parameter.kind
        ));
    }
    if !parameter.choices.is_empty()
        && parameter.kind != "array"
        && !parameter.choices.contains(value)
    {
        let choices: Vec<_> = parameter.choices.iter().map(ToString::to_string).collect();
        return Err(format!("`{name}` must be one of {}", choices.join(", ")));
    }
    let Some(text) = value.as_str() else {
        return Ok(());
    };
    if text.trim().is_empty() || text.len() > VALUE_BYTES_MAX || text.chars().any(char::is_control)
    {
        return Err(format!(
            "`{name}` must be a line of 1 to {VALUE_BYTES_MAX} bytes"
        ));
    }
    // URL parsers treat these as relative segments even when percent-encoded, so encoding would not help.
    if parameter.place == Place::Path && [".", ".."].contains(&text) {
        return Err(format!("`{name}` must not be `{text}`"));
    }
    Ok(())
}

/// Returns whether a value occurs in the question. If it does not, the model made it up.
pub(super) fn stands_in(query: &str, value: &str) -> bool {
    let plain = |text: &str| tokens(text).join(" ");
    let value = plain(value);
    !value.is_empty() && format!(" {} ", plain(query)).contains(&format!(" {value} "))
}

fn is_choice(choice: &Json, text: &str) -> bool {
    match choice {
        Json::String(choice) => choice.eq_ignore_ascii_case(text),
        other => serde_json::from_str(text).is_ok_and(|given: Json| given == *other),
    }
}

/// Maximum number of optional parameters that are listed with null. With more, only those with a value are listed.
const SHOWN_MAX: usize = 8;
const VALUE_BYTES_MAX: usize = 2_000;
