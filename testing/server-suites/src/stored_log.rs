//! `GET /internal/log/{thread}`: the entries of a thread's log as they are stored, for tests that read them independently of the
//! server.

use axum::Router;
use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};
use superstep::{Runtime, ThreadId};

pub(crate) fn routes(runtime: Runtime) -> Router {
    Router::new()
        .route("/internal/log/{thread}", get(read))
        .with_state(runtime)
}

async fn read(
    State(runtime): State<Runtime>,
    Path(thread): Path<String>,
) -> Result<Json<Value>, (StatusCode, String)> {
    match entries(&runtime, &thread).await {
        Ok(entries) => Ok(Json(entries)),
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}"))),
    }
}

async fn entries(runtime: &Runtime, thread: &str) -> anyhow::Result<Value> {
    let log = runtime.log_of(&ThreadId::new(thread)?).await?;
    let entries = log
        .iter()
        .map(|past| json!({ "seq": past.seq, "entry": past.entry }));
    Ok(entries.collect())
}
