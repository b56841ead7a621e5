//! The registry: what a server keeps besides the threads themselves. A *run* is a request to a thread with a row of its own, so
//! that it can be queued, listed, joined and cancelled; an *assistant* is a graph with a configuration, in versions; a *cron*
//! makes a run at each tick of its schedule. A *delivery* tells a webhook of the end of a run; the *audit log* says who did what.
//!
//! Every row belongs to a tenant, and no call spans tenants, apart from those of the queue that executes runs, of the timer that
//! fires crons, of the outbox that attempts deliveries, of the sweeps, of the lookup of an API key, and of the list of tenants that
//! have an audit log.

mod assistants;
mod audit;
mod crons;
mod deliveries;
mod keys;
mod memory;
mod runs;

pub use assistants::{
    Assistant, AssistantChange, AssistantQuery, AssistantSort, CreatedAssistant, NewAssistant,
};
pub use audit::{AuditEntry, AuditHead};
pub use crons::{
    ChangedCron, CreatedCron, CronChange, CronQuery, CronRow, CronSort, CronTick, FiredTick,
    NewCron, TickRun,
};
pub use deliveries::{
    AttemptEnd, Delivery, DeliveryAttempt, DeliveryQuery, DeliveryStatus, NewDelivery,
};
pub use keys::{ApiKey, ClaimedRequest, RequestKey};
pub use memory::MemoryRegistry;
pub use runs::{
    ActiveRun, CancelledRun, CreatedRun, NewRun, RunEnd, RunQuery, RunRow, RunStatus, TakenRun,
    WhenBusy,
};

use serde_json::Value as Json;

use crate::checkpoint::{BoxFuture, CheckpointResult, Page};
use crate::ids::{ApiKeyId, AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};

/// Stores runs, assistants, crons, keys, deliveries and audit logs.
///
/// Every call but [`erase_tenant`](Self::erase_tenant) is atomic. A call that is repeated because its reply was lost leaves the registry as one call would, apart from
/// [`take_runs`](Self::take_runs) and [`take_deliveries`](Self::take_deliveries), which take further ones, and
/// [`change_assistant`](Self::change_assistant), which makes a further version.
pub trait Registry: Send + Sync + 'static {
    /// Stores a run with its request, in one write. If a run with this id exists, nothing is stored, and it is returned.
    ///
    /// Runs of a thread are executed in the order in which they were created.
    fn create_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>>;

    /// Stores a run as [`create_run`](Self::create_run) does, and if its thread has no active run, marks it as running, as if it had
    /// been [taken](Self::take_runs): one write less for a run that can be executed at once. Only for a run that is due.
    fn begin_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>>;

    /// Returns a run of the tenant.
    fn run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<Option<RunRow>>>;

    /// Returns the runs that match a query, newest first.
    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, CheckpointResult<Vec<RunRow>>>;

    /// Returns which threads of the tenant have pending and running runs: an element for each such run, at most `limit`, in no
    /// order. Much cheaper than their rows.
    fn active_runs<'a>(
        &'a self,
        tenant: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ActiveRun>>>;

    /// Marks runs as running and returns them with their requests: at most `limit` of all tenants, the oldest first. Takes only
    /// runs that are pending and due, of each thread the oldest such run, and none of a thread that has a running one.
    fn take_runs(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<TakenRun>>>;

    /// Takes runs as [`take_runs`](Self::take_runs) does, but none of the tenants that are `skipped`: those have as many running as
    /// they may.
    fn take_runs_except<'a>(
        &'a self,
        now: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<TakenRun>>>;

    /// Returns the time at which the next pending run is due; `None` if none is pending. It may lie in the past if the run waits
    /// for another run of its thread.
    fn next_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>>;

    /// Marks every running run as pending again, apart from those that are `held`, and returns how many there were. Only the owner
    /// of a queue may call this: what it does not hold is what a crash left, or what it was given in a reply that got lost. A queue
    /// of several processes uses [`release_idle_runs`](Self::release_idle_runs).
    fn release_runs<'a>(
        &'a self,
        held: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Marks running runs as changed now: they are still executed. For a queue of several processes.
    fn touch_runs<'a>(
        &'a self,
        runs: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>>;

    /// Marks running runs as pending again that did not change after a time, and returns how many there were. For a queue of several
    /// processes: whichever executed them is gone.
    fn release_idle_runs(
        &self,
        unchanged_since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Stores how a run ended. Returns whether it was pending or running until now; the first end stays.
    fn end_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Ends a pending run as interrupted, so that it never starts. Does nothing to one that was ever taken: its thread may be in the
    /// middle of it, so a driver must stop it, even if it was released since.
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

    /// Stores a new cron. If one with its id exists, nothing is stored, and it is returned.
    fn create_cron<'a>(&'a self, cron: &'a NewCron)
    -> BoxFuture<'a, CheckpointResult<CreatedCron>>;

    /// Returns a cron of the tenant.
    fn cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<Option<CronRow>>>;

    /// Returns the crons that match a query.
    fn crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<Vec<CronRow>>>;

    /// Returns how many crons match a query, on all pages.
    fn count_crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Changes a cron, unless it has changed since the caller read it: what is due next follows from what was read. See
    /// [`CronChange::applied`] for what a change does.
    fn change_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
        change: &'a CronChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<ChangedCron>>;

    /// Deletes a cron. Returns whether it existed. The runs that it made stay.
    fn delete_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Returns the crons that are due, of all tenants: at most `limit`, those first that are due the longest.
    fn due_crons(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<CronRow>>>;

    /// Returns the time at which the next cron is due, of all tenants; `None` if none is due ever again.
    fn next_cron_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>>;

    /// Fires a tick: moves the cron to its next one, and stores the run of this one, as [`create_run`](Self::create_run) does. Both
    /// are one write, so a tick is one run, whichever process dies and however many look at the cron at once. In the same write, the
    /// cron gets the time of the tick in [`CronRow::last_tick`] if it made a run, and the reason in [`CronRow::error`] if not. Writes
    /// nothing if the cron is no longer as the tick was made from.
    fn fire_cron<'a>(&'a self, tick: &'a CronTick) -> BoxFuture<'a, CheckpointResult<FiredTick>>;

    /// Stores an API key. Returns whether it was stored: `false` if one with its id exists, in whichever tenant.
    fn create_api_key<'a>(&'a self, key: &'a ApiKey) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Returns an API key of any tenant, expired or not: who presents a key is not known before.
    fn api_key(&self, id: ApiKeyId) -> BoxFuture<'_, CheckpointResult<Option<ApiKey>>>;

    /// Returns the API keys of a tenant, newest first.
    fn api_keys<'a>(
        &'a self,
        tenant: &'a str,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ApiKey>>>;

    /// Lets an API key expire at a time, unless it expires earlier already. Returns the key; `None` if there is no such key.
    fn expire_api_key<'a>(
        &'a self,
        tenant: &'a str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<ApiKey>>>;

    /// Stores the key of a request before the request takes effect, and says whether the same request came before.
    fn claim_request<'a>(
        &'a self,
        request: &'a RequestKey,
    ) -> BoxFuture<'a, CheckpointResult<ClaimedRequest>>;

    /// Deletes at most `limit` request keys that have expired. Returns how many.
    fn sweep_requests(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Takes deliveries to attempt them: at most `limit` of all tenants that are pending and due, those first that are due the
    /// longest, of each run only the oldest that is pending. None of the tenants that are `skipped`: as many of theirs are being
    /// attempted as may be at once. Counts an attempt and makes each due again at `again`: the caller reports the end of the
    /// attempt before then, and if it dies, another process tries.
    ///
    /// What a skipped tenant has waiting must not be read: it may be very much.
    fn take_deliveries<'a>(
        &'a self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>>;

    /// Stores what came of an attempt. Returns whether it did: not if the delivery was taken again or repeated since
    /// ([`Delivery::awaits_end_of`]), is not pending, or does not exist.
    fn end_attempt<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &'a AttemptEnd,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<bool>>;

    /// Makes a delivery pending and due now, whatever its status, as if it had never been attempted. Returns it; `None` if there is
    /// none.
    fn repeat_delivery<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Delivery>>>;

    /// Returns the deliveries that match a query, newest first.
    fn deliveries<'a>(
        &'a self,
        query: &'a DeliveryQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>>;

    /// Returns the time at which the next delivery can be taken, of all tenants; `None` if none is pending. Of each run only the
    /// oldest pending delivery counts: those behind it wait for it.
    fn next_delivery_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>>;

    /// Deletes at most `limit` confirmed deliveries that did not change after a time. Returns how many.
    fn sweep_deliveries(
        &self,
        unchanged_since: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<u64>>;

    /// Appends entries to a tenant's audit log if they continue it, see [`AuditHead::after`]: the first one has the next number and
    /// the hash of the last entry. Returns the end of the log, which is that of the last new entry if they were appended.
    fn append_audit<'a>(
        &'a self,
        tenant: &'a str,
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, CheckpointResult<AuditHead>>;

    /// Returns the end of a tenant's audit log, as stored next to the entries.
    fn audit_head<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<AuditHead>>;

    /// Returns entries of a tenant's audit log after a number, oldest first, at most `limit`.
    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<AuditEntry>>>;

    /// Deletes the entries of a tenant's audit log up to and including one, and returns how many there were. Deletes nothing unless
    /// the log has an entry with this number and this hash before its last one: the end of a log stays.
    fn prune_audit<'a>(
        &'a self,
        tenant: &'a str,
        through: AuditHead,
    ) -> BoxFuture<'a, CheckpointResult<u64>>;

    /// Returns the tenants that have an audit log, in order.
    fn audited_tenants(&self) -> BoxFuture<'_, CheckpointResult<Vec<String>>>;

    /// Deletes everything of a tenant but its audit log, runs in progress included, API keys and crons first. Returns how much it was.
    ///
    /// A store may do it in batches, so that others need not wait for the whole. After an error some may be deleted, and another call
    /// deletes the rest.
    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<ErasedRows>>;
}

/// What [`Registry::erase_tenant`] deleted, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErasedRows {
    /// Runs, ended or not.
    pub runs: u64,
    /// Assistants, each with its versions.
    pub assistants: u64,
    /// Crons.
    pub crons: u64,
    /// Deliveries to webhooks, whatever their status.
    pub deliveries: u64,
    /// API keys, also expired ones.
    pub api_keys: u64,
    /// Keys by which requests were repeated.
    pub request_keys: u64,
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
