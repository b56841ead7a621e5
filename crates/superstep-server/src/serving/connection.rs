//! One connection: requests, one after the other, and streams between them.
//!
//! The HTTP library keeps some 25 KB of buffers for as long as a response lasts, and the stream of a thread lasts for days. So a
//! response that [streams](crate::stream::sse) is taken away from the library: the connection is taken apart, its buffers are
//! freed, and `stream_writer.rs` writes the response to the bare socket. After the stream, the library continues with what
//! follows.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderMap, Method, Request, Version};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use superstep::__private::lock;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use crate::serving::socket::ClientSocket;
use crate::serving::stream_writer::write_stream;
use crate::stream::sse::StreamedBody;

/// Serves a connection until it ends. When the server stops, the current request is the last one.
pub(super) async fn serve(tcp: TcpStream, router: Router, is_stopping: watch::Receiver<bool>) {
    let mut socket = ClientSocket::new(tcp);
    loop {
        // In a box of its own, which is freed while a stream is sent.
        let requests = serve_requests(socket, router.clone(), is_stopping.clone());
        let Some(taken) = Box::pin(requests).await else {
            return;
        };
        let may_continue = taken.stream.is_kept_alive;
        let Some(written) = write_stream(taken.socket, taken.stream.response).await else {
            return;
        };
        if !may_continue || *is_stopping.borrow() {
            return;
        }
        socket = written;
    }
}

/// A connection whose response is a stream that is yet to be written.
struct TakenConnection {
    socket: ClientSocket,
    stream: TakenStream,
}

/// A response that was taken away from the HTTP library.
struct TakenStream {
    response: Response,
    /// Whether another request may follow on the connection.
    is_kept_alive: bool,
}

/// Where a response is put to be taken away.
type StreamSlot = Arc<Mutex<Option<TakenStream>>>;

/// Serves requests until one is answered with a stream. Returns `None` if the connection ended before that.
async fn serve_requests(
    socket: ClientSocket,
    router: Router,
    mut is_stopping: watch::Receiver<bool>,
) -> Option<TakenConnection> {
    let slot = StreamSlot::default();
    let is_flushed = socket.flushed();
    let router = TowerToHyperService::new(router);
    let service = {
        let slot = slot.clone();
        service_fn(move |request| answer(router.clone(), request, slot.clone()))
    };
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also the time for which a connection may wait for its next request.
        .header_read_timeout(HEADER_TIME_MAX)
        .serve_connection(TokioIo::new(socket), service)
        // For WebSockets.
        .with_upgrades();
    let mut stops = pin!(is_stopping.wait_for(|is_stopping| *is_stopping));
    let mut is_last = false;
    let is_taken = poll_fn(|cx| {
        if !is_last && stops.as_mut().poll(cx).is_ready() {
            is_last = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        if let Poll::Ready(ended) = Pin::new(&mut connection).poll(cx) {
            if let Err(error) = ended {
                tracing::trace!(%error, "connection failed");
            }
            return Poll::Ready(false);
        }
        // The client must have the responses before this one, which the library may hold still.
        match lock(&slot).is_some() && is_flushed.load(Ordering::Relaxed) {
            true => Poll::Ready(true),
            false => Poll::Pending,
        }
    });
    if !is_taken.await {
        return None;
    }
    let parts = connection.into_parts()?;
    let stream = lock(&slot).take()?;
    let mut socket = parts.io.into_inner();
    socket.unread(&parts.read_buf);
    Some(TakenConnection { socket, stream })
}

/// Answers a request. A stream is put into the slot, and this does not return: the connection is taken apart.
async fn answer(
    router: TowerToHyperService<Router>,
    request: Request<Incoming>,
    slot: StreamSlot,
) -> Result<Response, Infallible> {
    // Others have no chunks, or no body.
    let may_be_taken = request.version() == Version::HTTP_11 && *request.method() != Method::HEAD;
    let is_kept_alive = !wants_close(request.headers());
    let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
    let request = request.map(|body| {
        let is_read = is_read.clone();
        Body::new(RequestBody {
            body,
            is_read,
            deadlines: None,
            received: 0,
        })
    });
    let response = router.call(request).await?;
    let is_stream = response.extensions().get::<StreamedBody>().is_some();
    // What is left of a body would be taken for the next request.
    if !is_stream || !may_be_taken || !is_read.load(Ordering::Relaxed) {
        return Ok(response);
    }
    *lock(&slot) = Some(TakenStream {
        response,
        is_kept_alive,
    });
    std::future::pending().await
}

/// Whether the client sends no request after this one.
fn wants_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter();
    let mut options = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// The body of a request, which notes when it was read to its end, and fails if its client is too slow.
struct RequestBody {
    body: Incoming,
    is_read: Arc<AtomicBool>,
    /// `None` before something had to be waited for: most bodies come with their head.
    deadlines: Option<BodyDeadlines>,
    /// Bytes that count among those of bodies that are being received.
    received: u64,
}

struct BodyDeadlines {
    /// When something must have arrived.
    next: Pin<Box<Sleep>>,
    /// When all of it must have arrived.
    end: Instant,
}

impl RequestBody {
    /// Returns whether the client takes too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> bool {
        let deadlines = self.deadlines.get_or_insert_with(|| {
            let now = Instant::now();
            BodyDeadlines {
                next: Box::pin(tokio::time::sleep_until(now + BODY_PAUSE_MAX)),
                end: now + BODY_TIME_MAX,
            }
        });
        deadlines.next.as_mut().poll(cx).is_ready() || Instant::now() >= deadlines.end
    }

    /// Counts what has arrived. Fails if bodies that are not complete take too much memory together.
    fn count(&mut self, bytes: u64) -> Result<(), axum::BoxError> {
        self.received += bytes;
        match RECEIVING.fetch_add(bytes, Ordering::Relaxed) + bytes > RECEIVING_MAX {
            true => Err("the server receives too much at once".into()),
            false => Ok(()),
        }
    }

    fn forget_count(&mut self) {
        let received = std::mem::take(&mut self.received);
        RECEIVING.fetch_sub(received, Ordering::Relaxed);
    }

    /// Notes that something has arrived.
    fn restart_pause(&mut self) {
        if let Some(deadlines) = &mut self.deadlines {
            let next = (Instant::now() + BODY_PAUSE_MAX).min(deadlines.end);
            deadlines.next.as_mut().reset(next);
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        match polled {
            Poll::Pending if self.poll_late(cx) => Poll::Ready(Some(Err(
                "the body of the request did not arrive in time".into(),
            ))),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                self.restart_pause();
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                let counted = self.count(bytes);
                if self.is_read.load(Ordering::Relaxed) {
                    self.forget_count();
                }
                Poll::Ready(Some(counted.map(|()| frame)))
            }
            Poll::Ready(ended) => {
                self.forget_count();
                Poll::Ready(ended.map(|error| error.map_err(axum::BoxError::from)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.forget_count();
    }
}

/// Bytes of bodies that are being received, of all connections of the process: clients that send half of a large body and wait
/// would take all memory.
static RECEIVING: AtomicU64 = AtomicU64::new(0);
const RECEIVING_MAX: u64 = 1024 * 1024 * 1024;
/// How long the head of a request may take.
const HEADER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long a client may send nothing of a body, and how long all of a body may take.
const BODY_PAUSE_MAX: Duration = Duration::from_secs(30);
const BODY_TIME_MAX: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_ask_for_the_end_of_the_connection() {
        let wants = |value: &str| {
            let value = http::HeaderValue::from_str(value).unwrap();
            wants_close(&HeaderMap::from_iter([(CONNECTION, value)]))
        };
        assert!(wants("close") && wants("TE, Close"));
        assert!(!wants("keep-alive") && !wants("closed"));
    }

    /// Ten thousand clients may wait at once.
    #[test]
    fn a_connection_that_streams_is_small() {
        fn size<A, B, C, Serving>(_: impl Fn(A, B, C) -> Serving) -> usize {
            size_of::<Serving>()
        }
        let bytes = size(serve);
        assert!(bytes <= 2_048, "{bytes} bytes");
    }
}
