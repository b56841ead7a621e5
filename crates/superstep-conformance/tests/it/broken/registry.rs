//! A registry with a defect.

mod audit;
mod crons;
mod deliveries;
mod keys;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value as Json;
use superstep_conformance::give_way;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Page};
use superstep_core::registry::{
    ActiveRun, ApiKey, Assistant, AssistantChange, AssistantQuery, AttemptEnd, AuditEntry,
    AuditHead, CancelledRun, ChangedCron, ClaimedRequest, CreatedAssistant, CreatedCron,
    CreatedRun, CronChange, CronQuery, CronRow, CronTick, Delivery, DeliveryAttempt, DeliveryQuery,
    ErasedRows, FiredTick, MemoryRegistry, NewAssistant, NewCron, NewRun, Registry, RequestKey,
    RunEnd, RunQuery, RunRow, RunStatus, TakenRun, WhenBusy,
};
use superstep_core::{ApiKeyId, AssistantId, CronId, DeliveryId, RunId, ThreadId, Timestamp};

/// What is wrong with a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistryDefect {
    None,
    /// A second run with the same id takes the place of the first.
    SameIdReplaces,
    /// The caller gets its own request back instead of the stored one.
    ExistingRequestLost,
    /// A run behind others is reported as stored, and is not.
    QueuedRunLost,
    /// Only pending runs make a thread busy.
    RejectIgnoresRunning,
    /// The thread is checked, and the run stored a moment later.
    RejectTorn,
    /// A run is said to have begun, and can be taken.
    BegunStaysPending,
    /// A run is said to have begun that waits for others of its thread.
    BeginsBehindOthers,
    /// The thread is found free, and the run begins a moment later.
    BeginTorn,
    TakesTwoOfAThread,
    TakesRunningAgain,
    SkipsNoTenant,
    /// The runs are read, and marked a moment later.
    TakeTorn,
    DueIgnored,
    LastEndWins,
    ReleasedGoToTheBack,
    TouchForgotten,
    /// Every running run is touched.
    TouchesEvery,
    /// Runs are released that somebody touched.
    ReleasesTouched,
    CancelEndsRunning,
    /// A run that was taken once is withdrawn like any other.
    CancelEndsReleased,
    /// The runs of every tenant's thread of this name.
    DeleteIgnoresTenant,
    TenantsMixedInLists,
    /// Only running runs are active.
    PendingNotActive,
    /// One higher than the current version, not than all.
    VersionReused,
    MetadataReplaced,
    VersionsOldestFirst,
    NameMatchesCase,
    /// A cron that was never created is found.
    CronFromNowhere,
    ZoneOfACronLost,
    /// A second cron with the same id takes the place of the first.
    SameCronReplaces,
    /// A change that does not name the end removes it.
    ChangeClearsTheEnd,
    StaleChangeTaken,
    /// A change has the time of the clock, also if the one before has the same.
    ChangesByTheClock,
    DeletedCronStays,
    CronsOfEveryThread,
    MetadataOfCronsIgnored,
    CronsInOneOrder,
    CronsCountedByPage,
    DueCronsOfOneTenant,
    CronsWithoutATimeAreDue,
    NextCronIsTheLast,
    TickLosesItsRun,
    /// The cron is due again at the same time.
    TickKeepsTheTime,
    /// Whichever time a tick is for, it fires the cron.
    TickNotCompared,
    TickIgnoresChanges,
    /// The cron is compared, and the run stored a moment later.
    TickTorn,
    /// The run of a tick waits, although its caller wants none to wait.
    BusyTickWaits,
    TickReplacesItsRun,
    TickErrorLost,
    /// Reading a cron loses when its last tick was due.
    LastTickLost,
    LastTickComesAgain,
    TenantsMixedInCrons,
    TextsOfCronsTrimmed,
    PermissionsLost,
    /// A second API key with the same id is reported as stored, and is not.
    SameApiKeySaidStored,
    /// The same, if the first is of another tenant.
    ApiKeysUniqueByTenant,
    ExpiredApiKeyNotFound,
    ApiKeysOfEveryTenant,
    ApiKeysOldestFirst,
    ApiKeyExpiredByAnyTenant,
    /// A later time takes the place of an earlier one.
    ExpiryExtends,
    TextsOfApiKeysTrimmed,
    FingerprintForgotten,
    PrincipalOfRequestsIgnored,
    TenantOfRequestsIgnored,
    RequestKeysNeverExpire,
    /// The time of the repeated request, not of the first.
    RepeatHasTheLastTime,
    /// The key is looked for, and stored a moment later.
    ClaimTorn,
    RequestsSweptEarly,
    RequestsSweptWithoutLimit,
    TextsOfRequestsTrimmed,
    DeliveriesLost,
    DeliveriesStoredBackwards,
    /// An end that is not stored stores its deliveries.
    SecondEndDelivers,
    KnownDeliveryStoredAgain,
    AttemptNotCounted,
    TakenDeliveryStaysDue,
    TakesDeliveriesBehindOthers,
    LastDueDeliveryFirst,
    DueOfDeliveriesIgnored,
    DeliveriesOfNoTenantSkipped,
    DeliveriesTakenWithoutLimit,
    /// The deliveries are read, and marked a moment later.
    TakeOfDeliveriesTorn,
    /// An attempt ends a delivery that was taken again.
    OvertakenAttemptEnds,
    AttemptBeforeRepetitionEnds,
    ConfirmedDeliveryEndsAgain,
    AttemptEndedByAnyTenant,
    DeadDeliveryIsRetried,
    ErrorOfAttemptsLost,
    OnlyPendingDeliveriesRepeated,
    RepeatKeepsTheTime,
    IdOfDeliveriesIgnored,
    RunOfDeliveriesIgnored,
    StatusOfDeliveriesIgnored,
    TenantsMixedInDeliveries,
    DeliveriesOldestFirst,
    DeliveriesGoWithTheirRun,
    DeliveriesBehindOthersAreDue,
    DeliveriesSweptEarly,
    DeliveriesSweptWithoutLimit,
    TextsOfDeliveriesTrimmed,
    /// Entries get the numbers and the hash that fit.
    AuditAppendedAnywhere,
    /// The end of the log is compared, and the entries appended a moment later.
    AuditAppendTorn,
    /// Entries are appended up to the first that does not fit.
    AuditAppendedInPart,
    AuditHeadLags,
    AuditFromTheStart,
    TenantsMixedInAudit,
    AuditedTenantsWithoutOrder,
    /// There is a log without entries.
    AuditOfNobody,
    TextsOfAuditTrimmed,
    /// Whatever hash the last deleted entry is said to have.
    AuditPrunedUnchecked,
    /// The entry that is named stays.
    AuditPrunedBefore,
    AuditPrunedForAll,
    EraseKeepsApiKeys,
    /// Tenants whose names begin with that of the erased one go with it.
    EraseIsByPrefix,
}

/// A registry with a defect.
pub(crate) struct BrokenRegistry {
    inner: MemoryRegistry,
    defect: RegistryDefect,
    /// Runs as they were given, by tenant and id.
    given: Mutex<BTreeMap<(String, RunId), NewRun>>,
    /// Tenants for which crons were created.
    cron_tenants: Mutex<BTreeSet<String>>,
    /// Tenants for which API keys were created.
    key_tenants: Mutex<BTreeSet<String>>,
    /// Keys of requests that were claimed.
    claimed: Mutex<BTreeSet<String>>,
}

const EVERY: Page = Page {
    limit: 10_000,
    offset: 0,
};

impl BrokenRegistry {
    pub(crate) fn new(defect: RegistryDefect) -> Self {
        Self {
            inner: MemoryRegistry::new(),
            defect,
            given: Mutex::default(),
            cron_tenants: Mutex::default(),
            key_tenants: Mutex::default(),
            claimed: Mutex::default(),
        }
    }

    fn is(&self, defect: RegistryDefect) -> bool {
        self.defect == defect
    }

    fn given(&self) -> MutexGuard<'_, BTreeMap<(String, RunId), NewRun>> {
        self.given.lock().expect("no clause panics")
    }

    fn cron_tenants(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.cron_tenants.lock().expect("no clause panics")
    }

    fn key_tenants(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.key_tenants.lock().expect("no clause panics")
    }

    fn claimed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.claimed.lock().expect("no clause panics")
    }

    fn tenants(&self) -> BTreeSet<String> {
        let given = self.given();
        given.keys().map(|(tenant, _)| tenant.clone()).collect()
    }

    /// Returns the runs of a thread, newest first.
    async fn rows_of(
        &self,
        thread: &ThreadId,
        statuses: &[RunStatus],
    ) -> CheckpointResult<Vec<RunRow>> {
        let query = RunQuery {
            tenant: thread.tenant().to_owned(),
            thread: Some(thread.clone()),
            statuses: statuses.to_vec(),
            page: EVERY,
            ..RunQuery::default()
        };
        self.inner.runs(&query).await
    }

    /// Creates a run, however busy its thread is.
    async fn enqueue(&self, run: &NewRun) -> CheckpointResult<CreatedRun> {
        let run = NewRun {
            when_busy: WhenBusy::Enqueue,
            ..run.clone()
        };
        self.inner.create_run(&run).await
    }

    /// Deletes a run and creates it again. Returns whether it was ever created.
    async fn recreate(&self, tenant: &str, id: RunId) -> CheckpointResult<bool> {
        let given = self.given().get(&(tenant.to_owned(), id)).cloned();
        let Some(run) = given else {
            return Ok(false);
        };
        self.inner.delete_run(tenant, id).await?;
        self.enqueue(&run).await?;
        Ok(true)
    }

    async fn begin_by_defect(&self, run: &NewRun) -> CheckpointResult<CreatedRun> {
        let begun = |created| match created {
            CreatedRun::Stored(_) => CreatedRun::Begun,
            created => created,
        };
        match self.defect {
            RegistryDefect::BegunStaysPending => {
                let created = self.inner.create_run(run).await?;
                match &created {
                    CreatedRun::Stored(before) if before.is_empty() => Ok(CreatedRun::Begun),
                    _ => Ok(created),
                }
            }
            RegistryDefect::BeginsBehindOthers => self.inner.begin_run(run).await.map(begun),
            RegistryDefect::BeginTorn => {
                let statuses = [RunStatus::Pending, RunStatus::Running];
                let active = self.rows_of(&run.thread, &statuses).await?;
                give_way().await;
                let created = self.inner.begin_run(run).await?;
                match active.is_empty() {
                    true => Ok(begun(created)),
                    false => Ok(created),
                }
            }
            _ => self.inner.begin_run(run).await,
        }
    }

    async fn create_by_defect(&self, run: &NewRun) -> CheckpointResult<CreatedRun> {
        let rejects = run.when_busy == WhenBusy::Reject;
        match self.defect {
            RegistryDefect::SameIdReplaces => {
                self.inner.delete_run(run.thread.tenant(), run.id).await?;
                self.inner.create_run(run).await
            }
            RegistryDefect::QueuedRunLost => {
                let created = self.inner.create_run(run).await?;
                if matches!(&created, CreatedRun::Stored(before) if !before.is_empty()) {
                    self.inner.delete_run(run.thread.tenant(), run.id).await?;
                }
                Ok(created)
            }
            RegistryDefect::RejectIgnoresRunning if rejects => {
                let pending = self.rows_of(&run.thread, &[RunStatus::Pending]).await?;
                if !pending.is_empty() {
                    return self.inner.create_run(run).await;
                }
                self.enqueue(run).await
            }
            RegistryDefect::RejectTorn if rejects => {
                let statuses = [RunStatus::Pending, RunStatus::Running];
                let active = self.rows_of(&run.thread, &statuses).await?;
                give_way().await;
                if !active.is_empty() {
                    return self.inner.create_run(run).await;
                }
                self.enqueue(run).await
            }
            _ => self.inner.create_run(run).await,
        }
    }

    /// Adds the next pending run of each thread.
    async fn take_more(&self, taken: &mut Vec<TakenRun>) -> CheckpointResult<()> {
        let threads: Vec<_> = taken.iter().map(|run| run.row.thread.clone()).collect();
        for thread in threads {
            let mut waiting = self.rows_of(&thread, &[RunStatus::Pending]).await?;
            if let Some(oldest) = waiting.pop() {
                let row = RunRow {
                    status: RunStatus::Running,
                    ..oldest
                };
                let request = Vec::new();
                taken.push(TakenRun { row, request });
            }
        }
        Ok(())
    }

    async fn release_to_the_back(&self) -> CheckpointResult<u64> {
        let mut released = 0;
        for tenant in self.tenants() {
            let query = RunQuery {
                tenant: tenant.clone(),
                statuses: vec![RunStatus::Running],
                page: EVERY,
                ..RunQuery::default()
            };
            let mut running = self.inner.runs(&query).await?;
            running.reverse();
            for row in running {
                self.recreate(&tenant, row.id).await?;
                released += 1;
            }
        }
        Ok(released)
    }
}

impl Registry for BrokenRegistry {
    fn create_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        Box::pin(async move {
            let created = self.create_by_defect(run).await?;
            if matches!(created, CreatedRun::Stored(_)) {
                let key = (run.thread.tenant().to_owned(), run.id);
                self.given().insert(key, run.clone());
            }
            Ok(match created {
                CreatedRun::Exists(row, _) if self.is(RegistryDefect::ExistingRequestLost) => {
                    CreatedRun::Exists(row, run.request.clone())
                }
                created => created,
            })
        })
    }

    fn begin_run<'a>(&'a self, run: &'a NewRun) -> BoxFuture<'a, CheckpointResult<CreatedRun>> {
        Box::pin(async move {
            let created = self.begin_by_defect(run).await?;
            if matches!(created, CreatedRun::Stored(_) | CreatedRun::Begun) {
                let key = (run.thread.tenant().to_owned(), run.id);
                self.given().insert(key, run.clone());
            }
            Ok(created)
        })
    }

    fn run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<Option<RunRow>>> {
        self.inner.run(tenant, id)
    }

    fn runs<'a>(&'a self, query: &'a RunQuery) -> BoxFuture<'a, CheckpointResult<Vec<RunRow>>> {
        Box::pin(async move {
            if !self.is(RegistryDefect::TenantsMixedInLists) {
                return self.inner.runs(query).await;
            }
            let mut found = Vec::new();
            for tenant in self.tenants() {
                let query = RunQuery {
                    tenant,
                    ..query.clone()
                };
                found.extend(self.inner.runs(&query).await?);
            }
            Ok(found)
        })
    }

    fn active_runs<'a>(
        &'a self,
        tenant: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ActiveRun>>> {
        Box::pin(async move {
            let mut active = self.inner.active_runs(tenant, limit).await?;
            active.retain(|run| run.is_running || !self.is(RegistryDefect::PendingNotActive));
            Ok(active)
        })
    }

    fn take_runs_except<'a>(
        &'a self,
        now: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<TakenRun>>> {
        match self.defect {
            RegistryDefect::SkipsNoTenant => self.take_runs(now, limit),
            _ => self.inner.take_runs_except(now, limit, skipped),
        }
    }

    fn take_runs(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<TakenRun>>> {
        Box::pin(async move {
            match self.defect {
                RegistryDefect::TakesTwoOfAThread => {
                    let mut taken = self.inner.take_runs(now, limit).await?;
                    self.take_more(&mut taken).await?;
                    Ok(taken)
                }
                RegistryDefect::TakesRunningAgain => {
                    self.inner.release_runs(&[], now).await?;
                    self.inner.take_runs(now, limit).await
                }
                RegistryDefect::TakeTorn => {
                    let taken = self.inner.take_runs(now, limit).await?;
                    self.inner.release_runs(&[], now).await?;
                    give_way().await;
                    self.inner.take_runs(now, limit).await?;
                    Ok(taken)
                }
                RegistryDefect::DueIgnored => {
                    self.inner.take_runs(Timestamp(i64::MAX), limit).await
                }
                _ => self.inner.take_runs(now, limit).await,
            }
        })
    }

    fn next_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        self.inner.next_due()
    }

    fn release_runs<'a>(
        &'a self,
        held: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            match self.is(RegistryDefect::ReleasedGoToTheBack) {
                true => self.release_to_the_back().await,
                false => self.inner.release_runs(held, now).await,
            }
        })
    }

    fn touch_runs<'a>(
        &'a self,
        runs: &'a [RunId],
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            match self.defect {
                RegistryDefect::TouchForgotten => Ok(()),
                RegistryDefect::TouchesEvery => {
                    let all: Vec<RunId> = self.given().values().map(|run| run.id).collect();
                    self.inner.touch_runs(&all, now).await
                }
                _ => self.inner.touch_runs(runs, now).await,
            }
        })
    }

    fn release_idle_runs(
        &self,
        unchanged_since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        match self.is(RegistryDefect::ReleasesTouched) {
            true => self.inner.release_runs(&[], now),
            false => self.inner.release_idle_runs(unchanged_since, now),
        }
    }

    fn end_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move {
            let end = &self.end_by_defect(end).await?;
            let ended = self.inner.end_run(tenant, id, end).await?;
            match self.defect {
                RegistryDefect::SecondEndDelivers if !ended => {
                    self.deliver_anyway(tenant, &end.deliveries).await?;
                    Ok(false)
                }
                RegistryDefect::LastEndWins if !ended => {
                    self.recreate(tenant, id).await?;
                    self.inner.end_run(tenant, id, end).await
                }
                _ => Ok(ended),
            }
        })
    }

    fn cancel_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<CancelledRun>> {
        Box::pin(async move {
            let cancelled = self.inner.cancel_run(tenant, id, now).await?;
            if cancelled == CancelledRun::Running && self.is(RegistryDefect::CancelEndsRunning) {
                let end = RunEnd {
                    status: RunStatus::Interrupted,
                    error: Json::Null,
                    at: now,
                    deliveries: Vec::new(),
                };
                self.inner.end_run(tenant, id, &end).await?;
            }
            if cancelled == CancelledRun::Running && self.is(RegistryDefect::CancelEndsReleased) {
                let row = self.inner.run(tenant, id).await?;
                if row.is_some_and(|row| row.status == RunStatus::Pending) {
                    let end = RunEnd {
                        status: RunStatus::Interrupted,
                        error: Json::Null,
                        at: now,
                        deliveries: Vec::new(),
                    };
                    self.inner.end_run(tenant, id, &end).await?;
                    return Ok(CancelledRun::Withdrawn);
                }
            }
            Ok(cancelled)
        })
    }

    fn delete_run<'a>(
        &'a self,
        tenant: &'a str,
        id: RunId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        self.inner.delete_run(tenant, id)
    }

    fn delete_runs<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move {
            if !self.is(RegistryDefect::DeleteIgnoresTenant) {
                return self.inner.delete_runs(thread).await;
            }
            let mut deleted = 0;
            for tenant in self.tenants() {
                let other = ThreadId::of_tenant(&tenant, thread.name()).expect("tenants are valid");
                deleted += self.inner.delete_runs(&other).await?;
            }
            Ok(deleted)
        })
    }

    fn create_assistant<'a>(
        &'a self,
        assistant: &'a NewAssistant,
    ) -> BoxFuture<'a, CheckpointResult<CreatedAssistant>> {
        self.inner.create_assistant(assistant)
    }

    fn assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        self.inner.assistant(tenant, id)
    }

    fn assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        Box::pin(async move {
            let Some(name) = &query.name else {
                return self.inner.assistants(query).await;
            };
            if !self.is(RegistryDefect::NameMatchesCase) {
                return self.inner.assistants(query).await;
            }
            let any_name = AssistantQuery {
                name: None,
                ..query.clone()
            };
            let mut found = self.inner.assistants(&any_name).await?;
            found.retain(|found| found.name.contains(name.as_str()));
            Ok(found)
        })
    }

    fn count_assistants<'a>(
        &'a self,
        query: &'a AssistantQuery,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        self.inner.count_assistants(query)
    }

    fn change_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        change: &'a AssistantChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        Box::pin(async move {
            let before = self.inner.assistant(tenant, id).await?;
            let changed = self.inner.change_assistant(tenant, id, change, now).await?;
            let (Some(before), Some(mut changed)) = (before, changed) else {
                return Ok(None);
            };
            if self.is(RegistryDefect::VersionReused) {
                changed.version = before.version + 1;
            }
            if let Some(metadata) = &change.metadata
                && self.is(RegistryDefect::MetadataReplaced)
            {
                changed.metadata = metadata.clone();
            }
            Ok(Some(changed))
        })
    }

    fn assistant_versions<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Assistant>>> {
        Box::pin(async move {
            let mut found = self.inner.assistant_versions(tenant, id, page).await?;
            if self.is(RegistryDefect::VersionsOldestFirst) {
                found.reverse();
            }
            Ok(found)
        })
    }

    fn use_assistant_version<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
        version: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Assistant>>> {
        self.inner.use_assistant_version(tenant, id, version, now)
    }

    fn delete_assistant<'a>(
        &'a self,
        tenant: &'a str,
        id: AssistantId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        self.inner.delete_assistant(tenant, id)
    }

    fn create_cron<'a>(
        &'a self,
        cron: &'a NewCron,
    ) -> BoxFuture<'a, CheckpointResult<CreatedCron>> {
        Box::pin(self.create_cron_by_defect(cron))
    }

    fn cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<Option<CronRow>>> {
        Box::pin(self.cron_by_defect(tenant, id))
    }

    fn crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<Vec<CronRow>>> {
        Box::pin(self.crons_by_defect(query))
    }

    fn count_crons<'a>(&'a self, query: &'a CronQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(self.count_crons_by_defect(query))
    }

    fn change_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
        change: &'a CronChange,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<ChangedCron>> {
        Box::pin(self.change_cron_by_defect(tenant, id, change, now))
    }

    fn delete_cron<'a>(
        &'a self,
        tenant: &'a str,
        id: CronId,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.delete_cron_by_defect(tenant, id))
    }

    fn due_crons(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<CronRow>>> {
        Box::pin(self.due_crons_by_defect(now, limit))
    }

    fn next_cron_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(self.next_cron_due_by_defect())
    }

    fn fire_cron<'a>(&'a self, tick: &'a CronTick) -> BoxFuture<'a, CheckpointResult<FiredTick>> {
        Box::pin(self.fire_cron_by_defect(tick))
    }

    fn create_api_key<'a>(&'a self, key: &'a ApiKey) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.create_api_key_by_defect(key))
    }

    fn api_key(&self, id: ApiKeyId) -> BoxFuture<'_, CheckpointResult<Option<ApiKey>>> {
        Box::pin(self.api_key_by_defect(id))
    }

    fn api_keys<'a>(
        &'a self,
        tenant: &'a str,
        page: Page,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ApiKey>>> {
        Box::pin(self.api_keys_by_defect(tenant, page))
    }

    fn expire_api_key<'a>(
        &'a self,
        tenant: &'a str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<ApiKey>>> {
        Box::pin(self.expire_api_key_by_defect(tenant, id, at))
    }

    fn claim_request<'a>(
        &'a self,
        request: &'a RequestKey,
    ) -> BoxFuture<'a, CheckpointResult<ClaimedRequest>> {
        Box::pin(self.claim_request_by_defect(request))
    }

    fn sweep_requests(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(self.sweep_requests_by_defect(now, limit))
    }

    fn take_deliveries<'a>(
        &'a self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &'a [String],
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        Box::pin(self.take_deliveries_by_defect(now, again, limit, skipped))
    }

    fn end_attempt<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &'a AttemptEnd,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.end_attempt_by_defect(tenant, id, attempt, end, now))
    }

    fn repeat_delivery<'a>(
        &'a self,
        tenant: &'a str,
        id: DeliveryId,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Delivery>>> {
        Box::pin(self.repeat_delivery_by_defect(tenant, id, now))
    }

    fn deliveries<'a>(
        &'a self,
        query: &'a DeliveryQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<Delivery>>> {
        Box::pin(self.deliveries_by_defect(query))
    }

    fn next_delivery_due(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(self.next_delivery_due_by_defect())
    }

    fn sweep_deliveries(
        &self,
        unchanged_since: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(self.sweep_deliveries_by_defect(unchanged_since, limit))
    }

    fn append_audit<'a>(
        &'a self,
        tenant: &'a str,
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        Box::pin(self.append_audit_by_defect(tenant, entries))
    }

    fn audit_head<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<AuditHead>> {
        Box::pin(self.audit_head_by_defect(tenant))
    }

    fn audit<'a>(
        &'a self,
        tenant: &'a str,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<AuditEntry>>> {
        Box::pin(self.audit_by_defect(tenant, after, limit))
    }

    fn prune_audit<'a>(
        &'a self,
        tenant: &'a str,
        through: AuditHead,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(self.prune_audit_by_defect(tenant, through))
    }

    fn audited_tenants(&self) -> BoxFuture<'_, CheckpointResult<Vec<String>>> {
        Box::pin(self.audited_tenants_by_defect())
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<ErasedRows>> {
        Box::pin(self.erase_tenant_by_defect(tenant))
    }
}
