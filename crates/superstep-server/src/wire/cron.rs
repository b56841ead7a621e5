//! Crons.

use serde_json::{Value as Json, json};
use superstep::registry::{CronRow, RunRow};
use superstep::{RunId, ThreadId};

use crate::wire::{self, time};

/// Name of the argument that says what becomes of the threads of a cron's runs.
pub(crate) const ON_RUN_COMPLETED: &str = "on_run_completed";

/// Returns the id of the last run that a cron made; `None` if it has made none.
pub(crate) fn last_run_id(row: &CronRow) -> Option<RunId> {
    let due = row.last_tick?;
    Some(RunId::of_tick(&row.tenant, row.id, due))
}

/// Returns a cron as clients read it, with the last run that it made, if that is still there, and why its last tick made no run.
pub(crate) fn cron(row: &CronRow, last_run: Option<&RunRow>) -> Json {
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
        "last_run": last_run_id(row).map(|id| json!({
            "run_id": wire::uuid(id.to_bytes()),
            "due_at": row.last_tick.map(time),
            "thread_id": last_run.map(|run| run.thread.name()),
            "status": last_run.map(|run| wire::run_status(run.status)),
            "error": last_run.map(wire::run_error),
            "updated_at": last_run.map(|run| time(run.updated)),
        })),
        "last_error": row.error,
        "created_at": time(row.created),
        "updated_at": time(row.updated),
    })
}
