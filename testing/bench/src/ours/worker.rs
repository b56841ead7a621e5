//! Our worker for a Restate, and its graphs: a chain, a question, a fan-out.

use std::sync::Arc;

use bench_rounds::{Task, message, serve_used};
use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep::driver::{QueuedRequest, ThreadRequest};
use superstep::prelude::*;
use superstep::run::RunOptions;
use superstep::{Runtime, Value};
use superstep_postgres::Postgres;
use superstep_restate::Worker;

use super::fanout::{self, FanUpdate};

#[derive(Clone, Debug, Default, State)]
pub(crate) struct Page {
    #[state(append)]
    pub(crate) paragraphs: Vec<String>,
    step: u64,
    /// Whether a person is asked.
    asks: bool,
}

/// Serves until nobody asks for more: `worker postgres listen=ADDRESS`.
pub(super) fn serve(task: &Task, tokio: &tokio::runtime::Runtime) -> anyhow::Result<()> {
    let address = task.text("listen").map_err(anyhow::Error::from_boxed)?;
    let url = std::env::var("BENCH_POSTGRES")?;
    let _serving = tokio.block_on(async {
        let postgres = Postgres::connect(&url).await?;
        let runtime = Runtime::new(postgres.clone());
        runtime.register(&chain()?);
        runtime.register(&approval()?);
        runtime.register(&fanout::graph()?);
        let listener = Worker::listen(address.parse()?)?;
        let worker = Worker::new(runtime, postgres);
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(worker.serve(listener, std::future::pending()));
        anyhow::Ok(serving)
    })?;
    serve_used(env!("CARGO_PKG_VERSION")).map_err(anyhow::Error::from_boxed)
}

/// Twenty nodes, each writes a KiB.
pub(crate) fn chain() -> anyhow::Result<Graph<Page>> {
    let names: Vec<String> = (0..NODES).map(|at| format!("n{at}")).collect();
    let mut builder = Graph::builder("chain").edge(START, names[0].as_str());
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map_or(END, String::as_str);
        builder = builder.node(name.as_str(), write).edge(name.as_str(), next);
    }
    Ok(builder.build()?)
}

/// A draft, a question if somebody is to be asked, and what follows.
pub(crate) fn approval() -> anyhow::Result<Graph<Page>> {
    let ask = |page: View<Page>, cx: NodeCx| async move {
        let answer: String = match page.asks {
            true => cx.interrupt(Interrupt::new("approve", "approve?")).await?,
            false => "yes".to_owned(),
        };
        let update = PageUpdate::default().step(page.step + 1);
        Ok::<_, NodeError>(update.paragraphs(answer))
    };
    Ok(Graph::builder("approval")
        .node("draft", write)
        .node("ask", ask)
        .node("done", write)
        .edge(START, "draft")
        .edge("draft", "ask")
        .edge("ask", "done")
        .edge("done", END)
        .build()?)
}

async fn write(page: View<Page>, _: NodeCx) -> Result<PageUpdate, NodeError> {
    let step = page.step as usize;
    let paragraph: String = (0..5).map(|part| message(step + part)).collect();
    let update = PageUpdate::default().step(page.step + 1);
    Ok(update.paragraphs(paragraph))
}

/// The order that starts a chain.
pub(crate) fn chain_order() -> anyhow::Result<Arc<QueuedRequest>> {
    start("chain", PageUpdate::default().step(0))
}

/// The order that starts a thread up to its question, or to its end if nobody is asked.
pub(crate) fn approval_order(asks: bool) -> anyhow::Result<Arc<QueuedRequest>> {
    start("approval", PageUpdate::default().asks(asks))
}

/// The order that starts a fan-out.
pub(crate) fn fanout_order(branches: u64) -> anyhow::Result<Arc<QueuedRequest>> {
    start("fanout", FanUpdate::default().branches(branches))
}

fn start<U: Serialize + DeserializeOwned>(
    graph: &str,
    input: U,
) -> anyhow::Result<Arc<QueuedRequest>> {
    let start = ThreadRequest::Start {
        input: Value::encode(&input)?,
        context: None,
        metadata: None,
    };
    Ok(Arc::new(QueuedRequest::new(
        graph,
        start,
        &RunOptions::default(),
    )?))
}

pub(crate) const NODES: usize = 20;
