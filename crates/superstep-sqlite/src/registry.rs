//! The registry: runs, assistants, crons, keys, deliveries and audit logs as rows.
//!
//! Every call but the erasure of a tenant is one transaction, so it happens as a whole or not at all. JSON is stored as text.

mod assistants;
mod audit;
mod crons;
mod deliveries;
mod erasure;
mod keys;
mod runs;

use rusqlite::{Connection, Row};
use serde_json::Value as Json;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Page};
use superstep_core::error::CheckpointError;
use superstep_core::registry::{
    ActiveRun, ApiKey, Assistant, AssistantChange, AssistantQuery, AttemptEnd, AuditEntry,
    AuditHead, CancelledRun, ChangedCron, ClaimedRequest, CreatedAssistant, CreatedCron,
    CreatedRun, CronChange, CronQuery, CronRow, CronTick, Delivery, DeliveryAttempt, DeliveryQuery,
    ErasedRows, FiredTick, NewAssistant, NewCron, NewRun, Registry, RequestKey, RunEnd, RunQuery,
    RunRow, TakenRun,
};
use superstep_core::{ApiKeyId, AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};

use crate::Sqlite;
use crate::fault::Fault;

impl Registry for Sqlite {
    fn create_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        let run = run.clone();
        Box::pin(async move { Ok(self.write(move |db| runs::create(db, &run)).await?) })
    }

    fn begin_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        let run = run.clone();
        Box::pin(async move { Ok(self.write(move |db| runs::begin(db, &run)).await?) })
    }

    fn run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<Option<RunRow>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move { Ok(self.read(move |db| runs::find(db, &tenant, id)).await?) })
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, CheckpointResult<Vec<RunRow>>> {
        let query = query.clone();
        Box::pin(async move { Ok(self.list(move |db| runs::list(db, &query)).await?) })
    }

    fn active_runs<'a>(
        &'a self,
        tenant: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ActiveRun>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            let read = move |db: &Connection| runs::list_active(db, &tenant, limit);
            Ok(self.list(read).await?)
        })
    }

    fn take_runs(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<TakenRun>>> {
        self.take_runs_except(now, limit, &[])
    }

    fn take_runs_except<'a>(
        &'a self,
        now: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<TakenRun>>> {
        let skipped = skipped.to_vec();
        Box::pin(async move {
            let taken = self.write(move |db| runs::take(db, now, limit, &skipped));
            Ok(taken.await?)
        })
    }

    fn next_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(self.read(runs::next_due).await?) })
    }

    fn release_runs<'a>(
        &'a self,
        held: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        let held = held.to_vec();
        Box::pin(async move { Ok(self.write(move |db| runs::release(db, &held, now)).await?) })
    }

    fn touch_runs<'a>(
        &'a self,
        runs: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let runs = runs.to_vec();
        Box::pin(async move { Ok(self.write(move |db| runs::touch(db, &runs, now)).await?) })
    }

    fn release_idle_runs(
        &self,
        unchanged_since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            Ok(self
                .write(move |db| runs::release_idle(db, unchanged_since, now))
                .await?)
        })
    }

    fn end_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let (tenant, end) = (tenant.to_owned(), end.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| runs::end(db, &tenant, id, &end))
                .await?)
        })
    }

    fn cancel_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<CancelledRun>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| runs::cancel(db, &tenant, id, now))
                .await?)
        })
    }

    fn delete_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let tenant = tenant.to_owned();
        Box::pin(async move { Ok(self.write(move |db| runs::delete(db, &tenant, id)).await?) })
    }

    fn delete_runs<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<u64>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.write(move |db| runs::delete_all(db, &thread)).await?) })
    }

    fn create_assistant<'a>(
        &'a self,
        assistant: &'a NewAssistant,
    ) -> BoxFuture<'a, CheckpointResult<CreatedAssistant>> {
        let new = assistant.clone();
        Box::pin(async move { Ok(self.write(move |db| assistants::create(db, &new)).await?) })
    }

    fn assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .read(move |db| assistants::find(db, &tenant, id))
                .await?)
        })
    }

    fn assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        let query = query.clone();
        Box::pin(async move {
            let find = move |db: &_| Ok(query.page_of(assistants::matching(db, &query)?));
            Ok(self.list(find).await?)
        })
    }

    fn count_assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        let query = query.clone();
        Box::pin(async move {
            let count = move |db: &_| Ok(assistants::matching(db, &query)?.len() as u64);
            Ok(self.list(count).await?)
        })
    }

    fn change_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        change: &'a AssistantChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        let (tenant, change) = (tenant.to_owned(), change.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| assistants::change(db, &tenant, id, &change, now))
                .await?)
        })
    }

    fn assistant_versions<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .list(move |db| assistants::versions(db, &tenant, id, page))
                .await?)
        })
    }

    fn use_assistant_version<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        version: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| assistants::use_version(db, &tenant, id, version, now))
                .await?)
        })
    }

    fn delete_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| assistants::delete(db, &tenant, id))
                .await?)
        })
    }

    fn create_cron<'a>(
        &'a self,
        cron: &'a NewCron,
    ) -> BoxFuture<'a, CheckpointResult<CreatedCron>> {
        let new = cron.clone();
        Box::pin(async move { Ok(self.write(move |db| crons::create(db, &new)).await?) })
    }

    fn cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<Option<CronRow>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move { Ok(self.read(move |db| crons::find(db, &tenant, id)).await?) })
    }

    fn crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<Vec<CronRow>>> {
        let query = query.clone();
        Box::pin(async move {
            let find = move |db: &_| Ok(query.page_of(crons::matching(db, &query)?));
            Ok(self.list(find).await?)
        })
    }

    fn count_crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        let query = query.clone();
        Box::pin(async move {
            let count = move |db: &_| Ok(crons::matching(db, &query)?.len() as u64);
            Ok(self.list(count).await?)
        })
    }

    fn change_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
        change: &'a CronChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<ChangedCron>> {
        let (tenant, change) = (tenant.to_owned(), change.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| crons::change(db, &tenant, id, &change, now))
                .await?)
        })
    }

    fn delete_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let tenant = tenant.to_owned();
        Box::pin(async move { Ok(self.write(move |db| crons::delete(db, &tenant, id)).await?) })
    }

    fn due_crons(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<CronRow>>> {
        Box::pin(async move { Ok(self.read(move |db| crons::due(db, now, limit)).await?) })
    }

    fn next_cron_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(self.read(crons::next_due).await?) })
    }

    fn fire_cron<'a>(&'a self, tick: &'a CronTick) -> BoxFuture<'a, CheckpointResult<FiredTick>> {
        let tick = tick.clone();
        Box::pin(async move { Ok(self.write(move |db| crons::fire(db, &tick)).await?) })
    }

    fn create_api_key<'a>(&'a self, key: &'a ApiKey) -> BoxFuture<'a, CheckpointResult<bool>> {
        let key = key.clone();
        Box::pin(async move { Ok(self.write(move |db| keys::create(db, &key)).await?) })
    }

    fn api_key(&self, id: ApiKeyId) -> BoxFuture<'_, CheckpointResult<Option<ApiKey>>> {
        Box::pin(async move { Ok(self.read(move |db| keys::find(db, id)).await?) })
    }

    fn api_keys<'a>(
        &'a self,
        tenant: &'a str,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ApiKey>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move { Ok(self.list(move |db| keys::list(db, &tenant, page)).await?) })
    }

    fn expire_api_key<'a>(
        &'a self,
        tenant: &'a str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<ApiKey>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| keys::expire(db, &tenant, id, at))
                .await?)
        })
    }

    fn claim_request<'a>(
        &'a self,
        request: &'a RequestKey,
    ) -> BoxFuture<'a, CheckpointResult<ClaimedRequest>> {
        let request = request.clone();
        Box::pin(async move { Ok(self.write(move |db| keys::claim(db, &request)).await?) })
    }

    fn sweep_requests(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.write(move |db| keys::sweep(db, now, limit)).await?) })
    }

    fn take_deliveries<'a>(
        &'a self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        let skipped = skipped.to_vec();
        Box::pin(async move {
            Ok(self
                .write(move |db| deliveries::take(db, now, again, limit, &skipped))
                .await?)
        })
    }

    fn end_attempt<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &'a AttemptEnd,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let (tenant, end) = (tenant.to_owned(), end.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| deliveries::end_attempt(db, &tenant, id, attempt, &end, now))
                .await?)
        })
    }

    fn repeat_delivery<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Delivery>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| deliveries::repeat(db, &tenant, id, now))
                .await?)
        })
    }

    fn deliveries<'a>(
        &'a self,
        query: &'a DeliveryQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        let query = query.clone();
        Box::pin(async move { Ok(self.list(move |db| deliveries::list(db, &query)).await?) })
    }

    fn next_delivery_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(self.read(deliveries::next_due).await?) })
    }

    fn sweep_deliveries(
        &self,
        unchanged_since: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            Ok(self
                .write(move |db| deliveries::sweep(db, unchanged_since, limit))
                .await?)
        })
    }

    fn append_audit<'a>(
        &'a self,
        tenant: &'a str,
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        let (tenant, entries) = (tenant.to_owned(), entries.to_vec());
        Box::pin(async move {
            Ok(self
                .write(move |db| audit::append(db, &tenant, &entries))
                .await?)
        })
    }

    fn audit_head<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        let tenant = tenant.to_owned();
        Box::pin(async move { Ok(self.read(move |db| audit::head(db, &tenant)).await?) })
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<AuditEntry>>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .list(move |db| audit::list(db, &tenant, after, limit))
                .await?)
        })
    }

    fn prune_audit<'a>(
        &'a self,
        tenant: &'a str,
        through: AuditHead,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        let tenant = tenant.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| audit::prune(db, &tenant, through))
                .await?)
        })
    }

    fn audited_tenants(&self) -> BoxFuture<'_, CheckpointResult<Vec<String>>> {
        Box::pin(async move { Ok(self.list(audit::tenants).await?) })
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<ErasedRows>> {
        Box::pin(async move { Ok(erasure::erase(self, tenant).await?) })
    }
}

/// Reads a JSON column.
fn json(row: &Row<'_>, column: usize) -> Result<Json, Fault> {
    Ok(serde_json::from_str(row.get_ref(column)?.as_str()?)?)
}

/// Writes JSON for a column. Refuses a value that [`json`] could not read again: such a run would look like damage, and would
/// make every attempt to take it from the queue fail.
fn json_text(value: &Json) -> Result<String, Fault> {
    if nesting(value) > NESTING_MAX {
        let why = format!("JSON is nested more than {NESTING_MAX} levels deep");
        return Err(CheckpointError::Query { why }.into());
    }
    Ok(serde_json::to_string(value)?)
}

fn nesting(value: &Json) -> usize {
    match value {
        Json::Array(elements) => 1 + elements.iter().map(nesting).max().unwrap_or(0),
        Json::Object(fields) => 1 + fields.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

/// What serde_json reads.
const NESTING_MAX: usize = 127;
