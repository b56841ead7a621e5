//! Streams of server-sent events whose events are made one after another.

use std::io;

use axum::response::Response;
use bytes::Bytes;
use serde_json::Value as Json;
use tokio::time::Interval;

use crate::stream::sse;

/// What is sent while nothing happens, with the line breaks that all clients know.
const HEARTBEAT: &[u8] = b": heartbeat\n\n";

/// Makes the events of a stream.
pub(crate) trait SseSource: Send + 'static {
    /// Writes what comes next, which may be nothing. Returns whether more follows; an error breaks the connection. Cancel-safe:
    /// nothing is written before the last wait.
    fn write_next(&mut self, out: &mut Vec<u8>) -> impl Future<Output = io::Result<bool>> + Send;
}

/// Creates the response of a stream, with heartbeats while nothing happens.
pub(crate) fn stream(source: impl SseSource) -> Response {
    let parts = SseParts {
        source,
        heartbeat: sse::heartbeat(),
    };
    let chunks = futures_util::stream::unfold(Some(parts), |parts| async move {
        let mut parts = parts?;
        match parts.next_chunk().await {
            Ok((chunk, true)) => Some((Ok(Bytes::from(chunk)), Some(parts))),
            Ok((chunk, false)) if chunk.is_empty() => None,
            Ok((chunk, false)) => Some((Ok(Bytes::from(chunk)), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    sse::respond(chunks)
}

/// Writes one event without a name and without an id: clients of these protocols cannot continue a stream in the middle.
pub(crate) fn write_data(out: &mut Vec<u8>, data: &Json) {
    out.extend_from_slice(b"data: ");
    // JSON text has no line breaks outside of strings, and escapes those inside. Some clients know only `\n` as a line break.
    serde_json::to_writer(&mut *out, data).expect("JSON values always encode, and memory takes it");
    out.extend_from_slice(b"\n\n");
}

struct SseParts<S> {
    source: S,
    heartbeat: Interval,
}

impl<S: SseSource> SseParts<S> {
    /// Returns the next bytes, and whether more follow.
    async fn next_chunk(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let mut out = Vec::new();
        loop {
            let has_more = tokio::select! {
                has_more = self.source.write_next(&mut out) => has_more?,
                _ = self.heartbeat.tick() => return Ok((HEARTBEAT.to_vec(), true)),
            };
            if !has_more || !out.is_empty() {
                return Ok((out, has_more));
            }
        }
    }
}
