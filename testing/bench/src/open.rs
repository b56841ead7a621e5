//! Opening a long thread costs no more than opening a short one with an equal state.

use superstep::prelude::*;
use superstep::{RunOptions, Runtime};

use super::fixture::Fixture;
use super::report::Row;
use super::timing::alternate;

#[derive(Clone, Debug, Default, State)]
struct Count {
    left: u64,
    note: String,
}

pub(super) fn run(fixture: &Fixture) -> anyhow::Result<Vec<Row>> {
    let graph = graph()?;
    let runtime = fixture.runtime()?;
    let long = fixture.size(10_000, 2_000) as u64;
    // How much there is to read depends on how far the last snapshot is; a few lengths even that out.
    let threads: Vec<(Thread<Count>, Thread<Count>)> = (0..8)
        .map(|at| {
            let more = at * 7;
            Ok((
                count(fixture, &runtime, &graph, long + more)?,
                count(fixture, &runtime, &graph, 100 + more)?,
            ))
        })
        .collect::<anyhow::Result<_>>()?;
    let opens = 10;
    let read = |thread: &Thread<Count>| -> anyhow::Result<()> {
        for _ in 0..opens {
            let state = fixture.wait(thread.state())?;
            anyhow::ensure!(state.is_some(), "the thread is gone");
        }
        Ok(())
    };
    let sides = alternate(
        fixture.size(31, 11),
        || threads.iter().try_for_each(|(long, _)| read(long)),
        || threads.iter().try_for_each(|(_, short)| read(short)),
    )?;
    let each_us = |seconds: f64| seconds / (opens * threads.len()) as f64 * 1e6;
    let work = format!("open a thread of {long} steps");
    let row =
        Row::new(work, "us", each_us(sides.ours)).against("100 steps, us", each_us(sides.theirs));
    // A few rounds beside other work say nothing about speed: those are shown and not judged.
    Ok(vec![if fixture.quick {
        row
    } else {
        row.ratio_at_most(2.0)
    }])
}

fn count(
    fixture: &Fixture,
    runtime: &Runtime,
    graph: &Graph<Count>,
    steps: u64,
) -> anyhow::Result<Thread<Count>> {
    let mut options = RunOptions::default();
    options.step_limit = steps + 1;
    let thread = runtime
        .thread(graph, format!("count-{steps}"))?
        .with_options(options);
    let input = CountUpdate::default().left(steps).note("a small state");
    let stopped = fixture.wait(thread.start(input))?;
    anyhow::ensure!(stopped.state.left == 0, "{:?}", stopped.outcome);
    Ok(thread)
}

fn graph() -> anyhow::Result<Graph<Count>> {
    let step = |count: View<Count>, _: NodeCx| async move {
        Ok::<_, NodeError>(CountUpdate::default().left(count.left - 1))
    };
    Ok(Graph::builder("count")
        .node("step", step)
        .edge(START, "step")
        .route("step", &["step", END], |count: &Count| {
            if count.left > 0 { "step" } else { END }
        })
        .build()?)
}
