//! What those who run workers look at: health, readiness, figures.

use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use superstep::ThreadId;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::handlers::Desk;

/// The health of a worker.
#[derive(Clone)]
pub struct Health {
    desk: Arc<Desk>,
}

impl Health {
    pub(crate) fn new(desk: Arc<Desk>) -> Self {
        Self { desk }
    }

    /// Whether it takes calls: its store answers, and it is not about to stop.
    pub async fn is_ready(&self) -> bool {
        if self.desk.draining.load(Ordering::SeqCst) {
            return false;
        }
        let probe = ThreadId::new("ready").expect("a thread name");
        self.desk.runtime.epoch_of(&probe).await.is_ok()
    }

    /// Its figures, as Prometheus reads them.
    pub fn metrics(&self) -> String {
        let counts = &self.desk.counts;
        let mut text = String::new();
        let dropped = AtomicU64::new(self.desk.runtime.wire().dropped());
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

/// Answers until it is aborted.
pub(crate) async fn serve(listener: TcpListener, health: Health) {
    let mut looking = JoinSet::new();
    loop {
        // Those who have gone are kept until somebody looks.
        while looking.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let health = health.clone();
        looking.spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let health = health.clone();
                async move { Ok::<_, Infallible>(health.answer(request.uri().path()).await) }
            });
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = served.await {
                tracing::debug!(%error, "somebody who looked at the worker went away");
            }
        });
    }
}
