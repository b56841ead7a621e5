//! A superstep of many tasks and a join: each task's result is stored as it comes.

use superstep::prelude::*;

use super::fixture::Fixture;
use super::floor::Floor;
use super::report::Row;
use super::sides::alternate;

#[derive(Clone, Debug, Default, State)]
struct Sum {
    branches: u64,
    #[state(reduce = u64::wrapping_add)]
    total: u64,
    joined: bool,
}

const BRANCH: SendTo<u64> = SendTo::new("branch");

pub(super) fn run(fixture: &Fixture) -> anyhow::Result<Vec<Row>> {
    let graph = graph()?;
    let runtime = fixture.runtime()?;
    let floor = Floor::open(&fixture.path())?;
    let mut started = 0;
    let mut rows = Vec::new();
    for (branches, rounds) in [(100, 25), (1_000, 9), (10_000, 3)] {
        if fixture.quick && branches > 1_000 {
            continue;
        }
        let mut spread = || {
            started += 1;
            let thread = runtime.thread(&graph, format!("fanout-{started}"))?;
            let stopped = fixture.wait(thread.start(SumUpdate::default().branches(branches)))?;
            let sum = branches * (branches - 1) / 2;
            anyhow::ensure!(
                stopped.state.joined && stopped.state.total == sum,
                "{stopped:?}"
            );
            Ok(())
        };
        let bare = || {
            floor.commits(3)?;
            Ok(floor.rows(usize::try_from(branches)?)?)
        };
        let sides = alternate(fixture.size(rounds, 3), &mut spread, bare)?;
        let work = format!("fan-out of {branches} and a join");
        rows.push(
            Row::new(work, "ms/run", sides.ours * 1e3)
                .against("bare rows in groups, ms", sides.theirs * 1e3),
        );
    }
    Ok(rows)
}

fn graph() -> anyhow::Result<Graph<Sum>> {
    let split = |sum: View<Sum>, _: NodeCx| async move {
        let all = Command::update(SumUpdate::default());
        Ok::<_, NodeError>((0..sum.branches).fold(all, |all, n| all.send(&BRANCH, n)))
    };
    let branch =
        |n: u64, _: NodeCx| async move { Ok::<_, NodeError>(SumUpdate::default().total(n)) };
    let join = |_: View<Sum>, _: NodeCx| async move {
        Ok::<_, NodeError>(SumUpdate::default().joined(true))
    };
    Ok(Graph::builder("fanout")
        .node("split", split)
        .worker(&BRANCH, branch)
        .node("join", join)
        .edge(START, "split")
        .commands("split", &["branch"])
        .edge("branch", "join")
        .edge("join", END)
        .build()?)
}
