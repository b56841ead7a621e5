//! A worker of a Restate cluster in the process of a server, so that a suite runs through the cluster that
//! `cargo xtask services up` has started.

use std::fs::File;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde_json::json;
use superstep::graph::Definition;
use superstep::{Runtime, RuntimeBuilder};
use superstep_conformance::services;
use superstep_postgres::Postgres;
use superstep_restate::{Redis, Restate, Worker};
use tokio::task::JoinSet;

/// A worker that runs graphs for the cluster until this is dropped.
pub(crate) struct Cluster {
    store: Postgres,
    restate: Restate,
    _worker: JoinSet<()>,
    _turn: File,
}

impl Cluster {
    /// Starts a worker and tells the cluster of it.
    pub(crate) async fn start(
        store: &Postgres,
        graphs: &[Arc<Definition>],
    ) -> anyhow::Result<Self> {
        let turn = turn()?;
        let runtime = wired(store).await?.build();
        for graph in graphs {
            runtime.register_definition(graph);
        }
        let listener = Worker::listen("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?;
        let serving = Worker::new(runtime, store.clone());
        let mut worker = JoinSet::new();
        worker.spawn(async move {
            let served = serving.serve(listener, std::future::pending()).await;
            if let Err(error) = served {
                tracing::error!(?error, "the worker stopped");
            }
        });
        register(&format!("http://{address}")).await?;
        let ingress = services::address("restate", "ingress");
        Ok(Self {
            restate: Restate::new([ingress], store.clone())?,
            store: store.clone(),
            _worker: worker,
            _turn: turn,
        })
    }

    /// Returns a runtime whose threads the worker runs.
    pub(crate) async fn runtime(&self) -> anyhow::Result<Runtime> {
        let builder = wired(&self.store).await?;
        Ok(builder.engine(self.restate.clone()).build())
    }
}

/// A runtime that hears of live events through Redis, as a server and its workers do on different machines.
async fn wired(store: &Postgres) -> anyhow::Result<RuntimeBuilder> {
    let redis = Redis::connect(&services::address("redis", "url")).await?;
    Ok(Runtime::builder(store.clone())
        .store(store.clone())
        .live_bus(redis))
}

/// Restate has one worker under a service's name, so those who start one take turns.
fn turn() -> anyhow::Result<File> {
    let path = std::env::temp_dir().join("superstep-restate-tests.lock");
    let file = File::create(path)?;
    file.lock()?;
    Ok(file)
}

async fn register(worker: &str) -> anyhow::Result<()> {
    let admin = services::address("restate", "admin");
    let body = json!({ "uri": worker, "force": true });
    let call = reqwest::Client::new()
        .post(format!("{admin}/deployments"))
        .json(&body);
    let reply = call.send().await.context("Restate cannot be reached")?;
    let status = reply.status();
    ensure!(
        status.is_success(),
        "Restate refuses the worker: {status}: {}",
        reply.text().await?
    );
    Ok(())
}
