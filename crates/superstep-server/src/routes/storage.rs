//! How many bytes a thread takes in the checkpointer.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Archive;

use crate::App;
use crate::caller::ThreadPath;
use crate::error::ApiResult;
use crate::thread;

pub(super) fn routes() -> Router<App> {
    Router::new().route("/threads/{thread_id}/storage", get(read))
}

async fn read(State(app): State<App>, ThreadPath(id): ThreadPath) -> ApiResult<JsonBody<Json>> {
    thread::get(&app, &id).await?;
    let archive = app.runtime.checkpointer().export(&id).await?;
    Ok(JsonBody(storage(&archive)))
}

/// Returns the sizes of the stored bodies, in the sections of LangGraph's server. Its checkpointers store each value of a channel in a
/// row of its own. Ours have the values in the entries of the log and in snapshots, so all of it is in the section of checkpoints.
fn storage(archive: &Archive) -> Json {
    let entries = archive.entries.iter().map(|entry| entry.body.len());
    let snapshots = archive.snapshots.iter().map(|stored| stored.body.len());
    let checkpoints: usize = entries.chain(snapshots).sum();
    let open = archive.interrupts.iter().filter(|row| row.closed.is_none());
    let open = open.map(|row| row.body.len());
    let records = archive.records.iter().map(|record| record.body.len());
    let pending: Vec<usize> = records.chain(open).collect();
    let pending_bytes: usize = pending.iter().sum();
    json!({
        "thread_id": archive.thread.name(),
        "total_bytes": checkpoints + pending_bytes,
        "checkpoints": { "count": archive.entries.len(), "bytes": checkpoints },
        "channel_values": { "count": 0, "bytes": 0, "by_channel": {} },
        "pending_writes": { "count": pending.len(), "bytes": pending_bytes },
    })
}
