//! A planner and a tool in a loop, each turn two supersteps and two messages: what the thread weighs.

use bench_rounds::{Round, Stopwatch, Task};
use superstep::prelude::*;

use super::chain::{Talk, TalkUpdate, say};
use super::{Kept, number, thread_name};

pub(super) async fn round(task: &Task, kept: &Kept) -> anyhow::Result<Round> {
    let turns = number(task, "turns")?;
    let (graph, empty) = (graph(turns as u64)?, kept.bytes().await?);
    let watch = Stopwatch::start();
    talk(kept, &graph, turns).await?;
    let mut round = watch.stop(2 * turns);
    round.bytes = Some(kept.bytes().await? - empty);
    Ok(round)
}

/// What so many threads add to a store that has as many already.
pub(super) async fn marginal(task: &Task, kept: &Kept) -> anyhow::Result<Round> {
    let (turns, threads) = (number(task, "turns")?, number(task, "threads")?);
    let graph = graph(turns as u64)?;
    for _ in 0..threads {
        talk(kept, &graph, turns).await?;
    }
    let (before, watch) = (kept.bytes().await?, Stopwatch::start());
    for _ in 0..threads {
        talk(kept, &graph, turns).await?;
    }
    let mut round = watch.stop(threads);
    round.bytes = Some(kept.bytes().await? - before);
    Ok(round)
}

async fn talk(kept: &Kept, graph: &Graph<Talk>, turns: usize) -> anyhow::Result<()> {
    let thread = kept.runtime.thread(graph, thread_name())?;
    let stopped = thread.start(TalkUpdate::default().step(0)).await?;
    let steps = stopped.state.step();
    anyhow::ensure!(steps == 2 * turns as u64, "{steps} steps");
    Ok(())
}

fn graph(turns: u64) -> anyhow::Result<Graph<Talk>> {
    Ok(Graph::builder("loop")
        .node("planner", say)
        .node("tool", say)
        .edge(START, "planner")
        .edge("planner", "tool")
        .route("tool", &["planner", END], move |talk: &Talk| {
            if talk.step() < 2 * turns {
                "planner"
            } else {
                END
            }
        })
        .build()?)
}
