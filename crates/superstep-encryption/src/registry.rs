//! A registry that stores ciphertext and returns what was stored.
//!
//! It encrypts requests, arguments, metadata, errors, configurations, contexts, descriptions, and the addresses and bodies of deliveries.
//! In clear stay ids, names of assistants and of those who acted, schedules, statuses and times, and the names of events: the inner
//! registry finds and sorts rows by them. API keys are hashes already. The audit log stays in clear, because it has to be checked after
//! its tenant's keys are destroyed; the server writes ids, paths and outcomes into it, and nothing that users wrote.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Page};
use superstep_core::registry::{
    ActiveRun, ApiKey, Assistant, AssistantChange, AssistantQuery, AttemptEnd, AuditEntry,
    AuditHead, CancelledRun, ChangedCron, ClaimedRequest, CreatedAssistant, CreatedCron,
    CreatedRun, CronChange, CronQuery, CronRow, CronTick, Delivery, DeliveryAttempt, DeliveryQuery,
    ErasedRows, FiredTick, NewAssistant, NewCron, NewDelivery, NewRun, Registry, RequestKey,
    RunEnd, RunQuery, RunRow, TakenRun, TickRun,
};
use superstep_core::{ApiKeyId, AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};

use crate::body::BodyPlace;
use crate::cipher::Place;
use crate::encryption::{Encryption, Reader};
use crate::error::EncryptionError;
use crate::fields::{
    SearchableFields, hide_object, hide_text, hide_whole, show_object, show_text, show_whole,
};
use crate::keyring::TenantKeys;

/// A [`Registry`] in front of another one, which gets nothing but ciphertext of what users write.
#[derive(Clone)]
pub struct EncryptedRegistry {
    inner: Arc<dyn Registry>,
    encryption: Encryption,
}

type Opened<T> = Result<T, EncryptionError>;

impl EncryptedRegistry {
    /// Creates a registry that encrypts what it stores in another one.
    pub fn new(inner: Arc<dyn Registry>, encryption: Encryption) -> Self {
        Self { inner, encryption }
    }

    async fn hider(&self, tenant: &str) -> Opened<Hider<'_>> {
        Ok(Hider {
            keys: self.encryption.keys_to_write(tenant).await?,
            searchable: self.encryption.searchable(),
        })
    }

    async fn show<T>(
        &self,
        tenant: &str,
        show: impl Fn(&Reader<'_>) -> Opened<T>,
    ) -> CheckpointResult<T> {
        Ok(self.encryption.read(tenant, show).await?)
    }

    async fn show_created(
        &self,
        tenant: &str,
        created: CreatedRun,
    ) -> CheckpointResult<CreatedRun> {
        match &created {
            CreatedRun::Exists(row, request) => {
                let show = |reader: &Reader<'_>| {
                    let request = show_request(reader, row, request)?;
                    Ok(CreatedRun::Exists(
                        Box::new(show_run(reader, row)?),
                        request,
                    ))
                };
                self.show(tenant, show).await
            }
            CreatedRun::Stored(_) | CreatedRun::Begun | CreatedRun::Busy => Ok(created),
        }
    }

    async fn show_taken(&self, taken: Vec<TakenRun>) -> CheckpointResult<Vec<TakenRun>> {
        let mut shown = Vec::with_capacity(taken.len());
        for run in &taken {
            let show = |reader: &Reader<'_>| {
                Ok(TakenRun {
                    row: show_run(reader, &run.row)?,
                    request: show_request(reader, &run.row, &run.request)?,
                })
            };
            shown.push(self.show(run.row.thread.tenant(), show).await?);
        }
        Ok(shown)
    }

    async fn show_assistant(
        &self,
        found: Option<Assistant>,
    ) -> CheckpointResult<Option<Assistant>> {
        match found {
            None => Ok(None),
            Some(found) => {
                let show = |reader: &Reader<'_>| show_assistant(reader, &found);
                self.show(&found.tenant, show).await.map(Some)
            }
        }
    }

    async fn show_assistants(
        &self,
        tenant: &str,
        found: Vec<Assistant>,
    ) -> CheckpointResult<Vec<Assistant>> {
        let show = |reader: &Reader<'_>| {
            let shown = found.iter().map(|row| show_assistant(reader, row));
            shown.collect()
        };
        self.show(tenant, show).await
    }

    async fn show_cron(&self, found: &CronRow) -> CheckpointResult<CronRow> {
        let show = |reader: &Reader<'_>| show_cron(reader, found);
        self.show(&found.tenant, show).await
    }

    async fn show_crons(&self, found: Vec<CronRow>) -> CheckpointResult<Vec<CronRow>> {
        let mut shown = Vec::with_capacity(found.len());
        for row in &found {
            shown.push(self.show_cron(row).await?);
        }
        Ok(shown)
    }

    async fn show_deliveries(&self, found: Vec<Delivery>) -> CheckpointResult<Vec<Delivery>> {
        let mut shown = Vec::with_capacity(found.len());
        for row in &found {
            let show = |reader: &Reader<'_>| show_delivery(reader, row);
            shown.push(self.show(row.new.thread.tenant(), show).await?);
        }
        Ok(shown)
    }

    fn check(&self, metadata: Option<&Json>) -> Opened<()> {
        self.encryption.searchable().check_part(metadata)
    }
}

/// Encrypts the parts of rows.
struct Hider<'a> {
    keys: Arc<TenantKeys>,
    searchable: &'a SearchableFields,
}

impl Hider<'_> {
    fn object(&self, place: &Place, object: &Json) -> Json {
        hide_object(&self.keys, self.searchable, place, object)
    }

    fn json(&self, place: &Place, json: &Json) -> Json {
        hide_whole(&self.keys, place, json)
    }

    fn text(&self, place: &Place, text: &str) -> String {
        hide_text(&self.keys, place, text)
    }

    fn run(&self, run: &NewRun) -> NewRun {
        let (tenant, id) = (run.thread.tenant(), run.id);
        NewRun {
            request: BodyPlace::request(&run.thread, id).hide(&self.keys, &run.request),
            arguments: self.json(&run_place(tenant, id, "arguments"), &run.arguments),
            metadata: self.object(&run_place(tenant, id, "metadata"), &run.metadata),
            ..run.clone()
        }
    }

    fn end(&self, tenant: &str, id: RunId, end: &RunEnd) -> RunEnd {
        let deliveries = end.deliveries.iter();
        RunEnd {
            error: self.json(&run_place(tenant, id, "error"), &end.error),
            deliveries: deliveries.map(|new| self.delivery(new)).collect(),
            ..end.clone()
        }
    }

    fn delivery(&self, new: &NewDelivery) -> NewDelivery {
        let place = |what| delivery_place(new.thread.tenant(), new.id, what);
        NewDelivery {
            address: self.text(&place("address"), &new.address),
            body: self.text(&place("body"), &new.body),
            ..new.clone()
        }
    }

    fn attempt_end(&self, tenant: &str, id: DeliveryId, end: &AttemptEnd) -> AttemptEnd {
        let hide = |error: &String| self.text(&delivery_place(tenant, id, "error"), error);
        match end {
            AttemptEnd::Delivered => AttemptEnd::Delivered,
            AttemptEnd::Retry { error, due } => AttemptEnd::Retry {
                error: hide(error),
                due: *due,
            },
            AttemptEnd::Dead { error } => AttemptEnd::Dead { error: hide(error) },
        }
    }

    fn assistant(&self, new: &NewAssistant) -> NewAssistant {
        let place = |what| assistant_place(&new.tenant, new.id, what);
        NewAssistant {
            description: self.text(&place("description"), &new.description),
            config: self.json(&place("config"), &new.config),
            context: self.json(&place("context"), &new.context),
            metadata: self.object(&place("metadata"), &new.metadata),
            ..new.clone()
        }
    }

    fn assistant_change(
        &self,
        tenant: &str,
        id: AssistantId,
        change: &AssistantChange,
    ) -> AssistantChange {
        let place = |what| assistant_place(tenant, id, what);
        let json =
            |what, json: &Option<Json>| json.as_ref().map(|json| self.json(&place(what), json));
        let description = change.description.as_ref();
        let metadata = change.metadata.as_ref();
        AssistantChange {
            description: description.map(|text| self.text(&place("description"), text)),
            config: json("config", &change.config),
            context: json("context", &change.context),
            metadata: metadata.map(|metadata| self.object(&place("metadata"), metadata)),
            ..change.clone()
        }
    }

    fn cron(&self, new: &NewCron) -> NewCron {
        let place = |what| cron_place(&new.tenant, new.id, what);
        NewCron {
            arguments: self.json(&place("arguments"), &new.arguments),
            metadata: self.object(&place("metadata"), &new.metadata),
            ..new.clone()
        }
    }

    fn cron_change(&self, tenant: &str, id: CronId, change: &CronChange) -> CronChange {
        let place = |what| cron_place(tenant, id, what);
        let (arguments, metadata) = (change.arguments.as_ref(), change.metadata.as_ref());
        CronChange {
            arguments: arguments.map(|json| self.json(&place("arguments"), json)),
            metadata: metadata.map(|json| self.object(&place("metadata"), json)),
            ..change.clone()
        }
    }

    fn tick(&self, tick: &CronTick) -> CronTick {
        let run = match &tick.run {
            TickRun::Run(run) => TickRun::Run(Box::new(self.run(run))),
            TickRun::Failed(error) => {
                let place = cron_place(&tick.tenant, tick.cron, "error");
                TickRun::Failed(self.json(&place, error))
            }
        };
        CronTick {
            run,
            ..tick.clone()
        }
    }
}

fn run_place(tenant: &str, id: RunId, what: &str) -> Place {
    Place::new("run", tenant).bytes(&id.to_bytes()).text(what)
}

fn delivery_place(tenant: &str, id: DeliveryId, what: &str) -> Place {
    Place::new("delivery", tenant)
        .bytes(&id.to_bytes())
        .text(what)
}

fn assistant_place(tenant: &str, id: AssistantId, what: &str) -> Place {
    Place::new("assistant", tenant)
        .bytes(&id.to_bytes())
        .text(what)
}

fn cron_place(tenant: &str, id: CronId, what: &str) -> Place {
    Place::new("cron", tenant).bytes(&id.to_bytes()).text(what)
}

fn show_run(reader: &Reader<'_>, row: &RunRow) -> Opened<RunRow> {
    let what = format!("run `{}`", row.id);
    let place = |part| run_place(row.thread.tenant(), row.id, part);
    Ok(RunRow {
        arguments: show_whole(reader, &place("arguments"), &row.arguments, &what)?,
        metadata: show_object(reader, &place("metadata"), &row.metadata, &what)?,
        error: show_whole(reader, &place("error"), &row.error, &what)?,
        ..row.clone()
    })
}

fn show_request(reader: &Reader<'_>, row: &RunRow, request: &[u8]) -> Opened<Vec<u8>> {
    BodyPlace::request(&row.thread, row.id).show(reader, request)
}

fn show_delivery(reader: &Reader<'_>, row: &Delivery) -> Opened<Delivery> {
    let new = &row.new;
    let what = || format!("delivery `{}`", new.id);
    let place = |part| delivery_place(new.thread.tenant(), new.id, part);
    Ok(Delivery {
        new: NewDelivery {
            address: show_text(reader, &place("address"), &new.address, what)?,
            body: show_text(reader, &place("body"), &new.body, what)?,
            ..new.clone()
        },
        error: show_text(reader, &place("error"), &row.error, what)?,
        ..row.clone()
    })
}

fn show_assistant(reader: &Reader<'_>, row: &Assistant) -> Opened<Assistant> {
    let what = format!("assistant `{}`", row.id);
    let place = |part| assistant_place(&row.tenant, row.id, part);
    let text = || what.clone();
    Ok(Assistant {
        description: show_text(reader, &place("description"), &row.description, text)?,
        config: show_whole(reader, &place("config"), &row.config, &what)?,
        context: show_whole(reader, &place("context"), &row.context, &what)?,
        metadata: show_object(reader, &place("metadata"), &row.metadata, &what)?,
        ..row.clone()
    })
}

fn show_cron(reader: &Reader<'_>, row: &CronRow) -> Opened<CronRow> {
    let what = format!("cron `{}`", row.id);
    let place = |part| cron_place(&row.tenant, row.id, part);
    // The inner registry writes this one itself, and it says nothing.
    let error = match row.error == CronTick::busy_error() {
        true => row.error.clone(),
        false => show_whole(reader, &place("error"), &row.error, &what)?,
    };
    Ok(CronRow {
        arguments: show_whole(reader, &place("arguments"), &row.arguments, &what)?,
        metadata: show_object(reader, &place("metadata"), &row.metadata, &what)?,
        error,
        ..row.clone()
    })
}

type Answer<'a, T> = BoxFuture<'a, CheckpointResult<T>>;

impl Registry for EncryptedRegistry {
    fn create_run<'a>(&'a self, run: &'a NewRun) -> Answer<'a, CreatedRun> {
        Box::pin(async move {
            let tenant = run.thread.tenant();
            let hidden = self.hider(tenant).await?.run(run);
            let created = self.inner.create_run(&hidden).await?;
            self.show_created(tenant, created).await
        })
    }

    fn begin_run<'a>(&'a self, run: &'a NewRun) -> Answer<'a, CreatedRun> {
        Box::pin(async move {
            let tenant = run.thread.tenant();
            let hidden = self.hider(tenant).await?.run(run);
            let created = self.inner.begin_run(&hidden).await?;
            self.show_created(tenant, created).await
        })
    }

    fn run<'a>(&'a self, tenant: &'a str, id: RunId) -> Answer<'a, Option<RunRow>> {
        Box::pin(async move {
            let Some(row) = self.inner.run(tenant, id).await? else {
                return Ok(None);
            };
            let show = |reader: &Reader<'_>| show_run(reader, &row);
            self.show(tenant, show).await.map(Some)
        })
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> Answer<'a, Vec<RunRow>> {
        Box::pin(async move {
            self.check(query.metadata.as_ref())?;
            let rows = self.inner.runs(query).await?;
            let show = |reader: &Reader<'_>| rows.iter().map(|row| show_run(reader, row)).collect();
            self.show(&query.tenant, show).await
        })
    }

    fn active_runs<'a>(&'a self, tenant: &'a str, limit: u32) -> Answer<'a, Vec<ActiveRun>> {
        self.inner.active_runs(tenant, limit)
    }

    fn take_runs(&self, now: Timestamp, limit: u32) -> Answer<'_, Vec<TakenRun>> {
        Box::pin(async move {
            let taken = self.inner.take_runs(now, limit).await?;
            self.show_taken(taken).await
        })
    }

    fn take_runs_except<'a>(
        &'a self,
        now: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> Answer<'a, Vec<TakenRun>> {
        Box::pin(async move {
            let taken = self.inner.take_runs_except(now, limit, skipped).await?;
            self.show_taken(taken).await
        })
    }

    fn next_due(&self) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_due()
    }

    fn release_runs<'a>(&'a self, held: &'a [RunId], now: Timestamp) -> Answer<'a, u64> {
        self.inner.release_runs(held, now)
    }

    fn touch_runs<'a>(&'a self, runs: &'a [RunId], now: Timestamp) -> Answer<'a, ()> {
        self.inner.touch_runs(runs, now)
    }

    fn release_idle_runs(&self, unchanged_since: Timestamp, now: Timestamp) -> Answer<'_, u64> {
        self.inner.release_idle_runs(unchanged_since, now)
    }

    fn end_run<'a>(&'a self, tenant: &'a str, id: RunId, end: &'a RunEnd) -> Answer<'a, bool> {
        Box::pin(async move {
            let hidden = self.hider(tenant).await?.end(tenant, id, end);
            self.inner.end_run(tenant, id, &hidden).await
        })
    }

    fn cancel_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        now: Timestamp,
    ) -> Answer<'a, CancelledRun> {
        self.inner.cancel_run(tenant, id, now)
    }

    fn delete_run<'a>(&'a self, tenant: &'a str, id: RunId) -> Answer<'a, bool> {
        self.inner.delete_run(tenant, id)
    }

    fn delete_runs<'a>(&'a self, thread: &'a ThreadId) -> Answer<'a, u64> {
        self.inner.delete_runs(thread)
    }

    fn create_assistant<'a>(&'a self, new: &'a NewAssistant) -> Answer<'a, CreatedAssistant> {
        Box::pin(async move {
            let hidden = self.hider(&new.tenant).await?.assistant(new);
            let created = self.inner.create_assistant(&hidden).await?;
            let show = |reader: &Reader<'_>| {
                Ok(match &created {
                    CreatedAssistant::Stored(row) => {
                        CreatedAssistant::Stored(show_assistant(reader, row)?)
                    }
                    CreatedAssistant::Exists(row) => {
                        CreatedAssistant::Exists(show_assistant(reader, row)?)
                    }
                })
            };
            self.show(&new.tenant, show).await
        })
    }

    fn assistant<'a>(&'a self, tenant: &'a str, id: AssistantId) -> Answer<'a, Option<Assistant>> {
        Box::pin(async move {
            let found = self.inner.assistant(tenant, id).await?;
            self.show_assistant(found).await
        })
    }

    fn assistants<'a>(&'a self, query: &'a AssistantQuery) -> Answer<'a, Vec<Assistant>> {
        Box::pin(async move {
            self.check(query.metadata.as_ref())?;
            let found = self.inner.assistants(query).await?;
            self.show_assistants(&query.tenant, found).await
        })
    }

    fn count_assistants<'a>(&'a self, query: &'a AssistantQuery) -> Answer<'a, u64> {
        Box::pin(async move {
            self.check(query.metadata.as_ref())?;
            self.inner.count_assistants(query).await
        })
    }

    fn change_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        change: &'a AssistantChange,
        now: Timestamp,
    ) -> Answer<'a, Option<Assistant>> {
        Box::pin(async move {
            let hider = self.hider(tenant).await?;
            let hidden = hider.assistant_change(tenant, id, change);
            let changed = self
                .inner
                .change_assistant(tenant, id, &hidden, now)
                .await?;
            self.show_assistant(changed).await
        })
    }

    fn assistant_versions<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        page: Page,
    ) -> Answer<'a, Vec<Assistant>> {
        Box::pin(async move {
            let found = self.inner.assistant_versions(tenant, id, page).await?;
            self.show_assistants(tenant, found).await
        })
    }

    fn use_assistant_version<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        version: u32,
        now: Timestamp,
    ) -> Answer<'a, Option<Assistant>> {
        Box::pin(async move {
            let found = self.inner.use_assistant_version(tenant, id, version, now);
            self.show_assistant(found.await?).await
        })
    }

    fn delete_assistant<'a>(&'a self, tenant: &'a str, id: AssistantId) -> Answer<'a, bool> {
        self.inner.delete_assistant(tenant, id)
    }

    fn create_cron<'a>(&'a self, new: &'a NewCron) -> Answer<'a, CreatedCron> {
        Box::pin(async move {
            let hidden = self.hider(&new.tenant).await?.cron(new);
            Ok(match self.inner.create_cron(&hidden).await? {
                CreatedCron::Stored(row) => CreatedCron::Stored(self.show_cron(&row).await?),
                CreatedCron::Exists(row) => CreatedCron::Exists(self.show_cron(&row).await?),
            })
        })
    }

    fn cron<'a>(&'a self, tenant: &'a str, id: CronId) -> Answer<'a, Option<CronRow>> {
        Box::pin(async move {
            let found = self.inner.cron(tenant, id).await?;
            let shown = self.show_crons(found.into_iter().collect()).await?;
            Ok(shown.into_iter().next())
        })
    }

    fn crons<'a>(&'a self, query: &'a CronQuery) -> Answer<'a, Vec<CronRow>> {
        Box::pin(async move {
            self.check(query.metadata.as_ref())?;
            let found = self.inner.crons(query).await?;
            self.show_crons(found).await
        })
    }

    fn count_crons<'a>(&'a self, query: &'a CronQuery) -> Answer<'a, u64> {
        Box::pin(async move {
            self.check(query.metadata.as_ref())?;
            self.inner.count_crons(query).await
        })
    }

    fn change_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
        change: &'a CronChange,
        now: Timestamp,
    ) -> Answer<'a, ChangedCron> {
        Box::pin(async move {
            let hidden = self.hider(tenant).await?.cron_change(tenant, id, change);
            Ok(
                match self.inner.change_cron(tenant, id, &hidden, now).await? {
                    ChangedCron::Changed(row) => {
                        ChangedCron::Changed(Box::new(self.show_cron(&row).await?))
                    }
                    ChangedCron::Stale => ChangedCron::Stale,
                    ChangedCron::Missing => ChangedCron::Missing,
                },
            )
        })
    }

    fn delete_cron<'a>(&'a self, tenant: &'a str, id: CronId) -> Answer<'a, bool> {
        self.inner.delete_cron(tenant, id)
    }

    fn due_crons(&self, now: Timestamp, limit: u32) -> Answer<'_, Vec<CronRow>> {
        Box::pin(async move {
            let found = self.inner.due_crons(now, limit).await?;
            self.show_crons(found).await
        })
    }

    fn next_cron_due(&self) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_cron_due()
    }

    fn fire_cron<'a>(&'a self, tick: &'a CronTick) -> Answer<'a, FiredTick> {
        Box::pin(async move {
            let hidden = self.hider(&tick.tenant).await?.tick(tick);
            Ok(match self.inner.fire_cron(&hidden).await? {
                FiredTick::Run(created) => {
                    FiredTick::Run(self.show_created(&tick.tenant, created).await?)
                }
                FiredTick::NoRun => FiredTick::NoRun,
                FiredTick::Passed => FiredTick::Passed,
            })
        })
    }

    fn create_api_key<'a>(&'a self, key: &'a ApiKey) -> Answer<'a, bool> {
        self.inner.create_api_key(key)
    }

    fn api_key(&self, id: ApiKeyId) -> Answer<'_, Option<ApiKey>> {
        self.inner.api_key(id)
    }

    fn api_keys<'a>(&'a self, tenant: &'a str, page: Page) -> Answer<'a, Vec<ApiKey>> {
        self.inner.api_keys(tenant, page)
    }

    fn expire_api_key<'a>(
        &'a self,
        tenant: &'a str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> Answer<'a, Option<ApiKey>> {
        self.inner.expire_api_key(tenant, id, at)
    }

    fn claim_request<'a>(&'a self, request: &'a RequestKey) -> Answer<'a, ClaimedRequest> {
        self.inner.claim_request(request)
    }

    fn sweep_requests(&self, now: Timestamp, limit: u32) -> Answer<'_, u64> {
        self.inner.sweep_requests(now, limit)
    }

    fn take_deliveries<'a>(
        &'a self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> Answer<'a, Vec<Delivery>> {
        Box::pin(async move {
            let taken = self.inner.take_deliveries(now, again, limit, skipped);
            self.show_deliveries(taken.await?).await
        })
    }

    fn end_attempt<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &'a AttemptEnd,
        now: Timestamp,
    ) -> Answer<'a, bool> {
        Box::pin(async move {
            let hidden = self.hider(tenant).await?.attempt_end(tenant, id, end);
            self.inner
                .end_attempt(tenant, id, attempt, &hidden, now)
                .await
        })
    }

    fn repeat_delivery<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        now: Timestamp,
    ) -> Answer<'a, Option<Delivery>> {
        Box::pin(async move {
            let found = self.inner.repeat_delivery(tenant, id, now).await?;
            let shown = self.show_deliveries(found.into_iter().collect()).await?;
            Ok(shown.into_iter().next())
        })
    }

    fn deliveries<'a>(&'a self, query: &'a DeliveryQuery) -> Answer<'a, Vec<Delivery>> {
        Box::pin(async move {
            let found = self.inner.deliveries(query).await?;
            self.show_deliveries(found).await
        })
    }

    fn next_delivery_due(&self) -> Answer<'_, Option<Timestamp>> {
        self.inner.next_delivery_due()
    }

    fn sweep_deliveries(&self, unchanged_since: Timestamp, limit: u32) -> Answer<'_, u64> {
        self.inner.sweep_deliveries(unchanged_since, limit)
    }

    fn append_audit<'a>(
        &'a self,
        tenant: &'a str,
        entries: &'a [AuditEntry],
    ) -> Answer<'a, AuditHead> {
        self.inner.append_audit(tenant, entries)
    }

    fn audit_head<'a>(&'a self, tenant: &'a str) -> Answer<'a, AuditHead> {
        self.inner.audit_head(tenant)
    }

    fn audit<'a>(&'a self, tenant: &'a str, after: u64, limit: u32) -> Answer<'a, Vec<AuditEntry>> {
        self.inner.audit(tenant, after, limit)
    }

    fn prune_audit<'a>(&'a self, tenant: &'a str, through: AuditHead) -> Answer<'a, u64> {
        self.inner.prune_audit(tenant, through)
    }

    fn audited_tenants(&self) -> Answer<'_, Vec<String>> {
        self.inner.audited_tenants()
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> Answer<'a, ErasedRows> {
        self.inner.erase_tenant(tenant)
    }
}

impl fmt::Debug for EncryptedRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedRegistry")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}
