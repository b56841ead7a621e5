//! To a question, its answer, and to the end: beside as many bare commits.

use superstep::prelude::*;

use super::fixture::Fixture;
use super::floor::Floor;
use super::report::Row;
use super::sides::alternate;

#[derive(Clone, Debug, Default, State)]
struct Approval {
    draft: String,
    approved: bool,
}

pub(super) fn run(fixture: &Fixture) -> anyhow::Result<Vec<Row>> {
    let graph = graph()?;
    let runtime = fixture.runtime()?;
    let floor = Floor::open(&fixture.path())?;
    let mut started = 0;
    let mut approve = || {
        started += 1;
        let thread = runtime.thread(&graph, format!("resume-{started}"))?;
        let input = ApprovalUpdate::default().draft("a letter");
        fixture.wait(thread.start(input))?;
        let stopped = fixture.wait(thread.answer_only(true))?;
        let stopped = stopped.ok_or_else(|| anyhow::anyhow!("nobody else runs it"))?;
        anyhow::ensure!(stopped.state.approved, "{stopped:?}");
        // Input, question, end: the answer and the claim are no entries.
        anyhow::ensure!(stopped.seq.0 + 2 == COMMITS as u64, "{}", stopped.seq);
        Ok(())
    };
    let sides = alternate(fixture.size(500, 50), &mut approve, || {
        Ok(floor.commits(COMMITS)?)
    })?;
    Ok(vec![
        Row::new("to a question, answer, to the end", "ms", sides.ours * 1e3)
            .against("5 bare commits, ms", sides.theirs * 1e3),
    ])
}

fn graph() -> anyhow::Result<Graph<Approval>> {
    let ask = |_: View<Approval>, cx: NodeCx| async move {
        let approved: bool = cx.interrupt(Interrupt::new("send", "send it?")).await?;
        Ok::<_, NodeError>(ApprovalUpdate::default().approved(approved))
    };
    Ok(Graph::builder("resume")
        .node("ask", ask)
        .edge(START, "ask")
        .edge("ask", END)
        .build()?)
}

/// Input, question, answer, claim, end.
const COMMITS: usize = 5;
