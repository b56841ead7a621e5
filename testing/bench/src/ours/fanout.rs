//! A superstep of many tasks and a join.

use bench_rounds::{Round, Stopwatch, Task};
use superstep::prelude::*;

use super::{number, thread_name};

#[derive(Clone, Debug, Default, State)]
pub(super) struct Fan {
    branches: u64,
    #[state(append)]
    out: Vec<u64>,
    total: u64,
}

const BRANCH: SendTo<u64> = SendTo::new("branch");

pub(super) async fn round(task: &Task, runtime: &Runtime) -> anyhow::Result<Round> {
    let (graph, branches) = (graph()?, number(task, "branches")? as u64);
    let watch = Stopwatch::start();
    let thread = runtime.thread(&graph, thread_name())?;
    let stopped = thread
        .start(FanUpdate::default().branches(branches))
        .await?;
    let round = watch.stop(1);
    anyhow::ensure!(stopped.state.total == branches, "{:?}", stopped.outcome);
    Ok(round)
}

pub(super) fn graph() -> anyhow::Result<Graph<Fan>> {
    let split = |fan: View<Fan>, _: NodeCx| async move {
        let all = Command::update(FanUpdate::default());
        Ok::<_, NodeError>((0..fan.branches).fold(all, |all, n| all.send(&BRANCH, n)))
    };
    let branch = |n: u64, _: NodeCx| async move { Ok::<_, NodeError>(FanUpdate::default().out(n)) };
    let join = |fan: View<Fan>, _: NodeCx| async move {
        Ok::<_, NodeError>(FanUpdate::default().total(fan.out.len() as u64))
    };
    Ok(Graph::builder("fanout")
        .node("split", split)
        .map_node(&BRANCH, branch)
        .node("join", join)
        .edge(START, "split")
        .commands("split", &["branch"])
        .edge("branch", "join")
        .edge("join", END)
        .build()?)
}
