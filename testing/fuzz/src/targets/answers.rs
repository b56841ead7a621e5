//! An answer to a question, as a person types it. The first line is the question, as JSON, and the rest is what is typed.

use archie::fuzzing::read_answer;
use serde_json::Value as Json;

pub(super) fn run(bytes: &[u8]) {
    let Some(text) = super::text(bytes) else {
        return;
    };
    let (question, line) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(question) = serde_json::from_str::<Json>(question) else {
        return;
    };
    let kind = question["kind"].as_str().unwrap_or("question");
    let read = || read_answer(kind, &question["request"], question.get("schema"), line);
    assert_eq!(read(), read(), "a line is read in two ways");
}
