//! The defects of crons.

use serde_json::Value as Json;
use superstep_conformance::give_way;
use superstep_core::checkpoint::CheckpointResult;
use superstep_core::registry::{
    ChangedCron, CreatedCron, CreatedRun, CronChange, CronQuery, CronRow, CronSort, CronTick,
    FiredTick, NewCron, NewRun, Registry, TickRun, WhenBusy,
};
use superstep_core::{AssistantId, CronId, Timestamp};

use super::{BrokenRegistry, EVERY, RegistryDefect};

impl BrokenRegistry {
    pub(super) async fn create_cron_by_defect(
        &self,
        new: &NewCron,
    ) -> CheckpointResult<CreatedCron> {
        let mut new = new.clone();
        match self.defect {
            RegistryDefect::SameCronReplaces => {
                self.inner.delete_cron(&new.tenant, new.id).await?;
            }
            RegistryDefect::ZoneOfACronLost => new.zone = None,
            RegistryDefect::TextsOfCronsTrimmed => {
                new.principal = new.principal.trim().to_owned();
            }
            _ => {}
        }
        let created = self.inner.create_cron(&new).await?;
        self.cron_tenants().insert(new.tenant);
        Ok(created)
    }

    pub(super) async fn cron_by_defect(
        &self,
        tenant: &str,
        id: CronId,
    ) -> CheckpointResult<Option<CronRow>> {
        let found = self.inner.cron(tenant, id).await?;
        match self.defect {
            RegistryDefect::CronFromNowhere if found.is_none() => Ok(Some(from_nowhere(id))),
            RegistryDefect::TenantsMixedInCrons if found.is_none() => {
                let all = self.all_crons().await?;
                Ok(all.into_iter().find(|cron| cron.id == id))
            }
            RegistryDefect::LastTickLost => Ok(found.map(|row| CronRow {
                last_tick: None,
                ..row
            })),
            _ => Ok(found),
        }
    }

    pub(super) async fn crons_by_defect(
        &self,
        query: &CronQuery,
    ) -> CheckpointResult<Vec<CronRow>> {
        let mut query = query.clone();
        match self.defect {
            RegistryDefect::CronsOfEveryThread => query.thread = None,
            RegistryDefect::MetadataOfCronsIgnored => query.metadata = None,
            RegistryDefect::CronsInOneOrder => query.sort = CronSort::Created,
            _ => {}
        }
        self.inner.crons(&query).await
    }

    pub(super) async fn count_crons_by_defect(&self, query: &CronQuery) -> CheckpointResult<u64> {
        match self.defect {
            RegistryDefect::CronsCountedByPage => Ok(self.inner.crons(query).await?.len() as u64),
            _ => self.inner.count_crons(query).await,
        }
    }

    pub(super) async fn change_cron_by_defect(
        &self,
        tenant: &str,
        id: CronId,
        change: &CronChange,
        now: Timestamp,
    ) -> CheckpointResult<ChangedCron> {
        let mut change = change.clone();
        match self.defect {
            RegistryDefect::StaleChangeTaken => {
                if let Some(current) = self.inner.cron(tenant, id).await? {
                    change.seen = current.updated;
                }
            }
            RegistryDefect::ChangeClearsTheEnd => change.end = change.end.or(Some(None)),
            _ => {}
        }
        let changed = self.inner.change_cron(tenant, id, &change, now).await?;
        Ok(match changed {
            ChangedCron::Changed(row) if self.is(RegistryDefect::ChangesByTheClock) => {
                let updated = now;
                ChangedCron::Changed(Box::new(CronRow { updated, ..*row }))
            }
            changed => changed,
        })
    }

    pub(super) async fn delete_cron_by_defect(
        &self,
        tenant: &str,
        id: CronId,
    ) -> CheckpointResult<bool> {
        match self.defect {
            RegistryDefect::DeletedCronStays => Ok(self.inner.cron(tenant, id).await?.is_some()),
            _ => self.inner.delete_cron(tenant, id).await,
        }
    }

    pub(super) async fn due_crons_by_defect(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> CheckpointResult<Vec<CronRow>> {
        match self.defect {
            RegistryDefect::DueCronsOfOneTenant => {
                let mut due = self.inner.due_crons(now, limit).await?;
                due.retain(|cron| cron.tenant.is_empty());
                Ok(due)
            }
            RegistryDefect::CronsWithoutATimeAreDue => {
                let mut due = self.all_crons().await?;
                due.retain(|cron| cron.next.is_none_or(|next| next <= now));
                due.truncate(limit as usize);
                Ok(due)
            }
            _ => self.inner.due_crons(now, limit).await,
        }
    }

    pub(super) async fn next_cron_due_by_defect(&self) -> CheckpointResult<Option<Timestamp>> {
        match self.defect {
            RegistryDefect::NextCronIsTheLast => {
                let all = self.all_crons().await?;
                Ok(all.into_iter().filter_map(|cron| cron.next).max())
            }
            _ => self.inner.next_cron_due().await,
        }
    }

    pub(super) async fn fire_cron_by_defect(&self, tick: &CronTick) -> CheckpointResult<FiredTick> {
        let mut tick = tick.clone();
        let current = self.inner.cron(&tick.tenant, tick.cron).await?;
        match (self.defect, &current) {
            (RegistryDefect::TickNotCompared, Some(current)) => {
                tick.due = current.next.unwrap_or(tick.due);
            }
            (RegistryDefect::TickIgnoresChanges, Some(current)) => tick.seen = current.updated,
            (RegistryDefect::TickKeepsTheTime, _) => tick.next = Some(tick.due),
            (RegistryDefect::LastTickComesAgain, _) => {
                tick.next = tick.next.or(Some(tick.due.plus_ms(60)));
            }
            (RegistryDefect::TickErrorLost, _) => {
                if let TickRun::Failed(why) = &mut tick.run {
                    *why = Json::Null;
                }
            }
            (RegistryDefect::TickTorn, Some(current)) => {
                return self.fire_torn(&tick, current).await;
            }
            (RegistryDefect::BusyTickWaits, _) => {
                if let TickRun::Run(run) = &mut tick.run {
                    run.when_busy = WhenBusy::Enqueue;
                }
            }
            (RegistryDefect::TickReplacesItsRun, Some(_)) => {
                if let TickRun::Run(run) = &tick.run {
                    let tenant = run.thread.tenant();
                    self.inner.delete_run(tenant, run.id).await?;
                }
            }
            _ => {}
        }
        let fired = self.inner.fire_cron(&tick).await?;
        if let (FiredTick::Run(CreatedRun::Stored(_)), TickRun::Run(run)) = (&fired, &tick.run)
            && self.is(RegistryDefect::TickLosesItsRun)
        {
            let tenant = run.thread.tenant();
            self.inner.delete_run(tenant, run.id).await?;
        }
        Ok(fired)
    }

    /// Compares the cron, and writes a moment later, the run first and the cron after it.
    async fn fire_torn(&self, tick: &CronTick, current: &CronRow) -> CheckpointResult<FiredTick> {
        if current.next != Some(tick.due) || current.updated != tick.seen {
            return Ok(FiredTick::Passed);
        }
        give_way().await;
        let run: &NewRun = match &tick.run {
            TickRun::Run(run) => run,
            TickRun::Failed(_) => return self.inner.fire_cron(tick).await,
        };
        let created = self.inner.create_run(run).await?;
        let moved = CronTick {
            run: TickRun::Failed(Json::Null),
            ..tick.clone()
        };
        self.inner.fire_cron(&moved).await?;
        Ok(FiredTick::Run(created))
    }

    /// Returns the crons of all tenants.
    async fn all_crons(&self) -> CheckpointResult<Vec<CronRow>> {
        let tenants = self.cron_tenants().clone();
        let mut all = Vec::new();
        for tenant in tenants {
            let query = CronQuery {
                tenant,
                page: EVERY,
                ..CronQuery::default()
            };
            all.extend(self.inner.crons(&query).await?);
        }
        Ok(all)
    }
}

fn from_nowhere(id: CronId) -> CronRow {
    let new = NewCron {
        tenant: String::new(),
        id,
        assistant: AssistantId::from_bytes([0; 16]),
        thread: None,
        principal: String::new(),
        schedule: String::new(),
        zone: None,
        end: None,
        is_enabled: false,
        next: None,
        arguments: Json::Null,
        metadata: Json::Null,
        at: Timestamp(0),
    };
    new.row()
}
