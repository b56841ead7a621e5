//! A draft, a question to a person, and what follows the answer.

use std::time::Instant;

use bench_rounds::{Round, Stopwatch, Task};
use superstep::prelude::*;

use super::chain::{Talk, TalkUpdate, say};
use super::{Kept, number, thread_name};

/// How long each of many paused threads takes from its answer to its end.
pub(super) async fn answers(task: &Task, runtime: &Runtime) -> anyhow::Result<Round> {
    let waiting = park(runtime, number(task, "threads")?).await?;
    let (watch, mut times) = (Stopwatch::start(), Vec::new());
    for thread in &waiting {
        let begun = Instant::now();
        let stopped = thread.answer_only("yes").await?;
        times.push(begun.elapsed());
        let stopped = stopped.ok_or_else(|| anyhow::anyhow!("nobody else runs it"))?;
        anyhow::ensure!(stopped.state.step() == 3, "{stopped:?}");
    }
    let mut round = watch.stop(times.len());
    round.times = times;
    Ok(round)
}

/// What threads weigh that wait.
pub(super) async fn parked(task: &Task, kept: &Kept) -> anyhow::Result<Round> {
    let empty = kept.bytes().await?;
    let watch = Stopwatch::start();
    let waiting = park(&kept.runtime, number(task, "threads")?).await?;
    let mut round = watch.stop(waiting.len());
    round.bytes = Some(kept.bytes().await? - empty);
    Ok(round)
}

/// Starts so many threads, each up to its question.
async fn park(runtime: &Runtime, threads: usize) -> anyhow::Result<Vec<Thread<Talk>>> {
    let graph = graph()?;
    let mut waiting = Vec::new();
    for _ in 0..threads {
        let thread = runtime.thread(&graph, thread_name())?;
        let outcome = thread.start(TalkUpdate::default().step(0)).await?.outcome;
        anyhow::ensure!(matches!(outcome, Outcome::Paused(_)), "{outcome:?}");
        waiting.push(thread);
    }
    Ok(waiting)
}

fn graph() -> anyhow::Result<Graph<Talk>> {
    let ask = |talk: View<Talk>, cx: NodeCx| async move {
        let answer: String = cx.interrupt(Interrupt::new("approve", "approve?")).await?;
        let update = TalkUpdate::default().step(talk.step() + 1);
        Ok::<_, NodeError>(update.messages(answer))
    };
    Ok(Graph::builder("approval")
        .node("draft", say)
        .node("ask", ask)
        .node("done", say)
        .edge(START, "draft")
        .edge("draft", "ask")
        .edge("ask", "done")
        .edge("done", END)
        .build()?)
}
