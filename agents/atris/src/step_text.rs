//! What the nodes of the agent did, in words for the history of a thread.

use archie_agent::printable::counted;
use serde_json::Value as Json;

use super::{EXECUTE_REQUEST, EXTRACT_CATEGORY, EXTRACT_PARAMS, GET_APIS, RESET_STATE, SELECT_API};

/// Returns what a run started with.
pub(super) fn describe_input(input: &Json) -> Option<String> {
    let question = input["query"].as_str()?;
    Some(format!("the question “{question}”"))
}

/// Returns what a node did, by the fields that it wrote.
pub(super) fn describe_step(node: &str, update: &Json) -> Option<String> {
    if let Some(why) = update["error"].as_str() {
        return Some(format!("could not go on: {why}"));
    }
    let names = |value: &Json| -> String {
        let names = value.as_array().into_iter().flatten();
        let names: Vec<_> = names.filter_map(Json::as_str).collect();
        names.join(", ")
    };
    Some(match node {
        EXTRACT_CATEGORY if update["categories"].is_array() => {
            format!(
                "understood that it is about {}",
                names(&update["categories"])
            )
        }
        GET_APIS => {
            let calls = update["apis"].as_array()?.len();
            format!("found {} that may answer it", counted(calls, "call"))
        }
        SELECT_API => format!(
            "chose the call “{}”",
            update["bestApi"]["tool_name"].as_str()?
        ),
        EXTRACT_PARAMS => {
            let parameters = update["parameters"].as_object()?;
            let known = parameters.iter().filter(|(_, value)| !value.is_null());
            let known: Vec<_> = known.map(|(name, _)| name.as_str()).collect();
            match known.is_empty() {
                true => "found no parameters".to_owned(),
                false => format!("found the parameters {}", known.join(", ")),
            }
        }
        EXECUTE_REQUEST => match update["selectedHost"].as_str() {
            Some(host) => format!("got the answer of {host}"),
            None => "got the answer".to_owned(),
        },
        RESET_STATE => "cleared what belonged to the question".to_owned(),
        _ => return None,
    })
}

#[test]
fn steps_of_a_question_are_told_in_words() {
    use serde_json::json;

    assert_eq!(
        describe_input(&json!({ "query": "who?" })).as_deref(),
        Some("the question “who?”")
    );
    for (node, update, text) in [
        (
            EXTRACT_CATEGORY,
            json!({ "categories": ["tracks", "users"] }),
            Some("understood that it is about tracks, users"),
        ),
        (
            GET_APIS,
            json!({ "apis": [{}] }),
            Some("found 1 call that may answer it"),
        ),
        (
            EXTRACT_PARAMS,
            json!({ "parameters": { "limit": 3, "user": null } }),
            Some("found the parameters limit"),
        ),
        (
            EXECUTE_REQUEST,
            json!({ "selectedHost": "api.example" }),
            Some("got the answer of api.example"),
        ),
        (
            EXECUTE_REQUEST,
            json!({ "error": "no such track" }),
            Some("could not go on: no such track"),
        ),
        (SELECT_API, json!({}), None),
        ("of_another_version", json!({}), None),
    ] {
        assert_eq!(describe_step(node, &update).as_deref(), text, "{node}");
    }
}
