//! Health, readiness and metrics of a worker.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use superstep::ThreadId;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::handlers::HandlerState;

/// Health and metrics of a worker.
#[derive(Clone)]
pub struct Health {
    desk: Arc<HandlerState>,
}

impl Health {
    pub(crate) fn new(desk: Arc<HandlerState>) -> Self {
        Self { desk }
    }

    /// Returns whether the worker accepts calls: its store answers, its clock is right, and it is not draining.
    pub async fn is_ready(&self) -> bool {
        let desk = &self.desk;
        if desk.draining.load(Ordering::SeqCst) || desk.skewed.load(Ordering::SeqCst) {
            return false;
        }
        let probe = ThreadId::new("ready").expect("a thread name");
        self.desk.runtime.local().epoch_of(&probe).await.is_ok()
    }

    /// Returns the metrics in Prometheus text format.
    pub fn metrics(&self) -> String {
        let counts = &self.desk.counts;
        let mut text = String::new();
        let dropped = AtomicU64::new(self.desk.runtime.live_bus().dropped());
        for (name, kind, help, value) in [
            (
                "superstep_segments_total",
                "counter",
                "Segments that came to a boundary or failed",
                &counts.segments,
            ),
            (
                "superstep_segments_failed_total",
                "counter",
                "Segments that are tried again",
                &counts.segments_failed,
            ),
            (
                "superstep_tasks_total",
                "counter",
                "Tasks run for other workers",
                &counts.tasks,
            ),
            (
                "superstep_tasks_failed_total",
                "counter",
                "Tasks for other workers that are tried again",
                &counts.tasks_failed,
            ),
            (
                "superstep_runs_stopped_total",
                "counter",
                "Runs that finished, paused, failed or were cancelled here",
                &counts.stopped,
            ),
            (
                "superstep_orders_refused_total",
                "counter",
                "Orders that were refused",
                &counts.refused,
            ),
            (
                "superstep_under_way",
                "gauge",
                "Segments and tasks under way",
                &counts.under_way,
            ),
            (
                "superstep_notices_dropped_total",
                "counter",
                "Live events and wake-ups that did not reach those who watch",
                &dropped,
            ),
        ] as [(_, _, _, &AtomicU64); 8]
        {
            let value = value.load(Ordering::Relaxed);
            write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
            )
            .expect("a string takes everything");
        }
        text
    }

    async fn answer(&self, path: &str) -> Response<Full<Bytes>> {
        let (status, text) = match path {
            "/health" => (StatusCode::OK, "ok\n".to_owned()),
            "/ready" if self.is_ready().await => (StatusCode::OK, "ready\n".to_owned()),
            "/ready" => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
            "/metrics" => (StatusCode::OK, self.metrics()),
            _ => (
                StatusCode::NOT_FOUND,
                "there is /health, /ready and /metrics\n".to_owned(),
            ),
        };
        Response::builder()
            .status(status)
            .header(CONTENT_TYPE, "text/plain; version=0.0.4")
            .body(Full::new(text.into()))
            .expect("a plain response")
    }
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health")
            .field("counts", &self.desk.counts)
            .finish_non_exhaustive()
    }
}

/// Serves the operations port until the task is aborted.
///
/// Any client on the network may connect and send nothing, so connections are limited in time and number: each has a minute,
/// and when there are too many the oldest one is closed. A probe is answered within milliseconds and is not among the oldest.
pub(crate) async fn serve(listener: TcpListener, health: Health) {
    let mut connections = JoinSet::new();
    let mut oldest_first = VecDeque::new();
    loop {
        // Finished tasks stay in the set until they are joined.
        while connections.try_join_next().is_some() {}
        oldest_first.retain(|connection: &AbortHandle| !connection.is_finished());
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // For example too many open files. Retrying at once would only burn CPU.
                tracing::warn!(%error, "a connection to the operations port was not accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        if oldest_first.len() >= CONNECTIONS_MAX
            && let Some(oldest) = oldest_first.pop_front()
        {
            oldest.abort();
        }
        oldest_first.push_back(connections.spawn(answer(stream, health.clone())));
    }
}

async fn answer(stream: TcpStream, health: Health) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let health = health.clone();
        async move { Ok::<_, Infallible>(health.answer(request.uri().path()).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    match tokio::time::timeout(CONNECTION_MAX, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "metrics client disconnected"),
        Err(_) => tracing::debug!("metrics client took too long"),
    }
}

/// Maximum number of concurrent connections.
const CONNECTIONS_MAX: usize = 32;
/// Maximum time for the headers of a request to arrive.
const HEADER_MAX: Duration = Duration::from_secs(5);
/// Maximum lifetime of a connection, with all its requests.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
