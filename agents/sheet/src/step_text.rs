//! What the nodes of the agent did, in words for the history of a thread.

use archie_agent::requested_tools;
use serde_json::Value as Json;

use super::{
    CHANGE_SET_NODE, INFORMER_NODE, OPEN_WORKBOOK_NODE, PLANNER_NODE, SAVE_RESULTS_NODE, TOOL_NODE,
};

/// Returns what an analysis started with.
pub(super) fn describe_input(input: &Json) -> Option<String> {
    let (problem, task) = (&input["problem"], &input["task"]);
    let first = |one: &Json, other: &Json| {
        let texts = [one, other].map(|text| text.as_str().unwrap_or_default().to_owned());
        texts.into_iter().find(|text| !text.is_empty())
    };
    let instruction = first(&problem["instruction"], &task["instruction"])?;
    let workbook = first(&problem["workbook"]["path"], &task["workbook"]);
    let workbook = workbook.map_or_else(String::new, |path| format!(" for {path}"));
    Some(format!("the instruction “{instruction}”{workbook}"))
}

/// Returns what a node did, by the fields that it wrote.
pub(super) fn describe_step(node: &str, update: &Json) -> Option<String> {
    let is_text = |name: &str| update[name].as_str().is_some_and(|text| !text.is_empty());
    Some(match node {
        OPEN_WORKBOOK_NODE => "opened the workbook".to_owned(),
        PLANNER_NODE => {
            let tools = requested_tools(&update["messages"]);
            match update["step"].as_u64() {
                _ if is_text("answer") => "finished its work".to_owned(),
                Some(step) if tools.is_empty() => format!("planned step {step}"),
                Some(step) => format!("planned step {step}: {}", tools.join(", ")),
                None => return None,
            }
        }
        TOOL_NODE => {
            let done = update["journal"].as_array()?.last()?;
            let (tool, step) = (done["tool"].as_str()?, done["step"].as_u64()?);
            match done["ok"].as_bool() {
                Some(false) => format!("ran {tool} of step {step}, which failed"),
                _ => format!("ran {tool} of step {step}"),
            }
        }
        INFORMER_NODE => "looked something up in the sheets".to_owned(),
        // The history has the answer.
        CHANGE_SET_NODE if !update["verdict"].is_null() => String::new(),
        CHANGE_SET_NODE => "checked the changes".to_owned(),
        SAVE_RESULTS_NODE => "saved the results".to_owned(),
        _ => return None,
    })
}

#[test]
fn steps_of_an_analysis_are_told_in_words() {
    use serde_json::json;

    let problem =
        json!({ "instruction": "Count them", "workbook": { "path": "sales.xlsx", "hash": "h" } });
    assert_eq!(
        describe_input(&json!({ "problem": problem })).as_deref(),
        Some("the instruction “Count them” for sales.xlsx")
    );
    let calls = json!([{ "type": "ai", "tool_calls": [{ "name": "PythonInterpreter" }] }]);
    for (node, update, text) in [
        (
            PLANNER_NODE,
            json!({ "step": 2, "messages": calls }),
            Some("planned step 2: PythonInterpreter"),
        ),
        (
            PLANNER_NODE,
            json!({ "step": 3, "answer": "Four." }),
            Some("finished its work"),
        ),
        (
            TOOL_NODE,
            json!({ "journal": [{ "step": 2, "tool": "PythonInterpreter", "ok": false }] }),
            Some("ran PythonInterpreter of step 2, which failed"),
        ),
        (TOOL_NODE, json!({ "messages": [] }), None),
        (
            CHANGE_SET_NODE,
            json!({ "checks": [] }),
            Some("checked the changes"),
        ),
        (CHANGE_SET_NODE, json!({ "verdict": {} }), Some("")),
    ] {
        assert_eq!(describe_step(node, &update).as_deref(), text, "{node}");
    }
}
