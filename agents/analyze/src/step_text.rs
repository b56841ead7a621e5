//! What the nodes of the agent did, in words for the history of a thread.

use archie_agent::printable::counted;
use archie_agent::requested_tools;
use serde_json::Value as Json;

use super::prompts::QUERY;
use super::{ANALYSIS_INTERRUPT, ANALYSIS_PREPARE, ANALYSIS_TOOLS, ECHO, READ_NOTES, SAVE_RESULT};

/// Returns what an analysis started with.
pub(super) fn describe_input(input: &Json) -> Option<String> {
    let question = input["userInput"].as_str()?.strip_prefix(QUERY)?;
    let notes = count(&input["fileContents"]) + count(&input["noteFiles"]);
    let notes = match notes {
        0 => String::new(),
        notes => format!(" and {}", counted(notes, "note")),
    };
    Some(format!("the question “{question}”{notes}"))
}

/// Returns what a node did, by the fields that it wrote.
pub(super) fn describe_step(node: &str, update: &Json) -> Option<String> {
    let is_text = |name: &str| update[name].as_str().is_some_and(|text| !text.is_empty());
    let requested = requested_tools(&update["toolMessages"]);
    Some(match node {
        ANALYSIS_PREPARE if is_text("stopped") => "stopped at the budget".to_owned(),
        ANALYSIS_PREPARE if is_text("analysisOutput") => {
            let claims = counted(count(&update["findings"]), "claim");
            format!("wrote the result with {claims}")
        }
        ANALYSIS_PREPARE if !requested.is_empty() => format!("requested {}", requested.join(", ")),
        ANALYSIS_PREPARE if is_text("currentAnalysisQuery") => "wrote the next question".to_owned(),
        // The history has the answer.
        ANALYSIS_INTERRUPT if is_text("userInput") => String::new(),
        ANALYSIS_TOOLS => format!(
            "made {}",
            counted(count(&update["toolMessages"]), "tool call")
        ),
        ECHO => "gave back the input, which asks for no analysis".to_owned(),
        READ_NOTES => format!("read {}", counted(count(&update["fileContents"]), "note")),
        SAVE_RESULT => "saved the result".to_owned(),
        _ => return None,
    })
}

fn count(value: &Json) -> usize {
    match value {
        Json::Array(items) => items.len(),
        Json::Object(fields) => fields.len(),
        _ => 0,
    }
}

#[test]
fn steps_of_an_interview_are_told_in_words() {
    use serde_json::json;

    let input = json!({ "userInput": "analyze: Which queue?", "fileContents": { "a.md": "", "b.txt": "" } });
    let started = describe_input(&input);
    assert_eq!(
        started.as_deref(),
        Some("the question “Which queue?” and 2 notes")
    );
    assert_eq!(describe_input(&json!({ "userInput": "hello" })), None);
    let calls = json!([{ "type": "ai", "tool_calls": [{ "name": "files__read" }] }]);
    for (node, update, text) in [
        (
            ANALYSIS_PREPARE,
            json!({ "currentAnalysisQuery": "How many?" }),
            Some("wrote the next question"),
        ),
        (
            ANALYSIS_PREPARE,
            json!({ "analysisOutput": "# Analysis", "findings": [{}, {}] }),
            Some("wrote the result with 2 claims"),
        ),
        (
            ANALYSIS_PREPARE,
            json!({ "toolMessages": calls }),
            Some("requested files__read"),
        ),
        (ANALYSIS_INTERRUPT, json!({ "userInput": "DONE" }), Some("")),
        (ANALYSIS_INTERRUPT, json!({ "other": 1 }), None),
        ("of_another_version", json!({}), None),
    ] {
        assert_eq!(describe_step(node, &update).as_deref(), text, "{node}");
    }
}
