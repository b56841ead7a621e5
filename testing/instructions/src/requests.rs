//! Requests to the server, from its router inwards: what every request costs, and a run with all that the server does for it.
//!
//! Nothing that is optional is on: no authentication, no limits, no audit log, no access log.

use std::sync::Arc;

use anyhow::ensure;
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Method, Request};
use serde_json::Value as Json;
use superstep::registry::MemoryRegistry;
use superstep::{Memory, Runtime};
use superstep_server::Server;
use tower::ServiceExt as _;

use crate::workload::{Executor, NODES, Workload, chain};

pub(crate) const ALL: &[Workload] = &[
    Workload {
        unit: "request to a server",
        rounds: 200,
        run: bare,
    },
    Workload {
        unit: "run of 20 supersteps on a new thread of a server",
        rounds: 50,
        run: runs,
    },
];

/// What the middleware costs: the handler of this route does nothing.
fn bare(executor: &Executor, rounds: u64) -> anyhow::Result<u64> {
    let (_server, router) = executor.block_on(serve())?;
    executor.block_on(async {
        for _ in 0..rounds {
            send(&router, Method::GET, "/ok", "").await?;
        }
        Ok(rounds)
    })
}

/// A new thread, and a run on it that the client waits for.
fn runs(executor: &Executor, rounds: u64) -> anyhow::Result<u64> {
    let (_server, router) = executor.block_on(serve())?;
    executor.block_on(async {
        for _ in 0..rounds {
            let thread = send(&router, Method::POST, "/threads", "{}").await?;
            let thread = thread["thread_id"].as_str().unwrap_or_default();
            let path = format!("/threads/{thread}/runs/wait");
            let state = send(&router, Method::POST, &path, RUN).await?;
            ensure!(state["step"] == NODES, "{state}");
        }
        Ok(rounds)
    })
}

async fn serve() -> anyhow::Result<(Server, Router)> {
    let runtime = Runtime::new(Memory::default());
    let builder = Server::builder(runtime, Arc::new(MemoryRegistry::new()));
    let server = builder.graph(chain()?.definition()).start().await?;
    let router = server.router();
    Ok((server, router))
}

async fn send(
    router: &Router,
    method: Method,
    path: &str,
    body: &'static str,
) -> anyhow::Result<Json> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("host", "127.0.0.1:2024");
    let request = request.header("content-type", "application/json");
    let response = router
        .clone()
        .oneshot(request.body(Body::from(body))?)
        .await?;
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await?;
    ensure!(status.is_success(), "{path}: {status}");
    Ok(serde_json::from_slice(&body)?)
}

const RUN: &str = r#"{"assistant_id":"chain","input":{"step":0}}"#;
