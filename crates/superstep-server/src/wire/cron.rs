//! Crons.

use serde_json::{Value as Json, json};
use superstep::ThreadId;
use superstep::registry::CronRow;

use crate::wire::{self, time};

/// Name of the argument that says what becomes of the threads of a cron's runs.
pub(crate) const ON_RUN_COMPLETED: &str = "on_run_completed";

/// Returns a cron as clients read it, and why its last tick made no run.
pub(crate) fn cron(row: &CronRow) -> Json {
    let user = (!row.principal.is_empty()).then_some(&row.principal);
    // What becomes of a thread is a question only if each run has one of its own.
    let on_run_completed = match row.thread {
        Some(_) => None,
        None => row.arguments.get(ON_RUN_COMPLETED),
    };
    json!({
        "cron_id": wire::uuid(row.id.to_bytes()),
        "assistant_id": wire::uuid(row.assistant.to_bytes()),
        "thread_id": row.thread.as_ref().map(ThreadId::name),
        "user_id": user,
        "schedule": row.schedule,
        "timezone": row.zone,
        "end_time": row.end.map(time),
        "next_run_date": row.next.map(time),
        "enabled": row.is_enabled,
        "on_run_completed": on_run_completed,
        "payload": row.arguments,
        "metadata": row.metadata,
        "last_error": row.error,
        "created_at": time(row.created),
        "updated_at": time(row.updated),
    })
}
