//! Twenty nodes in a row, each adds a message of 200 bytes: what a superstep costs beside a bare commit.

use superstep::prelude::*;

use super::fixture::Fixture;
use super::floor::Floor;
use super::report::Row;
use super::sides::alternate;
use crate::prng::Prng;

#[derive(Clone, Debug, Default, State)]
struct Talk {
    #[state(append)]
    messages: Vec<String>,
}

pub(super) fn run(fixture: &Fixture) -> anyhow::Result<Vec<Row>> {
    let graph = graph()?;
    let runtime = fixture.runtime()?;
    let floor = Floor::open(&fixture.path())?;
    let mut started = 0;
    let mut commits = 0;
    let mut talk = || {
        started += 1;
        let thread = runtime.thread(&graph, format!("chain-{started}"))?;
        let stopped = fixture.wait(thread.start(TalkUpdate::default()))?;
        anyhow::ensure!(stopped.state.messages.len() == NODES, "{stopped:?}");
        commits = stopped.seq.0;
        Ok(())
    };
    let sides = alternate(fixture.size(300, 50), &mut talk, || {
        Ok(floor.commits(NODES)?)
    })?;
    let supersteps = NODES as f64;
    let row = Row::new(
        "chain of 20 nodes, 200-byte messages",
        "supersteps/s",
        supersteps / sides.ours,
    )
    .against("bare commits/s", supersteps / sides.theirs);
    let per_run = Row::new(
        "commits of a run of 20 supersteps",
        "commits",
        commits as f64,
    );
    Ok(vec![row, per_run])
}

fn graph() -> anyhow::Result<Graph<Talk>> {
    let names: Vec<String> = (0..NODES).map(|at| format!("n{at}")).collect();
    let mut builder = Graph::builder("chain").edge(START, names[0].as_str());
    for (at, name) in names.iter().enumerate() {
        let say = move |_: View<Talk>, _: NodeCx| async move {
            let text = Prng::new(at as u64).text(200);
            Ok::<_, NodeError>(TalkUpdate::default().messages(text))
        };
        let next = names.get(at + 1).map_or(END, String::as_str);
        builder = builder.node(name.as_str(), say).edge(name.as_str(), next);
    }
    Ok(builder.build()?)
}

const NODES: usize = 20;
