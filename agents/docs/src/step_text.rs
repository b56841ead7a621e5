//! What the nodes of the agent did, in words for the history of a thread.

use archie_agent::printable::counted;
use serde_json::Value as Json;

use super::workflow::{
    ANALYZE_INITIAL, ANSWER_QUESTION, APPROVE_ITERATION, EVALUATE_CLARITY, FINALIZE_OUTPUT,
    GENERATE_QUESTIONS, REFINE_ANALYSIS,
};
use super::{
    AGGREGATE_RESULTS, CREATE_EXECUTION_CONTEXT, EXECUTE_AGENTS, OPEN_TASK, SAVE_PAGES,
    SCAN_PROJECT_STRUCTURE, SHARE_QUESTIONS,
};

/// Returns what a run started with.
pub(super) fn describe_input(input: &Json) -> Option<String> {
    let task = input["task"]["folder"].as_str();
    let folder = input["root"].as_str().filter(|root| !root.is_empty());
    folder.or(task).map(|folder| format!("the folder {folder}"))
}

/// Returns what a node did, by the fields that it wrote.
pub(super) fn describe_step(node: &str, update: &Json) -> Option<String> {
    let count = |name: &str| update[name].as_array().map_or(0, Vec::len);
    if node == ANSWER_QUESTION.name() {
        return Some("answered a question".to_owned());
    }
    Some(match node {
        OPEN_TASK => "opened the folder".to_owned(),
        SCAN_PROJECT_STRUCTURE => {
            let files = update["scan"]["fileCount"].as_u64().unwrap_or_default();
            format!("scanned {}", counted(files as usize, "file"))
        }
        CREATE_EXECUTION_CONTEXT => format!("planned {}", counted(count("tasks"), "page")),
        ANALYZE_INITIAL => "wrote the first version of a page".to_owned(),
        EVALUATE_CLARITY => match update["clarityScore"].as_u64() {
            Some(score) => format!("scored it {score} of 100"),
            None => "scored it".to_owned(),
        },
        GENERATE_QUESTIONS => {
            let questions = counted(count("selfQuestions"), "question");
            format!("found {questions} that the page leaves open")
        }
        // The history has the answer.
        APPROVE_ITERATION => String::new(),
        REFINE_ANALYSIS => "wrote a better version".to_owned(),
        FINALIZE_OUTPUT => "finished the page".to_owned(),
        SHARE_QUESTIONS => "looked for questions that other pages can answer".to_owned(),
        EXECUTE_AGENTS => format!("collected {}", counted(count("results"), "page")),
        AGGREGATE_RESULTS => "added up the scores and the cost".to_owned(),
        SAVE_PAGES => "saved the pages".to_owned(),
        _ => return None,
    })
}

#[test]
fn steps_of_a_page_are_told_in_words() {
    use serde_json::json;

    let input = json!({ "root": "/people/ada/shop", "task": null });
    assert_eq!(
        describe_input(&input).as_deref(),
        Some("the folder /people/ada/shop")
    );
    for (node, update, text) in [
        (
            SCAN_PROJECT_STRUCTURE,
            json!({ "scan": { "fileCount": 1_240 } }),
            Some("scanned 1,240 files"),
        ),
        (
            EVALUATE_CLARITY,
            json!({ "clarityScore": 62 }),
            Some("scored it 62 of 100"),
        ),
        (
            GENERATE_QUESTIONS,
            json!({ "selfQuestions": ["Why?"] }),
            Some("found 1 question that the page leaves open"),
        ),
        (
            ANSWER_QUESTION.name(),
            json!({}),
            Some("answered a question"),
        ),
        ("of_another_version", json!({}), None),
    ] {
        assert_eq!(describe_step(node, &update).as_deref(), text, "{node}");
    }
}
