//! The side of graph-flow. It keeps the current state of a session and nothing else: no channels, no history, no
//! events. `FlowRunner::run` loads, does one task and saves, so one call is one durable step.

mod flows;
mod sessions;

use std::time::Instant;

use bench_rounds::{Failure, Round, Stopwatch, Task, serve};
use graph_flow::{ExecutionStatus, NextAction, Session};

use flows::{approval, chain, fan_out, looped};
use sessions::Sessions;

fn main() -> Result<(), Failure> {
    let task = Task::parse(std::env::args().skip(1))?;
    let tokio = tokio::runtime::Runtime::new()?;
    let sessions = tokio.block_on(Sessions::open(&task.store))?;
    serve("0.8.1", || tokio.block_on(round(&task, &sessions)))
}

async fn round(task: &Task, sessions: &Sessions) -> Result<Round, Failure> {
    match (task.work.as_str(), task.store.as_str()) {
        ("chain", "none") => chains_unkept(task).await,
        ("chain", _) => chains(task, sessions).await,
        ("loop", _) => turns(task, sessions).await,
        ("fanout", _) => branches(task, sessions).await,
        ("resume", _) => answers(task, sessions).await,
        ("parked", _) => parked(task, sessions).await,
        (unknown, _) => Err(format!("graph-flow does not do `{unknown}`").into()),
    }
}

/// One call runs the whole chain, and nothing is kept.
async fn chains_unkept(task: &Task) -> Result<Round, Failure> {
    let (chain, time) = (chain(NextAction::ContinueAndExecute)?, task.time()?);
    let (watch, mut steps) = (Stopwatch::start(), 0);
    while steps == 0 || watch.elapsed() < time {
        let mut session = Session::new_from_task("s".to_owned(), "n0");
        chain.execute_session(&mut session).await?;
        steps += flows::NODES;
    }
    Ok(watch.stop(steps))
}

async fn chains(task: &Task, sessions: &Sessions) -> Result<Round, Failure> {
    let (runner, time) = (sessions.runner(chain(NextAction::Continue)?), task.time()?);
    let (watch, begun) = (Stopwatch::start(), Instant::now());
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..task.number("at_once")? {
        let (runner, sessions) = (runner.clone(), sessions.clone());
        workers.spawn(async move {
            let mut steps = 0;
            while steps == 0 || begun.elapsed() < time {
                let session = sessions.start("n0").await?;
                steps += sessions::drive(&runner, &session).await?;
            }
            Ok::<_, Failure>(steps)
        });
    }
    let mut steps = 0;
    while let Some(worker) = workers.join_next().await {
        steps += worker??;
    }
    Ok(watch.stop(steps))
}

async fn turns(task: &Task, sessions: &Sessions) -> Result<Round, Failure> {
    let runner = sessions.runner(looped(task.number("turns")?)?);
    sessions.clear().await?;
    let empty = sessions.bytes().await?;
    let watch = Stopwatch::start();
    let session = sessions.start("planner").await?;
    let steps = sessions::drive(&runner, &session).await?;
    let mut round = watch.stop(steps);
    round.bytes = Some(sessions.bytes().await? - empty);
    Ok(round)
}

async fn branches(task: &Task, sessions: &Sessions) -> Result<Round, Failure> {
    let runner = sessions.runner(fan_out(task.number("branches")?)?);
    let watch = Stopwatch::start();
    let session = sessions.start("fan").await?;
    sessions::drive(&runner, &session).await?;
    Ok(watch.stop(1))
}

async fn answers(task: &Task, sessions: &Sessions) -> Result<Round, Failure> {
    let runner = sessions.runner(approval()?);
    let mut waiting = Vec::new();
    for _ in 0..task.number("threads")? {
        let session = sessions.start("draft").await?;
        runner.run(&session).await?;
        waiting.push(session);
    }
    let (watch, mut times) = (Stopwatch::start(), Vec::new());
    for session in &waiting {
        let begun = Instant::now();
        sessions.answer(session).await?;
        let stopped = runner.run(session).await?;
        times.push(begun.elapsed());
        if !matches!(stopped.status, ExecutionStatus::Completed) {
            return Err(format!("{:?}", stopped.status).into());
        }
    }
    let mut round = watch.stop(times.len());
    round.times = times;
    Ok(round)
}

async fn parked(task: &Task, sessions: &Sessions) -> Result<Round, Failure> {
    let (runner, threads) = (sessions.runner(approval()?), task.number("threads")?);
    sessions.clear().await?;
    let empty = sessions.bytes().await?;
    let watch = Stopwatch::start();
    for _ in 0..threads {
        let session = sessions.start("draft").await?;
        runner.run(&session).await?;
    }
    let mut round = watch.stop(threads);
    round.bytes = Some(sessions.bytes().await? - empty);
    Ok(round)
}
