//! How a run ended.

use std::sync::Arc;

use serde_json::Value as Json;
use superstep::graph::Definition;
use superstep::registry::{RunRow, RunStatus};

use crate::error::ApiResult;
use crate::start::final_values;
use crate::{Shared, wire};

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunResult {
    /// It finished with this state.
    Finished(Json),
    /// It waits for answers.
    Waiting {
        values: Json,
        /// The open interrupts: `{"id", "value", "response_schema"}`.
        interrupts: Vec<Json>,
    },
    Cancelled,
    Failed {
        /// Name of the error, as clients know it.
        error: String,
        message: String,
    },
}

/// Returns how a run ended.
pub(crate) async fn result_of(
    app: &Shared,
    graph: &Arc<Definition>,
    row: &RunRow,
) -> ApiResult<RunResult> {
    match row.status {
        RunStatus::Error | RunStatus::Timeout => {
            let error = wire::run_error(row);
            let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            return Ok(RunResult::Failed {
                error: text("error"),
                message: text("message"),
            });
        }
        RunStatus::Interrupted => return Ok(RunResult::Cancelled),
        RunStatus::Success | RunStatus::Pending | RunStatus::Running => {}
    }
    let mut values = final_values(app, graph, &row.thread, row).await?;
    let fields = values.as_object_mut();
    let interrupts = fields.and_then(|fields| fields.remove("__interrupt__"));
    Ok(match interrupts {
        Some(Json::Array(interrupts)) => RunResult::Waiting { values, interrupts },
        _ => RunResult::Finished(values),
    })
}

/// Returns what an interrupt asks. A node may ask in the form of Agent Inbox, which is a list with one request.
pub(crate) fn request_of(interrupt: &Json) -> &Json {
    let value = &interrupt["value"];
    match value.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => value,
    }
}

/// Returns what an interrupt asks, as a text for a person.
pub(crate) fn question_of(interrupt: &Json) -> String {
    let value = request_of(interrupt);
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let named = ["description", "question", "message", "text"];
    let mut named = named.iter().filter_map(|name| value.get(name)?.as_str());
    match named.find(|text| !text.is_empty()) {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

#[test]
fn a_question_is_the_text_that_a_person_can_read() {
    use serde_json::json;
    for (value, text) in [
        (json!("Really?"), "Really?"),
        (json!({ "description": "May I?", "config": {} }), "May I?"),
        (json!([{ "description": "May I?" }]), "May I?"),
        (json!({ "question": "Which?" }), "Which?"),
        (json!({ "description": "", "text": "Now?" }), "Now?"),
        (json!({ "a": 1 }), r#"{"a":1}"#),
    ] {
        assert_eq!(question_of(&json!({ "id": "1", "value": value })), text);
    }
}
