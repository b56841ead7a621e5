//! Crons in memory.

use serde_json::Value as Json;

use super::Rows;
use crate::ids::{CronId, Timestamp};
use crate::registry::{
    ChangedCron, CreatedCron, CreatedRun, CronChange, CronQuery, CronRow, CronTick, FiredTick,
    NewCron, TickRun,
};

impl Rows {
    pub(super) fn create_cron(&mut self, new: &NewCron) -> CreatedCron {
        let key = (new.tenant.clone(), new.id);
        if let Some(found) = self.crons.get(&key) {
            return CreatedCron::Exists(found.clone());
        }
        let row = new.row();
        self.crons.insert(key, row.clone());
        CreatedCron::Stored(row)
    }

    pub(super) fn cron(&self, tenant: &str, id: CronId) -> Option<CronRow> {
        self.crons.get(&(tenant.to_owned(), id)).cloned()
    }

    pub(super) fn matching_crons<'a>(
        &'a self,
        query: &'a CronQuery,
    ) -> impl Iterator<Item = &'a CronRow> {
        let all = self.crons.values();
        all.filter(move |found| found.tenant == query.tenant && query.matches(found))
    }

    pub(super) fn change_cron(
        &mut self,
        tenant: &str,
        id: CronId,
        change: &CronChange,
        now: Timestamp,
    ) -> ChangedCron {
        let Some(found) = self.crons.get_mut(&(tenant.to_owned(), id)) else {
            return ChangedCron::Missing;
        };
        if found.updated != change.seen {
            return ChangedCron::Stale;
        }
        *found = change.applied(found, now);
        ChangedCron::Changed(Box::new(found.clone()))
    }

    pub(super) fn delete_cron(&mut self, tenant: &str, id: CronId) -> bool {
        self.crons.remove(&(tenant.to_owned(), id)).is_some()
    }

    pub(super) fn due_crons(&self, now: Timestamp, limit: u32) -> Vec<CronRow> {
        let is_due = |found: &&CronRow| found.next.is_some_and(|next| next <= now);
        let mut due: Vec<&CronRow> = self.crons.values().filter(is_due).collect();
        // Crons that are equally late are in the order of their keys, which a stable sort keeps.
        due.sort_by_key(|found| found.next);
        due.into_iter().take(limit as usize).cloned().collect()
    }

    pub(super) fn next_cron_due(&self) -> Option<Timestamp> {
        self.crons.values().filter_map(|found| found.next).min()
    }

    pub(super) fn fire_cron(&mut self, tick: &CronTick) -> FiredTick {
        let key = (tick.tenant.clone(), tick.cron);
        let is_as_seen =
            |found: &CronRow| found.next == Some(tick.due) && found.updated == tick.seen;
        if !self.crons.get(&key).is_some_and(is_as_seen) {
            return FiredTick::Passed;
        }
        let (fired, error) = match &tick.run {
            TickRun::Failed(why) => (FiredTick::NoRun, why.clone()),
            TickRun::Run(run) => {
                let created = self.create_run(run);
                let error = match created {
                    CreatedRun::Busy => CronTick::busy_error(),
                    CreatedRun::Stored(_) | CreatedRun::Begun | CreatedRun::Exists(..) => {
                        Json::Null
                    }
                };
                (FiredTick::Run(created), error)
            }
        };
        if let Some(found) = self.crons.get_mut(&key) {
            found.next = tick.next;
            if error.is_null() {
                found.last_tick = Some(tick.due);
            }
            found.error = error;
        }
        fired
    }
}
