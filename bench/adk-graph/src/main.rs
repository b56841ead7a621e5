//! The side of adk-graph. It has a saver for SQLite and none for PostgreSQL, and no sending to as many nodes as the
//! state asks for; the nearest is a node that runs another one as its child, many times at once.

mod flows;
mod saver;

use std::time::Instant;

use adk_graph::prelude::{CompiledGraph, ExecutionConfig, GraphError, State, json};
use bench_rounds::{Failure, Round, Stopwatch, Task, serve};

use flows::{approval, chain, fan_out, looped};
use saver::Saver;

fn main() -> Result<(), Failure> {
    let task = Task::parse(std::env::args().skip(1))?;
    let tokio = tokio::runtime::Runtime::new()?;
    serve("2.3.0", || tokio.block_on(round(&task)))
}

/// Every round has a database of its own.
async fn round(task: &Task) -> Result<Round, Failure> {
    let saver = Saver::open(&task.store).await?;
    match task.work.as_str() {
        "chain" => chains(task, &saver).await,
        "loop" => turns(task, &saver).await,
        "fanout" => branches(task, &saver).await,
        "resume" => answers(task, &saver).await,
        "parked" => parked(task, &saver).await,
        unknown => Err(format!("adk-graph does not do `{unknown}`").into()),
    }
}

async fn chains(task: &Task, saver: &Saver) -> Result<Round, Failure> {
    let (graph, time) = (saver.keep(chain()?), task.time()?);
    graph.invoke(State::new(), thread()).await?;
    let (watch, mut steps) = (Stopwatch::start(), 0);
    while steps == 0 || watch.elapsed() < time {
        graph.invoke(State::new(), thread()).await?;
        steps += flows::NODES;
    }
    Ok(watch.stop(steps))
}

async fn turns(task: &Task, saver: &Saver) -> Result<Round, Failure> {
    let turns = task.number("turns")?;
    let graph = saver.keep(looped(turns)?);
    let empty = saver.bytes()?;
    let watch = Stopwatch::start();
    let state = graph.invoke(State::new(), thread()).await?;
    let mut round = watch.stop(2 * turns);
    expect(&state, "step", 2 * turns)?;
    round.bytes = Some(saver.bytes()? - empty);
    Ok(round)
}

async fn branches(task: &Task, saver: &Saver) -> Result<Round, Failure> {
    let branches = task.number("branches")?;
    let graph = saver.keep(fan_out(branches)?);
    let watch = Stopwatch::start();
    let state = graph.invoke(State::new(), thread()).await?;
    let round = watch.stop(1);
    expect(&state, "total", branches)?;
    Ok(round)
}

async fn answers(task: &Task, saver: &Saver) -> Result<Round, Failure> {
    let graph = saver.keep(approval()?);
    let waiting = park(&graph, task.number("threads")?).await?;
    let (watch, mut times) = (Stopwatch::start(), Vec::new());
    for thread in &waiting {
        let answer = State::from_iter([("answer".to_owned(), json!("yes"))]);
        let begun = Instant::now();
        let state = graph.invoke(answer, ExecutionConfig::new(thread)).await?;
        times.push(begun.elapsed());
        expect(&state, "step", 3)?;
    }
    let mut round = watch.stop(times.len());
    round.times = times;
    Ok(round)
}

async fn parked(task: &Task, saver: &Saver) -> Result<Round, Failure> {
    let graph = saver.keep(approval()?);
    let empty = saver.bytes()?;
    let watch = Stopwatch::start();
    let waiting = park(&graph, task.number("threads")?).await?;
    let mut round = watch.stop(waiting.len());
    round.bytes = Some(saver.bytes()? - empty);
    Ok(round)
}

/// Starts so many threads, each up to its question.
async fn park(graph: &CompiledGraph, threads: usize) -> Result<Vec<String>, Failure> {
    let mut waiting = Vec::new();
    for _ in 0..threads {
        let thread = thread();
        waiting.push(thread.thread_id.clone());
        match graph.invoke(State::new(), thread).await {
            Err(GraphError::Interrupted(_)) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(waiting)
}

fn thread() -> ExecutionConfig {
    ExecutionConfig::new(&uuid::Uuid::new_v4().to_string()).with_recursion_limit(5_000)
}

fn expect(state: &State, field: &str, wanted: usize) -> Result<(), Failure> {
    match state.get(field) {
        Some(found) if *found == json!(wanted) => Ok(()),
        found => Err(format!("`{field}` is {found:?}, not {wanted}").into()),
    }
}
