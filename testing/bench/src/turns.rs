//! A planner and a tool in a loop: is a late turn as fast as an early one, and what does the thread cost on disk?

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use superstep::__private::lock;
use superstep::prelude::*;
use superstep::{RunOptions, Runtime};
use superstep_sqlite::Sqlite;

use super::fixture::Fixture;
use super::report::Row;
use super::timing::quiet;
use harness::prng::Prng;

#[derive(Clone, Debug, Default, State)]
struct Talk {
    turns: u32,
    wanted: u32,
    #[state(append)]
    messages: Vec<String>,
}

/// When each turn began.
type Marks = Arc<Mutex<Vec<Instant>>>;

pub(super) fn run(fixture: &Fixture) -> anyhow::Result<Vec<Row>> {
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for round in 0..fixture.size(15, 5) {
        let (begun, _) = talk(fixture, 201, round as u64)?;
        early.extend(begun[..=20].windows(2).map(|turn| turn[1] - turn[0]));
        late.extend(begun[180..=200].windows(2).map(|turn| turn[1] - turn[0]));
    }
    let speed = |times: &mut [Duration]| 1.0 / quiet(times);
    let (_, of_200) = talk(fixture, 200, 1_000)?;
    let (_, of_400) = talk(fixture, 400, 1_000)?;
    let (of_200, of_400) = (of_200 as f64, of_400 as f64);
    let empty = fixture.wait(fixture.sqlite()?.bytes())? as f64;
    let late_turns = Row::new("loop: turns 181 to 200", "turns/s", speed(&mut late))
        .against("turns 1 to 20, turns/s", speed(&mut early));
    Ok(vec![
        // A few rounds beside other work say nothing about speed: those are shown and not judged.
        if fixture.quick {
            late_turns
        } else {
            late_turns.ratio_at_least(0.8)
        },
        // The tables are paid for once per file, so a table for another feature is not a cost of this conversation.
        Row::new(
            "loop: 200 turns on disk, without the empty tables",
            "bytes",
            of_200 - empty,
        )
        .at_most(200_000.0),
        Row::new("loop: 400 turns on disk", "bytes", of_400)
            .against("200 turns, bytes", of_200)
            .ratio_at_most(2.2),
        Row::new("loop: the empty tables of both", "bytes", empty),
    ])
}

/// Talks so many turns; gives when each began, and the bytes of the database.
fn talk(fixture: &Fixture, turns: u32, seed: u64) -> anyhow::Result<(Vec<Instant>, u64)> {
    let marks = Marks::default();
    let graph = graph(&marks, seed)?;
    let path = fixture.path();
    let runtime = Runtime::new(Sqlite::open(&path)?);
    let thread = runtime
        .thread(&graph, "loop")?
        .with_options(RunOptions::default());
    let stopped = fixture.wait(thread.start(TalkUpdate::default().wanted(turns)))?;
    anyhow::ensure!(
        stopped.state.messages.len() == 2 * turns as usize,
        "{:?}",
        stopped.outcome
    );
    drop((thread, runtime));
    let marks = std::mem::take(&mut *lock(&marks));
    let bytes = fixture.wait(Sqlite::open(&path)?.bytes())?;
    Ok((marks, bytes))
}

fn graph(marks: &Marks, seed: u64) -> anyhow::Result<Graph<Talk>> {
    let marks = marks.clone();
    let plan = move |talk: View<Talk>, _: NodeCx| {
        lock(&marks).push(Instant::now());
        async move {
            let update = TalkUpdate::default().turns(talk.turns + 1);
            Ok::<_, NodeError>(update.messages(text(seed, talk.turns, 0)))
        }
    };
    let tool = move |talk: View<Talk>, _: NodeCx| async move {
        Ok::<_, NodeError>(TalkUpdate::default().messages(text(seed, talk.turns, 1)))
    };
    Ok(Graph::builder("loop")
        .node("planner", plan)
        .node("tool", tool)
        .edge(START, "planner")
        .edge("planner", "tool")
        .route("tool", &["planner", END], |talk: &Talk| {
            if talk.turns < talk.wanted {
                "planner"
            } else {
                END
            }
        })
        .build()?)
}

fn text(seed: u64, turn: u32, speaker: u64) -> String {
    Prng::of_trial(seed, u64::from(turn) * 2 + speaker).text(200)
}
