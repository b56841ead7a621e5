//! The thread protocol: commands to a thread, and one stream of events that stays open across its runs.
//!
//! A client posts commands to `/threads/{id}/commands`, and opens streams with filters at `/threads/{id}/stream/events`: each
//! a response of server-sent events, or a WebSocket, over which it can also send commands. Streams can be opened before the
//! thread exists.
//!
//! Events have the same numbers on every connection and after a restart of the server, so `since` continues anywhere. Without
//! it, a stream starts with the thread's last run.

mod commands;
mod envelope;
mod filter;
mod pump;
mod reply;
mod socket;

use std::io;

use axum::Json as JsonBody;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::Stream;
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio::time::Interval;

use crate::App;
use crate::caller::{Caller, Payload, ThreadPath};
use crate::error::{ApiError, ApiResult};
use crate::idempotency::claim;
use crate::protocol::commands::CommandRunner;
use crate::protocol::filter::FilterBody;
use crate::protocol::pump::EventPump;
use crate::protocol::reply::ProtocolCommand;
use crate::stream::sse::{self, HEARTBEAT, write_event};

/// Returns the routes of the protocol.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/threads/{thread_id}/commands", post(command))
        .route(
            "/threads/{thread_id}/stream/events",
            post(events).get(socket::open),
        )
}

/// Executes a command. Its error is part of the reply; only a text that is not a command has a status of its own.
async fn command(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let command = match ProtocolCommand::read(&body) {
        Ok(command) => command,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, JsonBody(error.reply(None))).into_response();
        }
    };
    let key = claim(&app, &caller, &headers, &method, uri.path(), &body).await;
    let key = match key {
        Ok(key) => key,
        Err(error) => return error.into_response(),
    };
    let runner = CommandRunner {
        app,
        caller,
        thread,
        key,
    };
    JsonBody(runner.reply(&command).await).into_response()
}

async fn events(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    Payload(body): Payload<FilterBody>,
) -> ApiResult<Response> {
    let (filter, since) = body.read().map_err(ApiError::bad_request)?;
    caller.claim_thread(&app, &thread).await?;
    let pump = EventPump::open(&app, &thread, String::new(), filter, since).await?;
    let stream = EventStream {
        pump,
        heartbeat: sse::heartbeat(),
    };
    Ok(sse::respond(stream.into_chunks()))
}

/// The events of a thread as server-sent events.
struct EventStream {
    pump: EventPump,
    heartbeat: Interval,
}

impl EventStream {
    fn into_chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        futures_util::stream::unfold(Some(self), |stream| async move {
            let mut stream = stream?;
            match stream.next_chunk().await {
                Ok(chunk) => Some((Ok(chunk), Some(stream))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn next_chunk(&mut self) -> io::Result<Bytes> {
        let mut out = Vec::new();
        tokio::select! {
            event = self.pump.next() => match event {
                Some(event) => {
                    let number = event.id.number();
                    write_event(&mut out, event.method, &event.envelope, number);
                }
                None => return Err(sse::broken()),
            },
            _ = self.heartbeat.tick() => out.extend_from_slice(HEARTBEAT),
        }
        Ok(out.into())
    }
}
