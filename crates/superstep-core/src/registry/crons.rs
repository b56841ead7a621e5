//! Crons: requests for runs that repeat on a schedule.
//!
//! A registry stores when a cron is due next, and never computes it: that takes a clock, and the rules of time zones.

use serde_json::{Value as Json, json};

use crate::checkpoint::Page;
use crate::ids::{AssistantId, CronId, ThreadId, Timestamp};
use crate::registry::assistants::merged;
use crate::registry::{CreatedRun, NewRun};

/// A cron to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCron {
    /// Tenant of the cron.
    pub tenant: String,
    /// Id of the cron.
    pub id: CronId,
    /// Assistant that the runs are requested of.
    pub assistant: AssistantId,
    /// Thread of the runs, of the same tenant; `None` if each run has a thread of its own.
    pub thread: Option<ThreadId>,
    /// Who requested the runs; may be empty.
    pub principal: String,
    /// When to run: a cron expression.
    pub schedule: String,
    /// IANA name of the time zone of the schedule; `None` for UTC.
    pub zone: Option<String>,
    /// Not run after this time.
    pub end: Option<Timestamp>,
    /// Whether the cron runs at all.
    pub is_enabled: bool,
    /// When the cron is due; `None` if it is not enabled, or the schedule has no time before the end.
    pub next: Option<Timestamp>,
    /// What the runs are made from.
    pub arguments: Json,
    /// What callers find it by: a JSON object.
    pub metadata: Json,
    /// When it was created.
    pub at: Timestamp,
}

impl NewCron {
    /// Returns the row of the cron when it was stored and nothing else has happened to it.
    pub fn row(&self) -> CronRow {
        let new = self.clone();
        CronRow {
            tenant: new.tenant,
            id: new.id,
            assistant: new.assistant,
            thread: new.thread,
            principal: new.principal,
            schedule: new.schedule,
            zone: new.zone,
            end: new.end,
            is_enabled: new.is_enabled,
            next: new.next,
            arguments: new.arguments,
            metadata: new.metadata,
            error: Json::Null,
            last_tick: None,
            created: new.at,
            updated: new.at,
        }
    }
}

/// A cron, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct CronRow {
    /// Tenant of the cron.
    pub tenant: String,
    /// Id of the cron.
    pub id: CronId,
    /// Assistant that the runs are requested of.
    pub assistant: AssistantId,
    /// Thread of the runs; `None` if each run has a thread of its own.
    pub thread: Option<ThreadId>,
    /// Who requested the runs; may be empty.
    pub principal: String,
    /// When to run: a cron expression.
    pub schedule: String,
    /// IANA name of the time zone of the schedule; `None` for UTC.
    pub zone: Option<String>,
    /// Not run after this time.
    pub end: Option<Timestamp>,
    /// Whether the cron runs at all.
    pub is_enabled: bool,
    /// When the cron is due; `None` if never again, as long as nothing changes it.
    pub next: Option<Timestamp>,
    /// What the runs are made from.
    pub arguments: Json,
    /// What callers find it by: a JSON object.
    pub metadata: Json,
    /// Why the last tick made no run; `null` if it made one.
    pub error: Json,
    /// When the last tick was due that made a run; `None` if none has.
    pub last_tick: Option<Timestamp>,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last changed. Ticks do not count as changes. No two changes of a cron have the same time.
    pub updated: Timestamp,
}

/// What [`create_cron`](super::Registry::create_cron) did.
#[derive(Debug, Clone, PartialEq)]
pub enum CreatedCron {
    /// Stored this one.
    Stored(CronRow),
    /// One with this id exists: this one. Nothing was stored.
    Exists(CronRow),
}

/// A change of a cron; `None` keeps what is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CronChange {
    /// When the cron had last been changed, as the caller read it.
    pub seen: Timestamp,
    /// When to run.
    pub schedule: Option<String>,
    /// Time zone of the schedule.
    pub zone: Option<String>,
    /// Not run after this time; `Some(None)` for no end.
    pub end: Option<Option<Timestamp>>,
    /// Whether the cron runs at all.
    pub is_enabled: Option<bool>,
    /// When the cron is due; `Some(None)` for never.
    pub next: Option<Option<Timestamp>>,
    /// What the runs are made from, replaced as a whole.
    pub arguments: Option<Json>,
    /// Fields that are merged into the metadata: each replaces the one of its name.
    pub metadata: Option<Json>,
}

impl CronChange {
    /// Returns a cron with this change. Its time of change is later than the one before, whatever the clock says: callers compare
    /// it to find out whether a cron is as they read it.
    pub fn applied(&self, current: &CronRow, now: Timestamp) -> CronRow {
        let change = self.clone();
        let current = current.clone();
        CronRow {
            schedule: change.schedule.unwrap_or(current.schedule),
            zone: change.zone.or(current.zone),
            end: change.end.unwrap_or(current.end),
            is_enabled: change.is_enabled.unwrap_or(current.is_enabled),
            next: change.next.unwrap_or(current.next),
            arguments: change.arguments.unwrap_or(current.arguments),
            metadata: merged(&current.metadata, change.metadata.as_ref()),
            updated: now.max(current.updated.plus_ms(1)),
            ..current
        }
    }
}

/// What [`change_cron`](super::Registry::change_cron) did.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangedCron {
    /// Stored the change. This is the cron now.
    Changed(Box<CronRow>),
    /// The cron was changed since the caller read it. Nothing was stored.
    Stale,
    /// There is no such cron.
    Missing,
}

/// A tick of a cron, and what it leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct CronTick {
    /// Tenant of the cron.
    pub tenant: String,
    /// The cron.
    pub cron: CronId,
    /// When the tick was due: what [`CronRow::next`] must be.
    pub due: Timestamp,
    /// What the tick was made from: what [`CronRow::updated`] must be.
    pub seen: Timestamp,
    /// When the cron is due next; `None` if this was its last tick.
    pub next: Option<Timestamp>,
    /// Its run.
    pub run: TickRun,
}

impl CronTick {
    /// Returns what [`CronRow::error`] is after a tick whose run was not stored because its thread was busy.
    pub fn busy_error() -> Json {
        json!({ "error": "busy", "message": "the thread had an active run" })
    }
}

/// The run of a tick.
#[derive(Debug, Clone, PartialEq)]
pub enum TickRun {
    /// This one.
    Run(Box<NewRun>),
    /// None, for this reason, which becomes [`CronRow::error`].
    Failed(Json),
}

/// What [`fire_cron`](super::Registry::fire_cron) did.
#[derive(Debug, Clone, PartialEq)]
pub enum FiredTick {
    /// Moved the cron, and did this with the run of the tick.
    Run(CreatedRun),
    /// Moved the cron. The tick has no run.
    NoRun,
    /// The cron is not due at this time, was changed since the tick was made, or does not exist. Nothing was written.
    Passed,
}

/// Selects crons of a tenant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CronQuery {
    /// Tenant of the crons.
    pub tenant: String,
    /// Only crons of this assistant.
    pub assistant: Option<AssistantId>,
    /// Only crons of this thread.
    pub thread: Option<ThreadId>,
    /// Only crons that are enabled, or that are not.
    pub is_enabled: Option<bool>,
    /// Only crons whose metadata contains this, see [`json_contains`](super::json_contains).
    pub metadata: Option<Json>,
    /// Order of the list. Crons that are equal by it are in the order of their ids.
    pub sort: CronSort,
    /// Whether the order is reversed.
    pub is_descending: bool,
    /// Which page of the list to return.
    pub page: Page,
}

impl CronQuery {
    /// Whether a cron matches the query, whatever its tenant.
    pub fn matches(&self, cron: &CronRow) -> bool {
        self.assistant
            .is_none_or(|assistant| assistant == cron.assistant)
            && (self.thread.is_none() || self.thread == cron.thread)
            && self
                .is_enabled
                .is_none_or(|is_enabled| is_enabled == cron.is_enabled)
            && self
                .metadata
                .as_ref()
                .is_none_or(|part| super::json_contains(&cron.metadata, part))
    }

    /// Sorts crons as the query wants them, and returns the page. A missing thread or time is before all others.
    pub fn page_of(&self, mut found: Vec<CronRow>) -> Vec<CronRow> {
        found.sort_by(|a, b| {
            let by = match self.sort {
                CronSort::Id => a.id.cmp(&b.id),
                CronSort::Assistant => a.assistant.cmp(&b.assistant),
                CronSort::Thread => a.thread.cmp(&b.thread),
                CronSort::Created => a.created.cmp(&b.created),
                CronSort::Updated => a.updated.cmp(&b.updated),
                CronSort::Next => a.next.cmp(&b.next),
                CronSort::End => a.end.cmp(&b.end),
            };
            let by = if self.is_descending { by.reverse() } else { by };
            by.then(a.id.cmp(&b.id))
        });
        let skipped = found.into_iter().skip(self.page.offset as usize);
        skipped.take(self.page.limit as usize).collect()
    }
}

/// What crons are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CronSort {
    /// Their ids.
    Id,
    /// The ids of their assistants.
    Assistant,
    /// Their threads.
    Thread,
    /// When they were created.
    #[default]
    Created,
    /// When they were last changed.
    Updated,
    /// When they are due.
    Next,
    /// When they end.
    End,
}
