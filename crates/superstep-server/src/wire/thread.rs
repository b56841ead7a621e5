//! Threads as rows of a list.

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{AtLifetimeEnd, Status, ThreadRow};
use superstep::run::OpenInterrupt;
use superstep::{Seq, TaskId};

use crate::wire::{self, time};

/// What a thread is shown from.
#[derive(Debug)]
pub(crate) struct ThreadParts<'a> {
    pub(crate) row: &'a ThreadRow,
    /// `idle`, `busy`, `interrupted` or `error`.
    pub(crate) status: &'static str,
    /// What its last run was configured with, see [`wire::thread_config`]; `None` if nothing is known of it.
    pub(crate) config: Option<Json>,
    /// The state as clients read it; `null` if nothing has happened.
    pub(crate) values: Json,
    /// Why the last run failed; `null` if it did not.
    pub(crate) error: Json,
    /// Open interrupts by task, see [`interrupts_by_task`]; `None` if no run has left any or none.
    pub(crate) interrupts: Option<Json>,
}

/// Returns a thread as clients read it. Why it failed and what it waits for are shown once something has happened on it.
pub(crate) fn thread(parts: ThreadParts<'_>) -> Json {
    let row = parts.row;
    let config = parts
        .config
        .unwrap_or_else(|| match row.metadata.contains_key("assistant_id") {
            true => json!({ "configurable": {} }),
            false => json!({}),
        });
    let mut metadata = json!(row.metadata);
    if !row.graph.is_empty() && metadata.get("graph_id").is_none() {
        // Another program has run it, without the metadata that this server adds.
        metadata["graph_id"] = json!(row.graph);
    }
    let mut shown = json!({
        "thread_id": row.thread.name(),
        "created_at": time(row.created),
        "updated_at": time(row.updated),
        "state_updated_at": time(row.updated),
        "metadata": metadata,
        "config": config,
        "status": parts.status,
        "values": parts.values,
    });
    if row.head.seq > Seq(0) {
        shown["error"] = parts.error;
        if let Some(interrupts) = parts.interrupts {
            shown["interrupts"] = interrupts;
        }
    }
    shown
}

/// Returns the name of a thread's status, for a thread without active runs.
pub(crate) fn thread_status(status: Status) -> &'static str {
    match status {
        Status::Idle | Status::Deleted => "idle",
        Status::Running => "busy",
        Status::Paused | Status::Cancelled => "interrupted",
        Status::Failed | Status::StepLimit => "error",
    }
}

/// Returns the statuses of threads that are shown under this name.
pub(crate) fn read_thread_status(name: &str) -> Option<Vec<Status>> {
    let all = [
        Status::Idle,
        Status::Running,
        Status::Paused,
        Status::Failed,
        Status::Cancelled,
        Status::StepLimit,
    ];
    let found: Vec<Status> = all
        .into_iter()
        .filter(|status| thread_status(*status) == name)
        .collect();
    (!found.is_empty()).then_some(found)
}

/// Leaves the first interrupt of each task of the root graph, in the order of the tasks, for the reason of
/// [`first_of_each_task`](wire::first_of_each_task): tasks of a subgraph may wait together.
pub(crate) fn first_of_each_root_task(open: &mut Vec<OpenInterrupt>) {
    open.sort_by_key(|open| (waiting_task(open), open.interrupt.task));
    open.dedup_by_key(|open| waiting_task(open));
}

/// Returns the task of the root graph that waits for the answer of an interrupt.
fn waiting_task(open: &OpenInterrupt) -> TaskId {
    let outermost = open.interrupt.frame.segments().first();
    // A subgraph that lives as long as its thread does not say which task is in it.
    let waits = outermost.and_then(|entered| entered.task);
    waits.unwrap_or(open.interrupt.task)
}

/// Returns interrupts in lists, by the tasks of the root graph that wait for their answers.
pub(crate) fn interrupts_by_task(mut interrupts: Vec<OpenInterrupt>) -> Json {
    first_of_each_root_task(&mut interrupts);
    let shown = interrupts.iter().map(|open| {
        let task = wire::uuid(waiting_task(open).to_bytes());
        // Agent Inbox reads these, and has no button to ignore a request with `action_requests`.
        (task, json!([wire::interrupt_as_asked(&open.interrupt)]))
    });
    Json::Object(shown.collect::<Map<_, _>>())
}

/// Returns how long a thread is kept; `null` without a limit.
pub(crate) fn lifetime(row: &ThreadRow) -> Json {
    let Some(lifetime) = row.lifetime else {
        return Json::Null;
    };
    let strategy = match lifetime.at_end {
        AtLifetimeEnd::Delete => "delete",
        AtLifetimeEnd::KeepLatest => "keep_latest",
    };
    json!({
        "strategy": strategy,
        // Rounded: the millisecond by which a chosen lifetime may be longer is not shown.
        "ttl_minutes": (lifetime.ms as f64 / 6.0).round() / 10_000.0,
        "expires_at": time(row.updated.plus_ms(lifetime.ms)),
    })
}

/// Leaves only these fields in an object; all of them if none is named.
pub(crate) fn select(object: &mut Json, fields: &[String]) {
    if let Some(object) = object.as_object_mut()
        && !fields.is_empty()
    {
        object.retain(|name, _| fields.contains(name));
    }
}
