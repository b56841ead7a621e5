//! The queue of runs: how many wait, how many run, and the oldest of each.

use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::checkpoint::Page;
use superstep::registry::{RunQuery, RunRow, RunStatus};

use crate::Shared;
use crate::error::ApiResult;
use crate::thread::ACTIVE_MAX;
use crate::wire;

/// Returns what a tenant's queue holds, with a page of its runs, newest first.
pub(crate) async fn queue(app: &Shared, tenant: &str, page: Page) -> ApiResult<Json> {
    let active = app.registry().active_runs(tenant, ACTIVE_MAX).await?;
    let is_complete = active.len() < ACTIVE_MAX as usize;
    let running = active.iter().filter(|run| run.is_running).count();
    let pending = active.len() - running;
    let now = app.runtime.now();
    let query = RunQuery {
        tenant: tenant.to_owned(),
        statuses: vec![RunStatus::Pending, RunStatus::Running],
        page,
        ..RunQuery::default()
    };
    let runs = app.registry().runs(&query).await?;
    let oldest_pending = oldest(app, tenant, RunStatus::Pending, pending).await?;
    let oldest_running = oldest(app, tenant, RunStatus::Running, running).await?;
    Ok(json!({
        "pending": pending,
        "running": running,
        // If not, both counts are lower bounds.
        "is_complete": is_complete,
        "oldest_pending": oldest_pending.map(|row| entry(&row, now)),
        "oldest_running": oldest_running.map(|row| entry(&row, now)),
        "runs": runs.iter().map(|row| entry(row, now)).collect::<Vec<_>>(),
    }))
}

/// Returns the oldest of so many runs with a status; the newest of those are listed first.
async fn oldest(
    app: &Shared,
    tenant: &str,
    status: RunStatus,
    count: usize,
) -> ApiResult<Option<RunRow>> {
    let mut offset = u32::try_from(count).unwrap_or(u32::MAX);
    // Some may have left the queue since they were counted: look at the end of what there is now.
    while let Some(last) = offset.checked_sub(1) {
        let query = RunQuery {
            tenant: tenant.to_owned(),
            statuses: vec![status],
            page: Page {
                limit: 1,
                offset: last,
            },
            ..RunQuery::default()
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
