//! Files of threads: upload, list, fetch, delete. LangGraph's server has no such routes, so they are under `/superstep`.

use std::sync::Arc;

use axum::Json as JsonBody;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde_json::{Value as Json, json};

use crate::caller::{FilePath, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::files::{ThreadFile, ThreadFilePath, ThreadFiles};
use crate::{App, Shared, files, thread, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/superstep/threads/{thread_id}/files", get(list))
        .route(
            "/superstep/threads/{thread_id}/files/{*path}",
            get(read).put(write).delete(delete),
        )
}

/// Called after the thread was found: a thread of another caller is answered like one that does not exist.
fn files_of(app: &Shared) -> ApiResult<&Arc<dyn ThreadFiles>> {
    let files = app.files.as_ref();
    files.ok_or_else(|| ApiError::bad_request("This server stores no files"))
}

fn shown(file: &ThreadFile) -> Json {
    json!({ "path": file.path, "bytes": file.bytes, "modified": wire::time(file.modified) })
}

fn no_file(path: &ThreadFilePath) -> ApiError {
    ApiError::not_found(format!("The thread has no file `{path}`"))
}

async fn list(
    State(app): State<App>,
    ThreadPath(id): ThreadPath,
) -> ApiResult<JsonBody<Vec<Json>>> {
    thread::get(&app, &id).await?;
    let files = files_of(&app)?;
    let listed = files.list(&id).await?;
    Ok(JsonBody(listed.iter().map(shown).collect()))
}

async fn write(
    State(app): State<App>,
    FilePath(id, path): FilePath,
    request: Request,
) -> ApiResult<JsonBody<Json>> {
    // Before the body is read: who names no thread need not upload anything.
    thread::get(&app, &id).await?;
    let files = files_of(&app)?;
    let bytes = Bytes::from_request(request, &app).await;
    let bytes = bytes.map_err(|error| ApiError::new(error.status(), error.body_text()))?;
    let written = files::write(&app, &**files, &id, &path, bytes).await?;
    Ok(JsonBody(shown(&written)))
}

async fn read(State(app): State<App>, FilePath(id, path): FilePath) -> ApiResult<Response> {
    thread::get(&app, &id).await?;
    let files = files_of(&app)?;
    let found = files.read(&id, &path).await?;
    let bytes = found.ok_or_else(|| no_file(&path))?;
    // A browser must not show an uploaded page: its scripts would be of the server's own origin.
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (CONTENT_DISPOSITION, "attachment"),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, bytes).into_response())
}

async fn delete(State(app): State<App>, FilePath(id, path): FilePath) -> ApiResult<StatusCode> {
    thread::get(&app, &id).await?;
    let files = files_of(&app)?;
    match files.delete(&id, &path).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_file(&path)),
    }
}
