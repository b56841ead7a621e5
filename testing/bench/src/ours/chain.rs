//! Twenty nodes in a row, each appends a message: by one thread after the other, or by many at once.

use std::time::{Duration, Instant};

use bench_rounds::{Round, Stopwatch, Task, message};
use superstep::prelude::*;
use tokio::task::JoinSet;

use super::{number, thread_name};

#[derive(Clone, Debug, Default, State)]
pub(crate) struct Talk {
    #[state(append)]
    messages: Vec<String>,
    step: u64,
}

/// So many workers at once, each doing one chain after the other until the time is over.
pub(super) async fn round(task: &Task, runtime: &Runtime) -> anyhow::Result<Round> {
    let (graph, workers) = (graph()?, number(task, "at_once")?);
    let time = task.time().map_err(anyhow::Error::from_boxed)?;
    // Connections are made and statements prepared when they are first used.
    all(workers.min(CONNECTIONS), runtime, &graph, Duration::ZERO).await?;
    let watch = Stopwatch::start();
    let steps = all(workers, runtime, &graph, time).await?;
    Ok(watch.stop(steps))
}

async fn all(
    workers: usize,
    runtime: &Runtime,
    graph: &Graph<Talk>,
    time: Duration,
) -> anyhow::Result<usize> {
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for _ in 0..workers {
        let (runtime, graph) = (runtime.clone(), graph.clone());
        working.spawn(async move {
            let mut steps = 0;
            while steps == 0 || begun.elapsed() < time {
                one(&runtime, &graph).await?;
                steps += NODES;
            }
            anyhow::Ok(steps)
        });
    }
    let mut steps = 0;
    while let Some(worker) = working.join_next().await {
        steps += worker??;
    }
    Ok(steps)
}

/// Runs one chain on a thread of its own.
pub(crate) async fn one(runtime: &Runtime, graph: &Graph<Talk>) -> anyhow::Result<()> {
    let thread = runtime.thread(graph, thread_name())?;
    let stopped = thread.start(TalkUpdate::default().step(0)).await?;
    anyhow::ensure!(stopped.state.messages.len() == NODES, "{stopped:?}");
    Ok(())
}

pub(crate) fn graph() -> anyhow::Result<Graph<Talk>> {
    let names: Vec<String> = (0..NODES).map(|at| format!("n{at}")).collect();
    let mut builder = Graph::builder("chain").edge(START, names[0].as_str());
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map_or(END, String::as_str);
        builder = builder.node(name.as_str(), say).edge(name.as_str(), next);
    }
    Ok(builder.build()?)
}

/// The node of all workloads: appends a message and counts.
pub(super) async fn say(talk: View<Talk>, _: NodeCx) -> Result<TalkUpdate, NodeError> {
    let update = TalkUpdate::default().step(talk.step + 1);
    Ok(update.messages(message(talk.step as usize)))
}

impl Talk {
    /// How many nodes ran.
    pub(super) fn step(&self) -> u64 {
        self.step
    }
}

pub(crate) const NODES: usize = 20;
const CONNECTIONS: usize = 16;
