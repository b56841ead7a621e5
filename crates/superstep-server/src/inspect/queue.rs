//! The queue of runs: how many wait, how many run, and the oldest of each.

use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::checkpoint::Page;
use superstep::registry::{RunQuery, RunRow, RunStatus};

use crate::Shared;
use crate::caller::Caller;
use crate::error::ApiResult;
use crate::thread::ACTIVE_MAX;
use crate::wire;

/// Returns what the queue of a caller's tenant holds, with a page of its runs, newest first. A caller that reaches only what it owns
/// sees its own runs only.
pub(crate) async fn queue(app: &Shared, caller: &Caller, page: Page) -> ApiResult<Json> {
    let all = RunQuery {
        tenant: caller.tenant.clone(),
        statuses: vec![RunStatus::Pending, RunStatus::Running],
        metadata: caller.own_only(None)?,
        page,
        ..RunQuery::default()
    };
    let Counts {
        pending,
        running,
        is_complete,
    } = counts(app, &all).await?;
    let now = app.runtime.now();
    let runs = app.registry().runs(&all).await?;
    let oldest_pending = oldest(app, &all, RunStatus::Pending, pending).await?;
    let oldest_running = oldest(app, &all, RunStatus::Running, running).await?;
    Ok(json!({
        "pending": pending,
        "running": running,
        "is_complete": is_complete,
        "oldest_pending": oldest_pending.map(|row| entry(&row, now)),
        "oldest_running": oldest_running.map(|row| entry(&row, now)),
        "runs": runs.iter().map(|row| entry(row, now)).collect::<Vec<_>>(),
    }))
}

#[derive(Debug)]
struct Counts {
    pending: usize,
    running: usize,
    /// If not, both are lower bounds.
    is_complete: bool,
}

/// Counts runs, as many as are looked at.
async fn counts(app: &Shared, all: &RunQuery) -> ApiResult<Counts> {
    let (max, are_running): (u32, Vec<bool>) = match all.metadata {
        None => {
            let active = app.registry().active_runs(&all.tenant, ACTIVE_MAX).await?;
            let are_running = active.iter().map(|run| run.is_running);
            (ACTIVE_MAX, are_running.collect())
        }
        Some(_) => {
            let query = RunQuery {
                page: Page {
                    limit: OWN_MAX,
                    offset: 0,
                },
                ..all.clone()
            };
            let active = app.registry().runs(&query).await?;
            let are_running = active.iter().map(|run| run.status == RunStatus::Running);
            (OWN_MAX, are_running.collect())
        }
    };
    let running = are_running.iter().filter(|is_running| **is_running).count();
    Ok(Counts {
        pending: are_running.len() - running,
        running,
        is_complete: are_running.len() < max as usize,
    })
}

/// Number of runs of one owner that are counted.
const OWN_MAX: u32 = 1_000;

/// Returns the oldest of so many runs with a status; the newest of those are listed first.
async fn oldest(
    app: &Shared,
    all: &RunQuery,
    status: RunStatus,
    count: usize,
) -> ApiResult<Option<RunRow>> {
    let mut offset = u32::try_from(count).unwrap_or(u32::MAX);
    // Some may have left the queue since they were counted: look at the end of what there is now.
    while let Some(last) = offset.checked_sub(1) {
        let query = RunQuery {
            statuses: vec![status],
            page: Page {
                limit: 1,
                offset: last,
            },
            ..all.clone()
        };
        if let Some(found) = app.registry().runs(&query).await?.pop() {
            return Ok(Some(found));
        }
        offset = last / 2;
    }
    Ok(None)
}

fn entry(row: &RunRow, now: Timestamp) -> Json {
    let status = match row.status {
        RunStatus::Running => "running",
        _ => "pending",
    };
    // A run that was requested for later does not wait until then.
    let since = row.created.max(row.due);
    json!({
        "run_id": wire::uuid(row.id.to_bytes()),
        "thread_id": row.thread.name(),
        "assistant_id": wire::uuid(row.assistant.to_bytes()),
        "status": status,
        "attempts": row.attempts,
        "created_at": wire::time(row.created),
        "due_at": wire::time(row.due),
        "age_ms": now.0.saturating_sub(since.0).max(0),
    })
}
