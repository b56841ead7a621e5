//! Streams of runs and threads as server-sent events, in the modes of LangGraph.
//!
//! Every event has an id, so a client that loses its connection continues where it was: in a run that it asked to be
//! resumable, and in every other. The connection is closed after the run; there is no event for the end.

mod breakpoints;
mod checkpoint_form;
mod event_id;
mod message_form;
mod modes;
mod renderer;
mod run_names;
mod run_stream;
mod runnable_events;
pub(crate) mod sse;
mod thread_stream;

pub(crate) use renderer::{ended_task, started_task};

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value as Json;
use superstep::registry::{RunRow, RunStatus};

use crate::caller::{Caller, QueryFields, RunPath, ThreadPath, header_text, run_id};
use crate::error::{ApiError, ApiResult};
use crate::feed::{FeedId, StreamStart};
use crate::idempotency::Keyed;
use crate::start::{Awaits, OnDisconnect, RunBody, ThreadTarget, submit};
use crate::stream::event_id::SeenId;
use crate::stream::modes::WireModes;
use crate::stream::renderer::RunRenderer;
use crate::stream::run_stream::RunStream;
use crate::stream::thread_stream::{ThreadModes, ThreadStream};
use crate::{App, thread, wire};

/// Returns the routes of streams.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/threads/{thread_id}/runs/stream", post(create))
        .route("/runs/stream", post(create_stateless))
        .route("/threads/{thread_id}/runs/{run_id}/stream", get(join))
        .route("/runs/{run_id}/stream", get(join_stateless))
        .route("/threads/{thread_id}/stream", get(join_thread))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    request: Keyed<RunBody>,
) -> ApiResult<Response> {
    // Before the run is submitted, so that its feed is complete.
    app.feeds.settle(&app, &id).await?;
    stream_new(&app, &caller, ThreadTarget::Thread(id), request.into()).await
}

async fn create_stateless(
    State(app): State<App>,
    caller: Caller,
    request: Keyed<RunBody>,
) -> ApiResult<Response> {
    stream_new(&app, &caller, ThreadTarget::Temporary, request.into()).await
}

async fn stream_new(
    app: &App,
    caller: &Caller,
    target: ThreadTarget,
    body: RunBody,
) -> ApiResult<Response> {
    let modes = WireModes::read(&body.stream_modes())?;
    let with_subgraphs = body.stream_subgraphs.unwrap_or(false);
    let is_cancelling = body.on_disconnect.unwrap_or_default() == OnDisconnect::Cancel;
    let submitted = submit(app, caller, target, body, Awaits::Events).await?;
    let row = &submitted.row;
    // From here on, a client that goes away has a run.
    let follower = app.feeds.follow(app, &caller.tenant, row.id, is_cancelling);
    let start = match row.status {
        RunStatus::Pending => StreamStart::New,
        // A request that was sent again.
        _ => StreamStart::After(FeedId::START),
    };
    let subscription = app
        .feeds
        .of_run(app, &submitted.thread, row.id, start)
        .await?;
    let renderer = RunRenderer::new(modes, with_subgraphs, row);
    let is_temporary = submitted.is_temporary;
    let stream = RunStream::new(app, subscription, renderer, follower, is_temporary, None);
    let mut response = sse::respond(stream.into_chunks());
    response.headers_mut().extend(submitted.dropped_header());
    add_locations(&mut response, submitted.path());
    Ok(response)
}

/// Adds where the run is, and where its stream can be joined.
fn add_locations(response: &mut Response, path: String) {
    let headers = response.headers_mut();
    let texts = [
        (LOCATION, format!("{path}/stream")),
        (CONTENT_LOCATION, path),
    ];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
}

async fn join(
    State(app): State<App>,
    caller: Caller,
    RunPath(id, run): RunPath,
    fields: QueryFields,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let row = app.queue.registry().run(&caller.tenant, run).await?;
    let row = row.filter(|row| row.thread == id);
    stream_joined(&app, &caller, row, &fields, &headers).await
}

async fn join_stateless(
    State(app): State<App>,
    caller: Caller,
    Path(run): Path<String>,
    fields: QueryFields,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let row = app
        .queue
        .registry()
        .run(&caller.tenant, run_id(&run)?)
        .await?;
    if let Some(row) = &row {
        match caller.check_thread(&app, &row.thread).await {
            Err(error) if error.status == StatusCode::NOT_FOUND => return Err(ApiError::no_run()),
            checked => checked?,
        }
    }
    stream_joined(&app, &caller, row, &fields, &headers).await
}

async fn stream_joined(
    app: &App,
    caller: &Caller,
    row: Option<RunRow>,
    fields: &QueryFields,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let row = row.ok_or_else(ApiError::no_run)?;
    let names = fields.list("stream_mode");
    // Which subgraphs are shown is a matter of the run, so that a client that joins sees what the first one saw.
    let renderer = match names.is_empty() {
        true => RunRenderer::of_row(&row),
        false => {
            let with_subgraphs = row.arguments.get("subgraphs").and_then(Json::as_bool);
            let modes = WireModes::read(&names)?;
            RunRenderer::new(modes, with_subgraphs.unwrap_or(false), &row)
        }
    };
    let seen = last_event_id(headers)?;
    let start = match seen {
        Some(seen) => StreamStart::After(seen.continue_after()),
        None => StreamStart::Tail,
    };
    let is_cancelling = fields.flag("cancel_on_disconnect");
    let follower = app.feeds.follow(app, &caller.tenant, row.id, is_cancelling);
    let subscription = app.feeds.of_run(app, &row.thread, row.id, start).await?;
    let path = format!(
        "/threads/{}/runs/{}",
        row.thread.name(),
        wire::uuid(row.id.to_bytes())
    );
    let mut stream = RunStream::new(app, subscription, renderer, follower, false, seen);
    stream.prime();
    let mut response = sse::respond(stream.into_chunks());
    add_locations(&mut response, path);
    Ok(response)
}

async fn join_thread(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(id): ThreadPath,
    fields: QueryFields,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let modes = ThreadModes::read(&fields)?;
    thread::get(&app, &id).await?;
    let seen = last_event_id(&headers)?;
    let subscription = match seen {
        Some(seen) => {
            let after = Some(seen.continue_after());
            app.feeds.of_thread(&app, &id, after).await?
        }
        None => app.feeds.tail(&app, &id).await?,
    };
    let stream = ThreadStream::new(&app, &caller.tenant, subscription, modes, seen);
    Ok(sse::respond(stream.into_chunks()))
}

fn last_event_id(headers: &HeaderMap) -> ApiResult<Option<SeenId>> {
    let Some(text) = header_text(headers, "last-event-id")? else {
        return Ok(None);
    };
    match SeenId::from_header(&text) {
        Some(id) => Ok(Some(id)),
        None => Err(ApiError::invalid(format!(
            "Invalid Last-Event-ID: '{}'. Send the id of an event, or -1 for the beginning",
            superstep::__private::shorten(&text)
        ))),
    }
}
