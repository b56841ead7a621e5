//! The rival of the agent: one plain prompt per question, with the list of calls, and no tools, checks or second attempts.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use archie_agent::printable::summary_line;
use serde_json::Value as Json;
use superstep_llm::{Message, Model, Request};

use super::{Became, Evaluation, EvaluationQuestion, EvaluationResult, catalogues, said};
use crate::catalogue::{Api, Catalogue, Parameter};
use crate::params;
use crate::question::Question;
use crate::ranking::CallIndex;

/// Asks a model the questions, each in one prompt that lists the calls of its API, and scores the replies as
/// [`evaluate`](super::evaluate) scores the agent. Nothing is called. Tells `progress` how many questions are done.
pub async fn evaluate_plain(
    model: &dyn Model,
    questions: Vec<EvaluationQuestion>,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let catalogues = catalogues()?;
    let mut evaluation = Evaluation::default();
    for question in questions {
        let catalogue = catalogues
            .iter()
            .find(|catalogue| catalogue.name == question.api)
            .with_context(|| format!("there is no API `{}`", question.api))?;
        let prompt = prompt(catalogue, &question.question);
        let request = Request::new(PLAIN, vec![Message::user(prompt)])
            .tokens_max(TOKENS_MAX)
            .temperature(0.0);
        let reply = model.reply(&request).await?;
        let result = judge(&reply.text(), catalogue, question);
        evaluation.results.push(result);
        progress(evaluation.results.len());
    }
    Ok(evaluation)
}

fn prompt(catalogue: &Catalogue, question: &str) -> String {
    format!(
        "These are calls of the API \"{}\", each with its parameters and what it does:\n\n{}\n\n\
         Which call answers this question, and with which parameters?\n\n{question}\n\n\
         Answer with JSON only: {{\"call\": \"GET /path\", \"parameters\": {{\"name\": \"value\"}}}}, with the path as in the \
         list and only the parameters that the question states. If it is not clear which call is meant, or if the question \
         does not state a value that the call needs, answer {{\"ask\": \"your question\"}} instead.",
        catalogue.title,
        calls(catalogue, question)
    )
}

/// Returns a line per call, cut to [`LIST_CHARS`]. If not all fit, the calls whose words are closest to the question: what a
/// person would find with a search in the documentation.
fn calls(catalogue: &Catalogue, question: &str) -> String {
    let all = catalogue.apis.len();
    let lines = fitting(catalogue.apis.iter());
    if lines.len() == all {
        return lines.join("\n");
    }
    let ranked = CallIndex::new(&catalogue.apis).rank(&Question::new(question));
    let lines = match ranked.is_empty() {
        true => lines,
        false => fitting(ranked.iter().map(|ranked| ranked.api)),
    };
    format!(
        "{}\n(The list is cut: {} of {all} calls.)",
        lines.join("\n"),
        lines.len()
    )
}

/// Returns the lines of the first calls that fit.
fn fitting<'a>(apis: impl Iterator<Item = &'a Api>) -> Vec<String> {
    let mut chars = 0;
    apis.map(line)
        .take_while(|line| {
            chars += line.chars().count() + 1;
            chars <= LIST_CHARS
        })
        .collect()
}

fn line(api: &Api) -> String {
    let names: Vec<&str> = api.parameters().map(|one| one.name.as_str()).collect();
    format!(
        "- {} {} ({}): {}",
        api.method,
        api.api_url,
        names.join(", "),
        api.tool_name
    )
}

/// Judges a reply by the rules for the agent, with one exception: a reply that only asks has no call to judge, so it is right
/// whenever something had to be asked.
fn judge(reply: &str, catalogue: &Catalogue, question: EvaluationQuestion) -> EvaluationResult {
    let answer = first_object(reply).unwrap_or_default();
    let has_asked = match &answer["ask"] {
        Json::String(text) => !text.trim().is_empty(),
        other => !other.is_null(),
    };
    let call = answer["call"]
        .as_str()
        .and_then(|call| find(catalogue, call));
    let is_only_asking = has_asked && answer["call"].is_null();
    let is_right_to_ask = is_only_asking && !question.missing.is_empty();
    let (api, in_path) = call.unzip();
    let parameters = match api {
        Some(api) => values(api, in_path.unwrap_or_default(), &answer["parameters"]),
        None => BTreeMap::new(),
    };
    let missing = |api: &Api| -> BTreeSet<String> {
        let names = api.required_parameters.iter().map(|one| one.name.clone());
        names
            .filter(|name| has_asked && !parameters.contains_key(name))
            .collect()
    };
    let became = Became {
        asks: api.map(missing).unwrap_or_default(),
        asks_which: is_only_asking,
        writes: 0,
        parameters: said(api, parameters),
        api: api.cloned(),
    };
    let mut result = became.judge(question);
    result.right |= is_right_to_ask;
    result.right_call |= is_right_to_ask;
    result.became = summary_line(reply, SHOWN_CHARS);
    result
}

/// Returns the first JSON object in a text, whatever is around it.
fn first_object(text: &str) -> Option<Json> {
    text.match_indices('{').find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Json>();
        values.next()?.ok().filter(Json::is_object)
    })
}

/// Returns the call that a model names, and the values that it filled into the path.
fn find<'a>(catalogue: &'a Catalogue, call: &str) -> Option<(&'a Api, BTreeMap<String, Json>)> {
    let (method, path) = call.trim().split_once(char::is_whitespace)?;
    let path = path.trim();
    let of_method = || {
        let apis = catalogue.apis.iter();
        apis.filter(|api| api.method.eq_ignore_ascii_case(method))
    };
    if let Some(api) = of_method().find(|api| api.api_url == path) {
        return Some((api, BTreeMap::new()));
    }
    of_method().find_map(|api| Some((api, filled(&api.api_url, path)?)))
}

/// Returns the values of `path` for the parameters of a path template. `None` if it is another path.
fn filled(template: &str, path: &str) -> Option<BTreeMap<String, Json>> {
    let (names, parts) = (template.split('/'), path.split('/'));
    if names.clone().count() != parts.clone().count() {
        return None;
    }
    let mut values = BTreeMap::new();
    for (name, part) in names.zip(parts) {
        let parameter = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'));
        match parameter {
            _ if name == part => {}
            Some(parameter) if !part.is_empty() => {
                values.insert(parameter.to_owned(), Json::from(part));
            }
            _ => return None,
        }
    }
    Some(values)
}

/// Returns the values that a model gave, in the types of the parameters. Leaves out null and empty ones.
fn values(api: &Api, in_path: BTreeMap<String, Json>, given: &Json) -> BTreeMap<String, Json> {
    let mut values = in_path;
    let given = given.as_object().into_iter().flatten();
    values.extend(given.map(|(name, value)| (name.clone(), value.clone())));
    values
        .into_iter()
        .filter(|(_, value)| !value.is_null() && value.as_str() != Some(""))
        .map(|(name, value)| {
            let value = match api.parameter(&name) {
                Some(parameter) => typed(parameter, value),
                None => value,
            };
            (name, value)
        })
        .collect()
}

/// Reads a value as the agent reads the values of its model: `"7"` is 7 if the parameter is a number.
fn typed(parameter: &Parameter, value: Json) -> Json {
    let text = match &value {
        Json::String(text) => text.clone(),
        // `80.0` would not be read as an integer, and is judged as one anyway.
        Json::Number(_) if parameter.kind == "integer" => return value,
        Json::Number(_) | Json::Bool(_) => value.to_string(),
        Json::Null | Json::Array(_) | Json::Object(_) => return value,
    };
    params::value_of(parameter, &text).unwrap_or(value)
}

/// Label of the request.
const PLAIN: &str = "plain";
const TOKENS_MAX: u32 = 200;
/// Maximum length of the list of calls: about 2,500 tokens.
const LIST_CHARS: usize = 8_000;
const SHOWN_CHARS: usize = 200;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Half;
    use super::*;

    fn shelter() -> Catalogue {
        let mut all = catalogues().unwrap().into_iter();
        all.find(|catalogue| catalogue.name == "shelter").unwrap()
    }

    fn question(call: Option<&str>, parameters: Json, missing: &[&str]) -> EvaluationQuestion {
        EvaluationQuestion {
            half: Half::Tuned,
            api: "shelter".to_owned(),
            question: "find the pet".to_owned(),
            call: call.map(str::to_owned),
            parameters: serde_json::from_value(parameters).unwrap(),
            missing: missing.iter().map(|name| (*name).to_owned()).collect(),
            asks: call.is_none().then(|| "call".to_owned()),
        }
    }

    #[test]
    fn the_first_object_is_found_in_whatever_is_around_it() {
        let text = "Sure {this one}:\n```json\n{\"call\": \"GET /pets\"}\n```\n{\"call\": \"no\"}";
        assert_eq!(first_object(text), Some(json!({ "call": "GET /pets" })));
        assert_eq!(first_object("GET /pets"), None);
    }

    #[test]
    fn a_reply_is_judged_by_call_parameters_and_what_it_asks() {
        let one = || question(Some("GET /pets/{petId}"), json!({ "petId": 7 }), &[]);
        let unsaid = || question(Some("GET /pets/{petId}"), json!({}), &["petId"]);
        let unclear = || question(None, json!({}), &[]);
        let seven = r#"{"call": "GET /pets/{petId}", "parameters": {"petId": "7"}}"#;
        let filled = r#"{"call": "get /pets/7", "parameters": {}}"#;
        let empty = r#"{"call": "GET /pets/{petId}", "parameters": {"petId": ""}}"#;
        let asks = r#"{"ask": "Which one?"}"#;
        for (question, reply, right, right_call) in [
            (one(), seven, true, true),
            (one(), filled, true, true),
            (one(), empty, false, true),
            (one(), asks, false, false),
            (one(), "I do not know", false, false),
            (unsaid(), asks, true, true),
            (unsaid(), empty, false, true),
            (unclear(), asks, true, true),
            (unclear(), seven, false, false),
        ] {
            let result = judge(reply, &shelter(), question);
            assert_eq!(result.right, right, "{reply}");
            assert_eq!(result.right_call, right_call, "{reply}");
        }
    }

    #[test]
    fn a_long_list_is_cut_to_the_calls_that_are_close() {
        let all = catalogues().unwrap();
        let works = all.iter().find(|one| one.name == "works").unwrap();
        let list = calls(works, "archive the server s-1");
        assert!(list.chars().count() <= LIST_CHARS + 100);
        assert!(list.contains("POST /servers/{server_id}/archive"), "{list}");
        assert!(list.contains("(The list is cut: "), "{list}");
        assert!(!calls(&shelter(), "find the pet").contains("The list is cut"));
    }
}
