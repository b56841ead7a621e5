//! Server-sent events as LangGraph servers write them: CRLF lines, in the order name, data, id.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// What is sent while nothing happens. Proxies and clients take a silent connection for a dead one.
pub(crate) const HEARTBEAT: &[u8] = b": heartbeat\r\n\r\n";
/// How often a heartbeat is sent. Proxies wait longer, and thousands of idle streams must cost little.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// Number of bytes that are sent at once, at most about.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// Writes one event.
pub(crate) fn write_event(out: &mut Vec<u8>, name: &str, data: &impl Serialize, id: impl Display) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    // JSON text has no line breaks outside of strings, and escapes those inside.
    out.extend_from_slice(b"\r\ndata: ");
    serde_json::to_writer(&mut *out, data).expect("JSON values always encode, and memory takes it");
    out.extend_from_slice(format!("\r\nid: {id}\r\n\r\n").as_bytes());
}

/// Marks a response that lasts as long as something is streamed. It is an extension of the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamedBody;

/// Creates the response of a stream.
pub(crate) fn respond(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Response {
    let mut response = Body::from_stream(chunks).into_response();
    response.extensions_mut().insert(StreamedBody);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// The end of a stream that a client must not take for the end of what it streams.
pub(crate) fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the server shuts down")
}

/// Creates the clock of the heartbeats.
pub(crate) fn heartbeat() -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + HEARTBEAT_EVERY, HEARTBEAT_EVERY);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

#[test]
fn an_event_has_its_lines_in_order() {
    let mut out = Vec::new();
    write_event(
        &mut out,
        "values|a:1",
        &serde_json::json!({ "text": "a\nb" }),
        "3-1",
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "event: values|a:1\r\ndata: {\"text\":\"a\\nb\"}\r\nid: 3-1\r\n\r\n"
    );
}
