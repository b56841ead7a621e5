//! The server itself: health, version, metrics, documentation, and who its caller is.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde_json::{Value as Json, json};

use crate::caller::{Caller, QueryFields};
use crate::error::ApiResult;
use crate::permission::Permission;
use crate::routes::{openapi, ready};
use crate::thread::ACTIVE_MAX;
use crate::{App, Shared};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(ok))
        .route("/ok", get(ok))
        .route("/info", get(info))
        .route("/metrics", get(metrics))
        .route("/superstep/me", get(me))
        .route("/openapi.json", get(document))
        .route("/docs", get(docs))
}

async fn ok(State(app): State<App>, query: QueryFields) -> ApiResult<JsonBody<Json>> {
    if query.flag("check_db") {
        ready::check_stores(&app).await?;
    }
    Ok(JsonBody(json!({ "ok": true })))
}

async fn info() -> JsonBody<Json> {
    JsonBody(json!({
        "version": env!("CARGO_PKG_VERSION"),
        // LangGraph's document requires both.
        "langgraph_py_version": "",
        "flags": {
            "assistants": true,
            "crons": true,
            "langsmith": false,
            "langsmith_tracing_replicas": false,
        },
        "metadata": {},
        "host": {
            "kind": "self-hosted",
            "project_id": null,
            "host_revision_id": null,
            "revision_id": null,
            "tenant_id": null,
        },
    }))
}

async fn me(State(app): State<App>, caller: Caller) -> JsonBody<Json> {
    let permissions = caller.permissions.iter().map(Permission::name);
    JsonBody(json!({
        "principal": caller.principal,
        "tenant": caller.tenant,
        "permissions": permissions.collect::<Vec<_>>(),
        "is_authenticated": app.authenticator.is_some(),
    }))
}

/// What the server counts, with its unit in the name.
struct Figures {
    uptime_seconds: u64,
    requests: u64,
    failures: u64,
    runs: u64,
    streamed_entries: u64,
    limited: u64,
    open_requests: u64,
    /// How long the oldest run is due that waits.
    oldest_run_seconds: u64,
    /// How long the oldest delivery is due that waits.
    oldest_delivery_seconds: u64,
    pending: usize,
    running: usize,
    /// Runs of all tenants that this process executes.
    executing: usize,
    /// How long no run has begun or ended in this process.
    since_progress_seconds: u64,
}

impl Figures {
    async fn read(app: &Shared, caller: &Caller) -> ApiResult<Self> {
        let counters = &app.counters;
        let active = app.registry();
        let active = active.active_runs(&caller.tenant, ACTIVE_MAX).await?;
        let running = active.iter().filter(|run| run.is_running).count();
        let (due, delivery_due) = tokio::try_join!(
            app.registry().next_due(),
            app.registry().next_delivery_due()
        )?;
        let queue = app.queue.health();
        Ok(Self {
            uptime_seconds: app.started.elapsed().as_secs(),
            requests: counters.requests.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            runs: counters.runs.load(Ordering::Relaxed),
            streamed_entries: counters.streamed_entries.load(Ordering::Relaxed),
            limited: counters.limited.load(Ordering::Relaxed),
            open_requests: counters.open_requests.load(Ordering::Relaxed),
            oldest_run_seconds: ready::age(app, due).as_secs(),
            oldest_delivery_seconds: ready::age(app, delivery_due).as_secs(),
            pending: active.len() - running,
            running,
            executing: queue.executing,
            since_progress_seconds: queue.since_progress.as_secs(),
        })
    }

    fn prometheus(&self) -> String {
        let mut text = String::new();
        let rows = [
            ("uptime_seconds", "gauge", self.uptime_seconds),
            ("requests_total", "counter", self.requests),
            ("request_failures_total", "counter", self.failures),
            ("runs_submitted_total", "counter", self.runs),
            ("streamed_entries_total", "counter", self.streamed_entries),
            ("requests_limited_total", "counter", self.limited),
            ("requests_open", "gauge", self.open_requests),
            ("runs_executing", "gauge", self.executing as u64),
            (
                "queue_since_progress_seconds",
                "gauge",
                self.since_progress_seconds,
            ),
            (
                "run_oldest_waiting_seconds",
                "gauge",
                self.oldest_run_seconds,
            ),
            (
                "delivery_oldest_waiting_seconds",
                "gauge",
                self.oldest_delivery_seconds,
            ),
        ];
        for (name, kind, value) in rows {
            let _ = writeln!(
                text,
                "# TYPE superstep_{name} {kind}\nsuperstep_{name} {value}"
            );
        }
        let _ = writeln!(
            text,
            "# TYPE superstep_runs_active gauge\nsuperstep_runs_active{{status=\"pending\"}} {}\nsuperstep_runs_active{{status=\"running\"}} {}",
            self.pending, self.running
        );
        text
    }

    fn json(&self) -> Json {
        json!({
            "uptime_seconds": self.uptime_seconds,
            "requests": self.requests,
            "request_failures": self.failures,
            "runs_submitted": self.runs,
            "streamed_entries": self.streamed_entries,
            "requests_limited": self.limited,
            "requests_open": self.open_requests,
            "runs_executing": self.executing,
            "queue_since_progress_seconds": self.since_progress_seconds,
            "run_oldest_waiting_seconds": self.oldest_run_seconds,
            "delivery_oldest_waiting_seconds": self.oldest_delivery_seconds,
            "runs_pending": self.pending,
            "runs_running": self.running,
        })
    }
}

async fn metrics(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<Response> {
    let figures = Figures::read(&app, &caller).await?;
    Ok(match query.text("format") {
        Some("json") => JsonBody(figures.json()).into_response(),
        _ => {
            let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, figures.prometheus()).into_response()
        }
    })
}

async fn document() -> JsonBody<&'static Json> {
    JsonBody(openapi::document())
}

async fn docs() -> impl IntoResponse {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    ([(CONTENT_SECURITY_POLICY, policy)], Html(openapi::page()))
}
