//! A planner and a tool in a loop, each turn two supersteps and two messages: what the thread weighs.

use bench_rounds::{Round, Stopwatch, Task};
use superstep::prelude::*;

use super::chain::{Talk, TalkUpdate, say};
use super::{Kept, number};

pub(super) async fn round(task: &Task, kept: &Kept) -> anyhow::Result<Round> {
    let turns = number(task, "turns")?;
    let (graph, empty) = (graph(turns as u64)?, kept.bytes().await?);
    let watch = Stopwatch::start();
    let thread = kept.runtime.thread(&graph, "loop")?;
    let stopped = thread.start(TalkUpdate::default().step(0)).await?;
    let mut round = watch.stop(2 * turns);
    let steps = stopped.state.step();
    anyhow::ensure!(steps == 2 * turns as u64, "{steps} steps");
    round.bytes = Some(kept.bytes().await? - empty);
    Ok(round)
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
