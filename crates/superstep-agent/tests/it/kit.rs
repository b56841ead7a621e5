//! What these tests share.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep::checkpoint::format::InterruptRecord;
use superstep::{Outcome, RunResult};
use superstep_llm::Script;

/// Arguments of most tools here.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// What to write.
    #[schemars(length(min = 1))]
    pub(crate) note: String,
}

/// A script of these replies, as JSON.
pub(crate) fn script(replies: Json) -> Arc<Script> {
    let text = serde_json::json!({ "replies": replies }).to_string();
    Arc::new(Script::parse("test", &text).unwrap())
}

pub(crate) fn questions<S>(stopped: &RunResult<S>) -> Vec<InterruptRecord> {
    match &stopped.outcome {
        Outcome::Paused(questions) => questions.clone(),
        other => panic!("not paused: {other:?}"),
    }
}

pub(crate) fn request(question: &InterruptRecord) -> Json {
    question.request.decode().unwrap()
}
