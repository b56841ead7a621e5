//! Crons: runs that repeat on a schedule. What a request may say about one, when it is due, and the timer that fires it.

mod body;
mod timer;

pub(crate) use body::CronBody;
pub(crate) use timer::start_timer;

use std::collections::BTreeMap;

use serde_json::Value as Json;
use superstep::checkpoint::Page;
use superstep::registry::{
    ChangedCron, CreatedCron, CronChange, CronQuery, CronRow, CronSort, NewCron, RunQuery, RunRow,
};
use superstep::{AssistantId, CronId, RunId, Schedule, ScheduleError, ThreadId, Timestamp};

use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::idempotency::{CreationKey, new_id};
use crate::start::{RunBody, check_cron};
use crate::wire::ON_RUN_COMPLETED;
use crate::{Shared, wire};

/// Creates a cron, for the runs of a thread or for runs with a thread of their own. Under a key, the cron that it created before is
/// returned.
pub(crate) async fn create(
    app: &Shared,
    caller: Caller,
    thread: Option<ThreadId>,
    body: CronBody,
    key: Option<&CreationKey>,
) -> ApiResult<CronRow> {
    let id = CronId::from_bytes(new_id(key, "cron").into_bytes());
    if key.is_some()
        && let Some(found) = app.registry().cron(&caller.tenant, id).await?
    {
        return Ok(found);
    }
    let mut arguments = body.arguments;
    if thread.is_none() {
        let entry = arguments.entry(ON_RUN_COMPLETED);
        entry.or_insert_with(|| "delete".into());
    }
    let schedule = body.schedule.ok_or_else(|| {
        ApiError::invalid("A cron needs a `schedule`, such as `30 4 * * *` for every day at 4:30")
    })?;
    arguments.insert("schedule".to_owned(), schedule.clone().into());
    arguments.insert("assistant_id".to_owned(), body.assistant.into());
    let run = RunBody::of_cron(&Json::Object(arguments.clone()))?;
    let assistant = check_cron(app, &caller, thread.as_ref(), &run).await?;
    // A name becomes the id that it stands for.
    let assistant_id = wire::uuid(assistant.id.to_bytes());
    arguments.insert("assistant_id".to_owned(), assistant_id.into());
    let now = app.runtime.now();
    let times = CronTimes {
        schedule,
        zone: body.zone,
        end: check_end(body.end.flatten(), now)?,
        is_enabled: body.is_enabled.unwrap_or(true),
    };
    let mut metadata = body.metadata.unwrap_or_default();
    caller.mark_own(&mut metadata);
    let new = NewCron {
        tenant: caller.tenant,
        id,
        assistant: assistant.id,
        thread,
        principal: caller.principal,
        next: times.next_after(now)?,
        schedule: times.schedule,
        zone: times.zone,
        end: times.end,
        is_enabled: times.is_enabled,
        arguments: Json::Object(arguments),
        metadata: Json::Object(metadata),
        at: now,
    };
    let created = app.registry().create_cron(&new).await?;
    app.cron_changed.notify_one();
    Ok(match created {
        CreatedCron::Stored(row) | CreatedCron::Exists(row) => row,
    })
}

/// Returns a cron, or the error for one that does not exist.
pub(crate) async fn get(app: &Shared, caller: &Caller, id: CronId) -> ApiResult<CronRow> {
    let found = app.registry().cron(&caller.tenant, id).await?;
    let found = found.filter(|found| caller.owns_cron(found));
    found.ok_or_else(|| no_cron(id))
}

/// Returns crons of a tenant as clients read them. One query reads the last runs of all of them.
pub(crate) async fn show(app: &Shared, tenant: &str, crons: &[CronRow]) -> ApiResult<Vec<Json>> {
    let ids: Vec<RunId> = crons.iter().filter_map(wire::last_run_id).collect();
    let mut runs: BTreeMap<RunId, RunRow> = BTreeMap::new();
    if !ids.is_empty() {
        let query = RunQuery {
            tenant: tenant.to_owned(),
            page: Page {
                limit: u32::try_from(ids.len()).unwrap_or(u32::MAX),
                offset: 0,
            },
            ids: Some(ids),
            ..RunQuery::default()
        };
        let found = app.registry().runs(&query).await?;
        runs.extend(found.into_iter().map(|run| (run.id, run)));
    }
    let shown = crons.iter().map(|cron| {
        let last_run = wire::last_run_id(cron).and_then(|id| runs.get(&id));
        wire::cron(cron, last_run)
    });
    Ok(shown.collect())
}

/// Changes a cron. What the request does not name stays; a changed schedule counts from now.
pub(crate) async fn change(
    app: &Shared,
    caller: &Caller,
    id: CronId,
    body: &CronBody,
) -> ApiResult<CronRow> {
    if body.is_empty() {
        return Err(ApiError::bad_request("The request changes nothing"));
    }
    loop {
        let row = get(app, caller, id).await?;
        let now = app.runtime.now();
        let change = change_of(app, caller, &row, body, now).await?;
        let changed = app.registry().change_cron(&caller.tenant, id, &change, now);
        match changed.await? {
            ChangedCron::Changed(row) => {
                app.cron_changed.notify_one();
                return Ok(*row);
            }
            // Another request was faster. What this one changes follows from what is there now.
            ChangedCron::Stale => {}
            ChangedCron::Missing => return Err(no_cron(id)),
        }
    }
}

async fn change_of(
    app: &Shared,
    caller: &Caller,
    row: &CronRow,
    body: &CronBody,
    now: Timestamp,
) -> ApiResult<CronChange> {
    let mut arguments = row.arguments.as_object().cloned().unwrap_or_default();
    arguments.extend(body.arguments.clone());
    if let Some(schedule) = &body.schedule {
        arguments.insert("schedule".to_owned(), schedule.clone().into());
    }
    let has_arguments = !body.arguments.is_empty() || body.schedule.is_some();
    let arguments = Json::Object(arguments);
    if !body.arguments.is_empty() {
        let run = RunBody::of_cron(&arguments)?;
        check_cron(app, caller, row.thread.as_ref(), &run).await?;
    }
    let end = match body.end {
        Some(end) => Some(check_end(end, now)?),
        None => None,
    };
    let times = CronTimes {
        schedule: body.schedule.as_ref().unwrap_or(&row.schedule).clone(),
        zone: body.zone.clone().or_else(|| row.zone.clone()),
        end: end.unwrap_or(row.end),
        is_enabled: body.is_enabled.unwrap_or(row.is_enabled),
    };
    Ok(CronChange {
        seen: row.updated,
        next: match body.changes_times() {
            true => Some(times.next_after(now)?),
            false => None,
        },
        schedule: body.schedule.clone(),
        zone: body.zone.clone(),
        end,
        is_enabled: body.is_enabled,
        arguments: has_arguments.then_some(arguments),
        metadata: body.metadata.clone().map(|mut metadata| {
            caller.mark_own(&mut metadata);
            Json::Object(metadata)
        }),
    })
}

/// Deletes the crons of a thread.
pub(crate) async fn delete_of_thread(app: &Shared, thread: &ThreadId) -> ApiResult<()> {
    let query = CronQuery {
        tenant: thread.tenant().to_owned(),
        thread: Some(thread.clone()),
        ..CronQuery::default()
    };
    delete_matching(app, query).await
}

/// Deletes the crons of an assistant.
pub(crate) async fn delete_of_assistant(
    app: &Shared,
    caller: &Caller,
    assistant: AssistantId,
) -> ApiResult<()> {
    let query = CronQuery {
        tenant: caller.tenant.clone(),
        assistant: Some(assistant),
        ..CronQuery::default()
    };
    delete_matching(app, query).await
}

async fn delete_matching(app: &Shared, query: CronQuery) -> ApiResult<()> {
    loop {
        let found = app.registry().crons(&query).await?;
        if found.is_empty() {
            return Ok(());
        }
        for row in found {
            app.registry().delete_cron(&row.tenant, row.id).await?;
        }
    }
}

/// Reads the name of the field that crons are sorted by.
pub(crate) fn read_sort(name: Option<&str>) -> ApiResult<CronSort> {
    Ok(match name {
        None | Some("created_at") => CronSort::Created,
        Some("updated_at") => CronSort::Updated,
        Some("next_run_date") => CronSort::Next,
        Some("end_time") => CronSort::End,
        Some("cron_id") => CronSort::Id,
        Some("assistant_id") => CronSort::Assistant,
        Some("thread_id") => CronSort::Thread,
        Some(other) => return Err(ApiError::invalid(format!("Cannot sort by `{other}`"))),
    })
}

/// The error for a cron that does not exist.
pub(crate) fn no_cron(id: CronId) -> ApiError {
    let id = wire::uuid(id.to_bytes());
    ApiError::not_found(format!("Cron with ID {id} not found"))
}

/// When a cron runs.
#[derive(Debug)]
struct CronTimes {
    schedule: String,
    zone: Option<String>,
    end: Option<Timestamp>,
    is_enabled: bool,
}

impl CronTimes {
    fn of(row: &CronRow) -> Self {
        Self {
            schedule: row.schedule.clone(),
            zone: row.zone.clone(),
            end: row.end,
            is_enabled: row.is_enabled,
        }
    }

    /// Returns the first time after `after`; `None` if there is none. A schedule that is not valid is an error, also if it is not
    /// enabled.
    fn next_after(&self, after: Timestamp) -> Result<Option<Timestamp>, ScheduleError> {
        let schedule = Schedule::parse(&self.schedule, self.zone.as_deref())?;
        if !self.is_enabled {
            return Ok(None);
        }
        let next = schedule.next_after(after);
        Ok(next.filter(|next| self.end.is_none_or(|end| *next <= end)))
    }
}

fn check_end(end: Option<Timestamp>, now: Timestamp) -> ApiResult<Option<Timestamp>> {
    match end {
        Some(end) if end <= now => Err(ApiError::invalid(format!(
            "`end_time` is {}, which is in the past",
            wire::time(end)
        ))),
        end => Ok(end),
    }
}
