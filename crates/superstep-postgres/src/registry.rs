//! The registry: runs, assistants, crons, keys, deliveries and audit logs.

mod assistants;
mod audit;
mod crons;
mod deliveries;
mod erasure;
mod keys;
mod runs;

use serde_json::Value as Json;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Page};
use superstep_core::registry::{
    ActiveRun, ApiKey, Assistant, AssistantChange, AssistantQuery, AttemptEnd, AuditEntry,
    AuditHead, CancelledRun, ChangedCron, ClaimedRequest, CreatedAssistant, CreatedCron,
    CreatedRun, CronChange, CronQuery, CronRow, CronTick, Delivery, DeliveryAttempt, DeliveryQuery,
    ErasedRows, FiredTick, NewAssistant, NewCron, NewRun, Registry, RequestKey, RunEnd, RunQuery,
    RunRow, TakenRun,
};
use superstep_core::{ApiKeyId, AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};
use tokio_postgres::Row;

use crate::Postgres;
use crate::fault::{Fault, PostgresError};
use crate::read::number;

impl Registry for Postgres {
    fn create_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        Box::pin(async move { Ok(runs::create(&self.pool, run, false).await?) })
    }

    fn begin_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        Box::pin(async move { Ok(runs::create(&self.pool, run, true).await?) })
    }

    fn run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<Option<RunRow>>> {
        Box::pin(async move { Ok(runs::find(&self.pool, tenant, id).await?) })
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, CheckpointResult<Vec<RunRow>>> {
        Box::pin(async move { Ok(runs::list(&self.pool, query).await?) })
    }

    fn active_runs<'a>(
        &'a self,
        tenant: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ActiveRun>>> {
        Box::pin(async move { Ok(runs::list_active(&self.pool, tenant, limit).await?) })
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
        Box::pin(async move { Ok(runs::take(&self.pool, now, limit, skipped).await?) })
    }

    fn next_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(runs::next_due(&self.pool).await?) })
    }

    fn release_runs<'a>(
        &'a self,
        held: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(runs::release(&self.pool, held, now).await?) })
    }

    fn touch_runs<'a>(
        &'a self,
        runs: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(runs::touch(&self.pool, runs, now).await?) })
    }

    fn release_idle_runs(
        &self,
        unchanged_since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(runs::release_idle(&self.pool, unchanged_since, now).await?) })
    }

    fn end_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(runs::end(&self.pool, tenant, id, end).await?) })
    }

    fn cancel_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<CancelledRun>> {
        Box::pin(async move { Ok(runs::cancel(&self.pool, tenant, id, now).await?) })
    }

    fn delete_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(runs::delete(&self.pool, tenant, id).await?) })
    }

    fn delete_runs<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(runs::delete_all(&self.pool, thread).await?) })
    }

    fn create_assistant<'a>(
        &'a self,
        assistant: &'a NewAssistant,
    ) -> BoxFuture<'a, CheckpointResult<CreatedAssistant>> {
        Box::pin(async move { Ok(assistants::create(&self.pool, assistant).await?) })
    }

    fn assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move { Ok(assistants::find(&self.pool, tenant, id).await?) })
    }

    fn assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        Box::pin(async move {
            let found = assistants::matching(&self.pool, query).await?;
            Ok(query.page_of(found))
        })
    }

    fn count_assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let found = assistants::matching(&self.pool, query).await?;
            Ok(found.len() as u64)
        })
    }

    fn change_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        change: &'a AssistantChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move { Ok(assistants::change(&self.pool, tenant, id, change, now).await?) })
    }

    fn assistant_versions<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        Box::pin(async move { Ok(assistants::versions(&self.pool, tenant, id, page).await?) })
    }

    fn use_assistant_version<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        version: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move {
            let used = assistants::use_version(&self.pool, tenant, id, version, now);
            Ok(used.await?)
        })
    }

    fn delete_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(assistants::delete(&self.pool, tenant, id).await?) })
    }

    fn create_cron<'a>(
        &'a self,
        cron: &'a NewCron,
    ) -> BoxFuture<'a, CheckpointResult<CreatedCron>> {
        Box::pin(async move { Ok(crons::create(&self.pool, cron).await?) })
    }

    fn cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<Option<CronRow>>> {
        Box::pin(async move { Ok(crons::find(&self.pool, tenant, id).await?) })
    }

    fn crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<Vec<CronRow>>> {
        Box::pin(async move {
            let found = crons::matching(&self.pool, query).await?;
            Ok(query.page_of(found))
        })
    }

    fn count_crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            let found = crons::matching(&self.pool, query).await?;
            Ok(found.len() as u64)
        })
    }

    fn change_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
        change: &'a CronChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<ChangedCron>> {
        Box::pin(async move { Ok(crons::change(&self.pool, tenant, id, change, now).await?) })
    }

    fn delete_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(crons::delete(&self.pool, tenant, id).await?) })
    }

    fn due_crons(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<CronRow>>> {
        Box::pin(async move { Ok(crons::due(&self.pool, now, limit).await?) })
    }

    fn next_cron_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(crons::next_due(&self.pool).await?) })
    }

    fn fire_cron<'a>(&'a self, tick: &'a CronTick) -> BoxFuture<'a, CheckpointResult<FiredTick>> {
        Box::pin(async move { Ok(crons::fire(&self.pool, tick).await?) })
    }

    fn create_api_key<'a>(&'a self, key: &'a ApiKey) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(keys::create(&self.pool, key).await?) })
    }

    fn api_key(&self, id: ApiKeyId) -> BoxFuture<'_, CheckpointResult<Option<ApiKey>>> {
        Box::pin(async move { Ok(keys::find(&self.pool, id).await?) })
    }

    fn api_keys<'a>(
        &'a self,
        tenant: &'a str,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ApiKey>>> {
        Box::pin(async move { Ok(keys::list(&self.pool, tenant, page).await?) })
    }

    fn expire_api_key<'a>(
        &'a self,
        tenant: &'a str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<ApiKey>>> {
        Box::pin(async move { Ok(keys::expire(&self.pool, tenant, id, at).await?) })
    }

    fn claim_request<'a>(
        &'a self,
        request: &'a RequestKey,
    ) -> BoxFuture<'a, CheckpointResult<ClaimedRequest>> {
        Box::pin(async move { Ok(keys::claim(&self.pool, request).await?) })
    }

    fn sweep_requests(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(keys::sweep(&self.pool, now, limit).await?) })
    }

    fn take_deliveries<'a>(
        &'a self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        Box::pin(async move { Ok(deliveries::take(&self.pool, now, again, limit, skipped).await?) })
    }

    fn end_attempt<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &'a AttemptEnd,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let ended = deliveries::end_attempt(&self.pool, tenant, id, attempt, end, now);
            Ok(ended.await?)
        })
    }

    fn repeat_delivery<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Delivery>>> {
        Box::pin(async move { Ok(deliveries::repeat(&self.pool, tenant, id, now).await?) })
    }

    fn deliveries<'a>(
        &'a self,
        query: &'a DeliveryQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        Box::pin(async move { Ok(deliveries::list(&self.pool, query).await?) })
    }

    fn next_delivery_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(deliveries::next_due(&self.pool).await?) })
    }

    fn sweep_deliveries(
        &self,
        unchanged_since: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(deliveries::sweep(&self.pool, unchanged_since, limit).await?) })
    }

    fn append_audit<'a>(
        &'a self,
        tenant: &'a str,
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        Box::pin(async move { Ok(audit::append(&self.pool, tenant, entries).await?) })
    }

    fn audit_head<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        Box::pin(async move { Ok(audit::head(&self.pool, tenant).await?) })
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<AuditEntry>>> {
        Box::pin(async move { Ok(audit::list(&self.pool, tenant, after, limit).await?) })
    }

    fn prune_audit<'a>(
        &'a self,
        tenant: &'a str,
        through: AuditHead,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(audit::prune(&self.pool, tenant, through).await?) })
    }

    fn audited_tenants(&self) -> BoxFuture<'_, CheckpointResult<Vec<String>>> {
        Box::pin(async move { Ok(audit::tenants(&self.pool).await?) })
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<ErasedRows>> {
        Box::pin(async move { Ok(erasure::erase(&self.pool, tenant).await?) })
    }
}

/// Reads JSON that is stored as bytes: PostgreSQL's own JSON types refuse NUL characters.
fn json(row: &Row, column: usize) -> Result<Json, Fault> {
    let bytes: &[u8] = row.get(column);
    Ok(serde_json::from_slice(bytes)?)
}

/// Reads a number that this program stored as an `u32`.
fn small_number(row: &Row, column: usize) -> u32 {
    u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX)
}

/// Reads a hash.
fn hash(row: &Row, column: usize) -> Result<[u8; 32], PostgresError> {
    let bytes: &[u8] = row.get(column);
    bytes.try_into().map_err(|_| PostgresError::Unknown {
        what: "a hash of length",
        number: number(bytes.len() as u64),
    })
}
