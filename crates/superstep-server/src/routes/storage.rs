//! How many bytes threads take in the checkpointer.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value as Json, json};
use superstep::checkpoint::{Page, SizeGroup, SizeQuery, SizeRow, StoredSize};

use crate::App;
use crate::caller::{Caller, QueryFields, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::routes::paging::page;
use crate::thread;

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
    let found = app.runtime.sizes(&query).await?;
    Ok(JsonBody(found.iter().map(size).collect()))
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
