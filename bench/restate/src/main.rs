//! What Restate and PostgreSQL do by themselves: a worker with handlers that know no graph, and none of our code.
//!
//! `BareThread` is called as ours is, and does the same work in three ways: `play` repeats, in one durable run, the
//! very statements that ours sent for such an order (`script.rs`); `steps` has a durable run and a write for every step, as
//! most people would write it; `fan` calls `BareNode` so many times between two durable runs.

mod handlers;
mod pool;
mod script;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bench_rounds::{Failure, Task, serve_used};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::handlers::{BareNode, BareThread, Desk};

/// `bench-restate worker postgres listen=127.0.0.1:9080`, with the database and the folder of the scripts by environment.
fn main() -> Result<(), Failure> {
    let task = Task::parse(std::env::args().skip(1))?;
    let address: SocketAddr = task.text("listen")?.parse()?;
    let folder = PathBuf::from(std::env::var("BENCH_FOLDER")?);
    let tokio = tokio::runtime::Runtime::new()?;
    let _serving = tokio.block_on(async {
        let desk = Arc::new(Desk::open(&folder).await?);
        let listener = TcpListener::bind(address).await?;
        let endpoint = Endpoint::builder()
            .bind(BareThread(desk.clone()))
            .bind(BareNode(desk))
            .build();
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, HyperEndpoint::new(endpoint)));
        Ok::<_, Failure>(serving)
    })?;
    serve_used(env!("CARGO_PKG_VERSION"))
}

/// The server of the SDK would leave out what makes small messages go at once.
async fn accept(listener: TcpListener, endpoint: HyperEndpoint) -> std::io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), endpoint.clone());
        connections.spawn(async {
            // When it breaks, Restate makes another.
            let _ = connection.await;
        });
    }
}
