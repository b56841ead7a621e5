//! Runs, and why they failed.

use serde_json::{Value as Json, json};
use superstep::registry::{RunRow, RunStatus};

use crate::wire::{self, time};

/// Name of the field of a run's arguments that clients read next to the arguments, not among them.
const STRATEGY: &str = "multitask_strategy";

/// Returns a run as clients read it.
pub(crate) fn run(row: &RunRow) -> Json {
    let mut kwargs = row.arguments.clone();
    let fields = kwargs.as_object_mut();
    let strategy = fields.and_then(|fields| fields.remove(STRATEGY));
    json!({
        "run_id": wire::uuid(row.id.to_bytes()),
        "thread_id": row.thread.name(),
        "assistant_id": wire::uuid(row.assistant.to_bytes()),
        "status": status(row.status),
        "metadata": row.metadata,
        "kwargs": kwargs,
        "multitask_strategy": strategy.unwrap_or_else(|| Json::from("enqueue")),
        "created_at": time(row.created),
        "updated_at": time(row.updated),
        "langsmith_session_name": null,
    })
}

/// Returns the name of a run's status.
fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Pending => "pending",
        RunStatus::Running => "running",
        RunStatus::Success => "success",
        RunStatus::Error => "error",
        RunStatus::Timeout => "timeout",
        RunStatus::Interrupted => "interrupted",
    }
}

/// Returns the status of runs with this name.
pub(crate) fn read_status(name: &str) -> Option<RunStatus> {
    RunStatus::ALL
        .into_iter()
        .find(|found| status(*found) == name)
}

/// Returns why a run failed or was cancelled, as `{"error", "message"}`; `null` if it did not. Clients know some errors by the names
/// that LangGraph gives them.
pub(crate) fn error(row: &RunRow) -> Json {
    let code = row.error.get("error").and_then(Json::as_str);
    let Some(code) = code else {
        return Json::Null;
    };
    let message = row.error.get("message").cloned().unwrap_or_default();
    json!({ "error": error_name(code), "message": message })
}

/// Returns the name under which clients know an error.
pub(crate) fn error_name(code: &str) -> &str {
    match code {
        "cancelled" => "UserInterrupt",
        "step-limit" => "GraphRecursionError",
        _ => code,
    }
}
