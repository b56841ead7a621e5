//! Threads: their rows, their graphs, their active runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep::ThreadId;
use superstep::checkpoint::{Page, ThreadQuery, ThreadRow};
use superstep::graph::Definition;
use superstep::registry::{RunQuery, RunRow, RunStatus};

use crate::Shared;
use crate::error::{ApiError, ApiResult};

/// Returns the row of a thread; `None` if there is no such thread.
pub(crate) async fn find(app: &Shared, thread: &ThreadId) -> ApiResult<Option<ThreadRow>> {
    let query = ThreadQuery {
        tenant: thread.tenant().to_owned(),
        ids: Some(vec![thread.clone()]),
        ..ThreadQuery::default()
    };
    Ok(app.runtime.threads(&query).await?.into_iter().next())
}

/// Returns the row of a thread, or the error for one that does not exist.
pub(crate) async fn get(app: &Shared, thread: &ThreadId) -> ApiResult<ThreadRow> {
    let found = find(app, thread).await?;
    found.ok_or_else(|| ApiError::no_thread(thread))
}

/// Returns the name of a thread's graph: that of its runs, or the one that its creator named; empty if neither is known.
pub(crate) fn graph_name(row: &ThreadRow) -> &str {
    let named = row.metadata.get("graph_id").and_then(Json::as_str);
    match row.graph.is_empty() {
        true => named.unwrap_or_default(),
        false => &row.graph,
    }
}

/// Returns the graph of a thread; `None` if it has none yet, or one that this server does not serve.
pub(crate) fn graph_of<'a>(app: &'a Shared, row: &ThreadRow) -> Option<&'a Arc<Definition>> {
    app.graphs.get(graph_name(row))
}

/// Returns the pending and running runs of a thread, newest first.
pub(crate) async fn active_runs(app: &Shared, thread: &ThreadId) -> ApiResult<Vec<RunRow>> {
    let query = RunQuery {
        tenant: thread.tenant().to_owned(),
        thread: Some(thread.clone()),
        statuses: vec![RunStatus::Pending, RunStatus::Running],
        page: Page {
            limit: ACTIVE_MAX,
            offset: 0,
        },
        ..RunQuery::default()
    };
    Ok(app.registry().runs(&query).await?)
}

/// Returns the threads of a tenant that have pending or running runs.
pub(crate) async fn busy_threads(app: &Shared, tenant: &str) -> ApiResult<BTreeSet<ThreadId>> {
    let active = app.registry().active_runs(tenant, ACTIVE_MAX).await?;
    Ok(active.into_iter().map(|run| run.thread).collect())
}

/// Number of active runs that are looked at.
pub(crate) const ACTIVE_MAX: u32 = 10_000;
