//! `runs`: many runs, begun at an even pace whatever becomes of the ones before.
//!
//! A third each are a chain with a fan-out, a pause with its answer, and a thread that is updated and forked; each
//! on a thread of its own. Prints `begins`, then `ended THREAD ok` or `ended THREAD WHY` for each.

use std::sync::Arc;
use std::time::Duration;

use superstep::{Outcome, RunResult, Runtime, Seq};
use tokio::task::JoinSet;

use super::graphs::{VerdictUpdate, WorkUpdate, effects, question};
use crate::ledger::Ledger;
use crate::{AnyError, Args};

pub(crate) async fn runs(
    runtime: &Runtime,
    ledger: &Arc<Ledger>,
    args: &Args,
) -> Result<(), AnyError> {
    println!("begins");
    let mut pace = tokio::time::interval(Duration::from_micros(args.pace_us.max(1)));
    let mut runs = JoinSet::new();
    for number in 0..args.runs {
        pace.tick().await;
        let work = One {
            runtime: runtime.clone(),
            ledger: ledger.clone(),
            number,
            seed: args.seed,
        };
        runs.spawn(work.perform(args.thread.clone()));
        while let Some(ended) = runs.try_join_next() {
            println!("{}", ended?);
        }
    }
    while let Some(ended) = runs.join_next().await {
        println!("{}", ended?);
    }
    Ok(())
}

/// One thread with its run or runs.
struct One {
    runtime: Runtime,
    ledger: Arc<Ledger>,
    number: u64,
    seed: u64,
}

impl One {
    async fn perform(self, prefix: String) -> String {
        let (kind, number) = (KINDS[(self.number % 3) as usize], self.number);
        let thread = format!("{prefix}-{kind}-{number}");
        let ended = match kind {
            "effects" => self.effects(&thread).await,
            "question" => self.question(&thread).await,
            _ => self.edited(&thread).await,
        };
        match ended {
            Ok(()) => format!("ended {thread} ok"),
            Err(why) => format!("ended {thread} {why}"),
        }
    }

    async fn effects(&self, thread: &str) -> Result<(), AnyError> {
        let graph = effects(&self.ledger, self.seed + self.number)?;
        let thread = self.runtime.thread(&graph, thread)?;
        finished(&thread.start(WorkUpdate::default()).await?)
    }

    async fn question(&self, thread: &str) -> Result<(), AnyError> {
        let thread = self.runtime.thread(&question(&self.ledger)?, thread)?;
        let paused = thread.start(VerdictUpdate::default()).await?;
        let Outcome::Paused(asked) = &paused.outcome else {
            return Err(format!("it did not pause: {:?}", paused.outcome).into());
        };
        let answered = thread.answer(asked[0].id, self.number).await?;
        finished(&answered.ok_or("nobody went on with the answer")?)
    }

    /// Answered by an update in place of a person, and gone through once more from there.
    async fn edited(&self, thread: &str) -> Result<(), AnyError> {
        let thread = self.runtime.thread(&question(&self.ledger)?, thread)?;
        thread.start(VerdictUpdate::default()).await?;
        let answered = VerdictUpdate::default().answer(Some(self.number));
        let answered = thread.update_as("ask", answered).await?;
        finished(&thread.resume().await?)?;
        thread.fork(answered).await?;
        finished(&thread.resume().await?)?;
        let stored = thread.state().await?.ok_or("the thread is gone")?;
        let seen = thread.events(Seq(0)).stored().await?;
        match seen.last().is_some_and(|last| last.seq == stored.seq) {
            true => Ok(()),
            false => Err("the events do not lead to the state".into()),
        }
    }
}

fn finished<S>(stopped: &RunResult<S>) -> Result<(), AnyError> {
    match &stopped.outcome {
        Outcome::Finished => Ok(()),
        other => Err(format!("it did not finish: {other:?}").into()),
    }
}

const KINDS: [&str; 3] = ["effects", "question", "edited"];
