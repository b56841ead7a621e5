//! How many bytes threads take in the checkpointer.

use std::time::Duration;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{Page, SizeGroup, SizeQuery, SizeRow, StoredSize};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::caller::{Caller, QueryFields, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::routes::paging::page;
use crate::thread;
use crate::{App, Shared};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/threads/{thread_id}/storage", get(read))
        .route("/superstep/sizes", get(report))
}

async fn read(State(app): State<App>, ThreadPath(id): ThreadPath) -> ApiResult<JsonBody<Json>> {
    thread::get(&app, &id).await?;
    let query = SizeQuery {
        tenant: Some(id.tenant().to_owned()),
        thread: Some(id.clone()),
        by: SizeGroup::Thread,
        page: Page::default(),
    };
    let mut found = app.runtime.sizes(&query).await?;
    let row = found.pop().ok_or_else(|| ApiError::no_thread(&id))?;
    Ok(JsonBody(storage(id.name(), &row)))
}

/// Returns the sizes of a thread in the sections of LangGraph's server. Its checkpointers store each value of a channel in a row of
/// its own. Ours have the values in the entries of the log and in snapshots, so all of it is in the section of checkpoints.
fn storage(thread: &str, row: &SizeRow) -> Json {
    let checkpoint_bytes = row.entries.bytes + row.snapshots.bytes;
    let mut pending = row.records;
    pending += row.interrupts;
    json!({
        "thread_id": thread,
        "total_bytes": row.bytes(),
        "checkpoints": { "count": row.entries.count, "bytes": checkpoint_bytes },
        "channel_values": { "count": 0, "bytes": 0, "by_channel": {} },
        "pending_writes": section(pending),
    })
}

async fn report(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<JsonBody<Vec<Json>>> {
    caller.refuse_restricted()?;
    let by = match query.text("by") {
        None | Some("graph") => SizeGroup::Graph,
        Some("tenant") => SizeGroup::Tenant,
        Some("thread") => SizeGroup::Thread,
        Some(other) => {
            return Err(ApiError::invalid(format!(
                "`by` is `{other}`; it must be `tenant`, `graph` or `thread`"
            )));
        }
    };
    let query = SizeQuery {
        tenant: Some(caller.tenant.clone()),
        thread: None,
        by,
        page: page(query.number("limit")?, query.number("offset")?)?,
    };
    let _turn = report_turn(&app).await?;
    let found = app.runtime.sizes(&query).await?;
    Ok(JsonBody(found.iter().map(size).collect()))
}

/// Waits until no other report is computed: each reads an index entry for each stored body of a tenant. The turn ends when its holder is
/// dropped, also because its caller went away.
async fn report_turn(app: &Shared) -> ApiResult<SemaphorePermit<'_>> {
    if let Ok(turn) = timeout(TURN_WAIT_MAX, app.size_reports.acquire()).await {
        return Ok(turn.expect("the semaphore is never closed"));
    }
    let why = "The server is computing another report of sizes. Try again later.";
    let mut busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why);
    busy.retry_after = Some(TURN_WAIT_MAX.as_secs());
    Err(busy)
}

fn size(row: &SizeRow) -> Json {
    json!({
        "graph_id": row.graph,
        "thread_id": row.thread.as_ref().map(|thread| thread.name()),
        "threads": row.threads,
        "bytes": row.bytes(),
        "entries": section(row.entries),
        "snapshots": section(row.snapshots),
        "records": section(row.records),
        "interrupts": section(row.interrupts),
    })
}

fn section(size: StoredSize) -> Json {
    json!({ "count": size.count, "bytes": size.bytes })
}

/// How long a report waits for its turn.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
