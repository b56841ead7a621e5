//! The reference registry: the rules of [`Registry`] over maps in memory.
//!
//! Other registries are compared with this one, so it is simple before it is fast: it scans all runs to find the next ones.

mod audit;
mod crons;
mod deliveries;
mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::checkpoint::{BoxFuture, CheckpointResult, Page};
use crate::ids::{ApiKeyId, AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};
use crate::lock::lock;
use crate::registry::{
    ActiveRun, ApiKey, Assistant, AssistantChange, AssistantQuery, AttemptEnd, AuditEntry,
    AuditHead, CancelledRun, ChangedCron, ClaimedRequest, CreatedAssistant, CreatedCron,
    CreatedRun, CronChange, CronQuery, CronRow, CronTick, Delivery, DeliveryAttempt, DeliveryQuery,
    ErasedRows, FiredTick, NewAssistant, NewCron, NewRun, Registry, RequestKey, RunEnd, RunQuery,
    RunRow, RunStatus, TakenRun, WhenBusy, json_contains,
};

/// Stores in memory what a server keeps besides the threads. A clone is another handle to the same rows.
#[derive(Clone, Default)]
pub struct MemoryRegistry {
    rows: Arc<Mutex<Rows>>,
}

impl MemoryRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the rows. Every change is complete before anything in it can panic, so a poisoned lock still guards sound data.
    fn lock(&self) -> MutexGuard<'_, Rows> {
        lock(&self.rows)
    }
}

impl fmt::Debug for MemoryRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.lock();
        f.debug_struct("MemoryRegistry")
            .field("runs", &rows.runs.len())
            .field("assistants", &rows.assistants.len())
            .field("crons", &rows.crons.len())
            .field("deliveries", &rows.deliveries.len())
            .finish()
    }
}

#[derive(Default)]
struct Rows {
    /// Runs by the number of their creation: the order of the map is the order of the queue, whatever the clocks of the callers say.
    runs: BTreeMap<u64, StoredRun>,
    /// Number of each run, by tenant and id.
    run_numbers: BTreeMap<(String, RunId), u64>,
    /// Highest number so far, also if its run was deleted.
    last_run: u64,
    /// Assistants by tenant and id.
    assistants: BTreeMap<(String, AssistantId), StoredAssistant>,
    /// Crons by tenant and id.
    crons: BTreeMap<(String, CronId), CronRow>,
    /// API keys in the order of their creation.
    api_keys: Vec<ApiKey>,
    /// Request keys by tenant, principal and key.
    requests: BTreeMap<(String, String, String), RequestKey>,
    /// Deliveries in the order in which they were stored. They outlive their runs.
    deliveries: Vec<Delivery>,
    /// Entries of the audit logs, by tenant.
    audit: BTreeMap<String, Vec<AuditEntry>>,
}

impl Rows {
    fn run(&self, tenant: &str, id: RunId) -> Option<&StoredRun> {
        let number = self.run_numbers.get(&(tenant.to_owned(), id))?;
        self.runs.get(number)
    }

    fn run_mut(&mut self, tenant: &str, id: RunId) -> Option<&mut StoredRun> {
        let number = self.run_numbers.get(&(tenant.to_owned(), id))?;
        self.runs.get_mut(number)
    }

    fn create_run(&mut self, new: &NewRun) -> CreatedRun {
        let tenant = new.thread.tenant();
        // Checked first: a caller that repeats its request must not get `Busy` because of its own run.
        if let Some(found) = self.run(tenant, new.id) {
            return CreatedRun::Exists(Box::new(found.row.clone()), found.request.clone());
        }
        let active = self.runs.values().map(|run| &run.row);
        let active = active.filter(|row| row.thread == new.thread && row.status.is_active());
        let before: Vec<RunId> = active.map(|row| row.id).collect();
        if new.when_busy == WhenBusy::Reject && !before.is_empty() {
            return CreatedRun::Busy;
        }
        self.last_run += 1;
        let number = self.last_run;
        self.run_numbers.insert((tenant.to_owned(), new.id), number);
        self.runs.insert(number, StoredRun::pending(new));
        CreatedRun::Stored(before)
    }

    fn begin_run(&mut self, new: &NewRun) -> CreatedRun {
        match self.create_run(new) {
            CreatedRun::Stored(before) if before.is_empty() => {
                if let Some(run) = self.run_mut(new.thread.tenant(), new.id) {
                    run.row = new.begun().row;
                }
                CreatedRun::Begun
            }
            created => created,
        }
    }

    fn take_runs(&mut self, now: Timestamp, limit: u32, skipped: &[String]) -> Vec<TakenRun> {
        let running = self
            .runs
            .values()
            .filter(|run| run.row.status == RunStatus::Running);
        let mut busy: BTreeSet<ThreadId> = running.map(|run| run.row.thread.clone()).collect();
        let mut taken = Vec::new();
        for run in self.runs.values_mut() {
            if taken.len() >= limit as usize {
                break;
            }
            let is_due = run.row.status == RunStatus::Pending && run.row.due <= now;
            // A run that is not due must not reserve its thread: later runs of the thread may be due before it.
            let is_skipped = skipped
                .iter()
                .any(|tenant| tenant == run.row.thread.tenant());
            if !is_due || is_skipped || !busy.insert(run.row.thread.clone()) {
                continue;
            }
            run.row.attempts += 1;
            run.mark(RunStatus::Running, now);
            taken.push(TakenRun {
                row: run.row.clone(),
                request: run.request.clone(),
            });
        }
        taken
    }

    /// Makes running runs pending again, if `is_released` says so of their rows. Returns how many there were.
    fn release(&mut self, now: Timestamp, is_released: impl Fn(&RunRow) -> bool) -> u64 {
        let mut released = 0;
        for run in self.runs.values_mut() {
            if run.row.status == RunStatus::Running && is_released(&run.row) {
                run.mark(RunStatus::Pending, now);
                released += 1;
            }
        }
        released
    }

    fn delete_run(&mut self, tenant: &str, id: RunId) -> bool {
        let number = self.run_numbers.remove(&(tenant.to_owned(), id));
        number.is_some_and(|number| self.runs.remove(&number).is_some())
    }

    fn delete_runs(&mut self, thread: &ThreadId) -> u64 {
        let before = self.runs.len();
        self.runs.retain(|_, run| run.row.thread != *thread);
        let left = &self.runs;
        self.run_numbers
            .retain(|_, number| left.contains_key(number));
        (before - left.len()) as u64
    }

    fn erase_tenant(&mut self, tenant: &str) -> ErasedRows {
        let mut erased = ErasedRows::default();
        let is_kept = |owner: &str, count: &mut u64| {
            let is_erased = owner == tenant;
            *count += u64::from(is_erased);
            !is_erased
        };
        self.runs
            .retain(|_, run| is_kept(run.row.thread.tenant(), &mut erased.runs));
        self.run_numbers.retain(|(owner, _), _| owner != tenant);
        self.assistants
            .retain(|(owner, _), _| is_kept(owner, &mut erased.assistants));
        self.crons
            .retain(|(owner, _), _| is_kept(owner, &mut erased.crons));
        self.deliveries
            .retain(|found| is_kept(found.new.thread.tenant(), &mut erased.deliveries));
        self.api_keys
            .retain(|key| is_kept(&key.tenant, &mut erased.api_keys));
        self.requests
            .retain(|(owner, ..), _| is_kept(owner, &mut erased.request_keys));
        erased
    }

    fn matching_assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> impl Iterator<Item = &'a Assistant> {
        let current = self.assistants.values().map(StoredAssistant::current);
        current.filter(move |found| found.tenant == query.tenant && query.matches(found))
    }
}

struct StoredRun {
    row: RunRow,
    request: Vec<u8>,
}

impl StoredRun {
    fn pending(new: &NewRun) -> Self {
        Self {
            row: new.pending_row(),
            request: new.request.clone(),
        }
    }

    fn mark(&mut self, status: RunStatus, now: Timestamp) {
        self.row.status = status;
        self.row.updated = now;
    }
}

fn matches(query: &RunQuery, row: &RunRow) -> bool {
    row.thread.tenant() == query.tenant
        && query
            .thread
            .as_ref()
            .is_none_or(|thread| *thread == row.thread)
        && (query.statuses.is_empty() || query.statuses.contains(&row.status))
        && query.ids.as_ref().is_none_or(|ids| ids.contains(&row.id))
        && query
            .metadata
            .as_ref()
            .is_none_or(|part| json_contains(&row.metadata, part))
}

struct StoredAssistant {
    /// Number of the current version, which is always one of `versions`.
    current: u32,
    versions: BTreeMap<u32, Assistant>,
}

impl StoredAssistant {
    fn new(first: Assistant) -> Self {
        Self {
            current: first.version,
            versions: BTreeMap::from([(first.version, first)]),
        }
    }

    fn current(&self) -> &Assistant {
        &self.versions[&self.current]
    }

    fn change(&mut self, change: &AssistantChange, now: Timestamp) -> Assistant {
        // The highest, not the current one: a number is never reused.
        let highest = self.versions.keys().next_back().copied().unwrap_or(0);
        let changed = change.applied(self.current(), highest + 1, now);
        self.current = changed.version;
        self.versions.insert(changed.version, changed.clone());
        changed
    }

    fn use_version(&mut self, version: u32, now: Timestamp) -> Option<Assistant> {
        let chosen = self.versions.get_mut(&version)?;
        chosen.updated = now;
        self.current = version;
        Some(chosen.clone())
    }
}

impl Registry for MemoryRegistry {
    fn create_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        Box::pin(async move { Ok(self.lock().create_run(run)) })
    }

    fn begin_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        Box::pin(async move { Ok(self.lock().begin_run(run)) })
    }

    fn run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<Option<RunRow>>> {
        Box::pin(async move {
            let rows = self.lock();
            Ok(rows.run(tenant, id).map(|run| run.row.clone()))
        })
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, CheckpointResult<Vec<RunRow>>> {
        Box::pin(async move {
            let rows = self.lock();
            let newest_first = rows.runs.values().rev().map(|run| &run.row);
            let found = newest_first.filter(|row| matches(query, row));
            let page = found.skip(query.page.offset as usize);
            Ok(page.take(query.page.limit as usize).cloned().collect())
        })
    }

    fn active_runs<'a>(
        &'a self,
        tenant: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ActiveRun>>> {
        Box::pin(async move {
            let rows = self.lock();
            let all = rows.runs.values().map(|run| &run.row);
            let active = all.filter(|row| row.thread.tenant() == tenant && row.status.is_active());
            let active = active.map(|row| ActiveRun {
                thread: row.thread.clone(),
                is_running: row.status == RunStatus::Running,
            });
            Ok(active.take(limit as usize).collect())
        })
    }

    fn take_runs(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<TakenRun>>> {
        Box::pin(async move { Ok(self.lock().take_runs(now, limit, &[])) })
    }

    fn take_runs_except<'a>(
        &'a self,
        now: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<TakenRun>>> {
        Box::pin(async move { Ok(self.lock().take_runs(now, limit, skipped)) })
    }

    fn next_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move {
            let rows = self.lock();
            let all = rows.runs.values().map(|run| &run.row);
            let pending = all.filter(|row| row.status == RunStatus::Pending);
            Ok(pending.map(|row| row.due).min())
        })
    }

    fn release_runs<'a>(
        &'a self,
        held: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.lock().release(now, |row| !held.contains(&row.id))) })
    }

    fn touch_runs<'a>(
        &'a self,
        runs: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let all = rows.runs.values_mut();
            let running = all.filter(|run| run.row.status == RunStatus::Running);
            for run in running.filter(|run| runs.contains(&run.row.id)) {
                run.mark(RunStatus::Running, now);
            }
            Ok(())
        })
    }

    fn release_idle_runs(
        &self,
        unchanged_since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        let is_idle = move |row: &RunRow| row.updated <= unchanged_since;
        Box::pin(async move { Ok(self.lock().release(now, is_idle)) })
    }

    fn end_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let found = rows.run_mut(tenant, id);
            let Some(run) = found.filter(|run| run.row.status.is_active()) else {
                return Ok(false);
            };
            // An active status is a caller's bug: storing it could start the run a second time.
            if end.status.is_active() {
                return Ok(false);
            }
            run.row.error = end.error.clone();
            run.mark(end.status, end.at);
            rows.store_deliveries(&end.deliveries);
            Ok(true)
        })
    }

    fn cancel_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<CancelledRun>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let Some(run) = rows.run_mut(tenant, id) else {
                return Ok(CancelledRun::Missing);
            };
            Ok(match run.row.status {
                RunStatus::Pending if run.row.attempts == 0 => {
                    run.mark(RunStatus::Interrupted, now);
                    CancelledRun::Withdrawn
                }
                RunStatus::Pending | RunStatus::Running => CancelledRun::Running,
                RunStatus::Success
                | RunStatus::Error
                | RunStatus::Timeout
                | RunStatus::Interrupted => CancelledRun::Ended,
            })
        })
    }

    fn delete_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(self.lock().delete_run(tenant, id)) })
    }

    fn delete_runs<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.lock().delete_runs(thread)) })
    }

    fn create_assistant<'a>(
        &'a self,
        assistant: &'a NewAssistant,
    ) -> BoxFuture<'a, CheckpointResult<CreatedAssistant>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let key = (assistant.tenant.clone(), assistant.id);
            if let Some(found) = rows.assistants.get(&key) {
                return Ok(CreatedAssistant::Exists(found.current().clone()));
            }
            let first = assistant.first_version();
            rows.assistants
                .insert(key, StoredAssistant::new(first.clone()));
            Ok(CreatedAssistant::Stored(first))
        })
    }

    fn assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move {
            let rows = self.lock();
            let found = rows.assistants.get(&(tenant.to_owned(), id));
            Ok(found.map(|found| found.current().clone()))
        })
    }

    fn assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        Box::pin(async move {
            let rows = self.lock();
            let found = rows.matching_assistants(query).cloned().collect();
            Ok(query.page_of(found))
        })
    }

    fn count_assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let rows = self.lock();
            let count = rows.matching_assistants(query).count();
            Ok(count as u64)
        })
    }

    fn change_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        change: &'a AssistantChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let found = rows.assistants.get_mut(&(tenant.to_owned(), id));
            Ok(found.map(|found| found.change(change, now)))
        })
    }

    fn assistant_versions<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        Box::pin(async move {
            let rows = self.lock();
            let Some(found) = rows.assistants.get(&(tenant.to_owned(), id)) else {
                return Ok(Vec::new());
            };
            let newest_first = found.versions.values().rev();
            let rest = newest_first.skip(page.offset as usize);
            Ok(rest.take(page.limit as usize).cloned().collect())
        })
    }

    fn use_assistant_version<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        version: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let found = rows.assistants.get_mut(&(tenant.to_owned(), id));
            Ok(found.and_then(|found| found.use_version(version, now)))
        })
    }

    fn delete_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let mut rows = self.lock();
            let found = rows.assistants.remove(&(tenant.to_owned(), id));
            Ok(found.is_some())
        })
    }

    fn create_cron<'a>(
        &'a self,
        cron: &'a NewCron,
    ) -> BoxFuture<'a, CheckpointResult<CreatedCron>> {
        Box::pin(async move { Ok(self.lock().create_cron(cron)) })
    }

    fn cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<Option<CronRow>>> {
        Box::pin(async move { Ok(self.lock().cron(tenant, id)) })
    }

    fn crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<Vec<CronRow>>> {
        Box::pin(async move {
            let rows = self.lock();
            let found = rows.matching_crons(query).cloned().collect();
            Ok(query.page_of(found))
        })
    }

    fn count_crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let rows = self.lock();
            let count = rows.matching_crons(query).count();
            Ok(count as u64)
        })
    }

    fn change_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
        change: &'a CronChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<ChangedCron>> {
        Box::pin(async move { Ok(self.lock().change_cron(tenant, id, change, now)) })
    }

    fn delete_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(self.lock().delete_cron(tenant, id)) })
    }

    fn due_crons(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<CronRow>>> {
        Box::pin(async move { Ok(self.lock().due_crons(now, limit)) })
    }

    fn next_cron_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(self.lock().next_cron_due()) })
    }

    fn fire_cron<'a>(&'a self, tick: &'a CronTick) -> BoxFuture<'a, CheckpointResult<FiredTick>> {
        Box::pin(async move { Ok(self.lock().fire_cron(tick)) })
    }

    fn create_api_key<'a>(&'a self, key: &'a ApiKey) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(self.lock().create_api_key(key)) })
    }

    fn api_key(&self, id: ApiKeyId) -> BoxFuture<'_, CheckpointResult<Option<ApiKey>>> {
        Box::pin(async move { Ok(self.lock().api_key(id)) })
    }

    fn api_keys<'a>(
        &'a self,
        tenant: &'a str,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ApiKey>>> {
        Box::pin(async move { Ok(self.lock().api_keys(tenant, page)) })
    }

    fn expire_api_key<'a>(
        &'a self,
        tenant: &'a str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<ApiKey>>> {
        Box::pin(async move { Ok(self.lock().expire_api_key(tenant, id, at)) })
    }

    fn claim_request<'a>(
        &'a self,
        request: &'a RequestKey,
    ) -> BoxFuture<'a, CheckpointResult<ClaimedRequest>> {
        Box::pin(async move { Ok(self.lock().claim_request(request)) })
    }

    fn sweep_requests(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.lock().sweep_requests(now, limit)) })
    }

    fn take_deliveries<'a>(
        &'a self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        Box::pin(async move { Ok(self.lock().take_deliveries(now, again, limit, skipped)) })
    }

    fn end_attempt<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &'a AttemptEnd,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(self.lock().end_attempt(tenant, id, attempt, end, now)) })
    }

    fn repeat_delivery<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Delivery>>> {
        Box::pin(async move { Ok(self.lock().repeat_delivery(tenant, id, now)) })
    }

    fn deliveries<'a>(
        &'a self,
        query: &'a DeliveryQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        Box::pin(async move { Ok(self.lock().deliveries(query)) })
    }

    fn next_delivery_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(self.lock().next_delivery_due()) })
    }

    fn sweep_deliveries(
        &self,
        unchanged_since: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.lock().sweep_deliveries(unchanged_since, limit)) })
    }

    fn append_audit<'a>(
        &'a self,
        tenant: &'a str,
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        Box::pin(async move { Ok(self.lock().append_audit(tenant, entries)) })
    }

    fn audit_head<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        Box::pin(async move { Ok(self.lock().audit_head(tenant)) })
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<AuditEntry>>> {
        Box::pin(async move { Ok(self.lock().audit(tenant, after, limit)) })
    }

    fn prune_audit<'a>(
        &'a self,
        tenant: &'a str,
        through: AuditHead,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.lock().prune_audit(tenant, through)) })
    }

    fn audited_tenants(&self) -> BoxFuture<'_, CheckpointResult<Vec<String>>> {
        Box::pin(async move { Ok(self.lock().audited_tenants()) })
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<ErasedRows>> {
        Box::pin(async move { Ok(self.lock().erase_tenant(tenant)) })
    }
}
