//! The registry: what a server keeps besides the threads themselves. A *run* is a request to a thread with a row of its own, so
//! that it can be queued, listed, joined and cancelled; an *assistant* is a graph with a configuration, in versions.
//!
//! Every row belongs to a tenant, and no call spans tenants, apart from those of the queue that executes runs.

mod assistants;
mod memory;
mod runs;

pub use assistants::{
    Assistant, AssistantChange, AssistantQuery, AssistantSort, CreatedAssistant, NewAssistant,
};
pub use memory::MemoryRegistry;
pub use runs::{
    CancelledRun, CreatedRun, NewRun, RunEnd, RunQuery, RunRow, RunStatus, TakenRun, WhenBusy,
};

use serde_json::Value as Json;

use crate::checkpoint::{BoxFuture, CheckpointResult, Page};
use crate::ids::{AssistantId, RunId, ThreadId, Timestamp};

/// Stores runs and assistants.
///
/// Every call is atomic. A call that is repeated because its reply was lost leaves the registry as one call would, apart from
/// [`take_runs`](Self::take_runs), which takes further runs, and [`change_assistant`](Self::change_assistant), which makes a
/// further version.
pub trait Registry: Send + Sync + 'static {
    /// Stores a run with its request, in one write. If a run with this id exists, nothing is stored, and it is returned.
    ///
    /// Runs of a thread are executed in the order in which they were created.
    fn create_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>>;

    /// Returns a run of the tenant.
    fn run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<Option<RunRow>>>;

    /// Returns the runs that match a query, newest first.
    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, CheckpointResult<Vec<RunRow>>>;

    /// Marks runs as running and returns them with their requests: at most `limit` of all tenants, the oldest first. Takes only
    /// runs that are pending and due, of each thread the oldest such run, and none of a thread that has a running one.
    fn take_runs(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<TakenRun>>>;

    /// Returns the time at which the next pending run is due; `None` if none is pending. It may lie in the past if the run waits
    /// for another run of its thread.
    fn next_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>>;

    /// Marks every running run as pending again, apart from those that are `held`, and returns how many there were. Only the owner
    /// of the queue may call this: what it does not hold is what a crash left, or what it was given in a reply that got lost.
    fn release_runs<'a>(
        &'a self,
        held: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Stores how a run ended. Returns whether it was pending or running until now; the first end stays.
    fn end_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Ends a pending run as interrupted, so that it never starts. Does nothing to a running one: its driver must stop it.
    fn cancel_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<CancelledRun>>;

    /// Deletes a run. Returns whether it existed.
    fn delete_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Deletes all runs of a thread. Returns how many there were.
    fn delete_runs<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Stores a new assistant as its version 1. If one with its id exists, nothing is stored, and it is returned.
    fn create_assistant<'a>(
        &'a self,
        assistant: &'a NewAssistant,
    ) -> BoxFuture<'a, CheckpointResult<CreatedAssistant>>;

    /// Returns the current version of an assistant.
    fn assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>>;

    /// Returns the current versions of the assistants that match a query.
    fn assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>>;

    /// Returns how many assistants match a query, on all pages.
    fn count_assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Applies a change as a new version, which becomes the current one. Its number is one higher than that of any version before.
    /// Returns `None` if there is no such assistant.
    fn change_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        change: &'a AssistantChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>>;

    /// Returns the versions of an assistant, newest first.
    fn assistant_versions<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>>;

    /// Makes a version the current one. Returns it; `None` if there is no such assistant or version.
    fn use_assistant_version<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        version: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>>;

    /// Deletes an assistant with all of its versions. Returns whether it existed.
    fn delete_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;
}

/// Whether a JSON value contains another: every field of an object, every element of an array in some place, and an equal scalar.
/// The rule of PostgreSQL's `@>`, without its exception for scalars in arrays.
pub fn json_contains(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => part.iter().all(|(name, value)| {
            whole
                .get(name)
                .is_some_and(|found| json_contains(found, value))
        }),
        (Json::Array(whole), Json::Array(part)) => part
            .iter()
            .all(|value| whole.iter().any(|found| json_contains(found, value))),
        (Json::Number(whole), Json::Number(part)) => {
            whole == part || whole.as_f64() == part.as_f64()
        }
        (whole, part) => whole == part,
    }
}

#[test]
fn containment_looks_into_objects_and_arrays() {
    use serde_json::json;
    let whole = json!({ "a": { "b": [1, { "c": 2, "d": 3 }] }, "e": null, "f": 1.0 });
    for part in [
        json!({}),
        json!({ "a": {} }),
        json!({ "a": { "b": [] } }),
        json!({ "a": { "b": [{ "c": 2 }] } }),
        json!({ "e": null }),
        json!({ "f": 1 }),
    ] {
        assert!(json_contains(&whole, &part), "{part}");
    }
    for part in [
        json!([]),
        json!({ "a": null }),
        json!({ "a": { "b": 1 } }),
        json!({ "a": { "b": [2] } }),
        json!({ "g": null }),
    ] {
        assert!(!json_contains(&whole, &part), "{part}");
    }
}
