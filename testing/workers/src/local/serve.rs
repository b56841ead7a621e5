//! `serve`: a process that lives through many trials and takes one command a line.
//!
//! - `start THREAD` runs it to its question; prints `paused INTERRUPT`.
//! - `answer THREAD INTERRUPT VALUE` prints `ready`, waits for the line `go`, answers; prints `won STATE` or `lost CODE`.
//! - `rest THREAD` goes on with what nobody goes on with any more, until nothing is left to do; prints `rests`, or why not.
//! - `inspect GRAPH THREAD` prints what the store holds, as JSON.

use std::io::{BufRead, Lines, StdinLock};
use std::sync::Arc;

use superstep::{DriveError, Graph, Outcome, Runtime};
use superstep_conformance::sample::unfinished;

use super::contested::{Marks, contested, patient_with_takeovers};
use super::graphs::{Verdict, VerdictUpdate, Work, effects, question};
use super::hold::{Gate, held};
use super::inspect::inspect;
use crate::AnyError;
use crate::ledger::Ledger;

pub(crate) async fn serve(runtime: &Runtime, ledger: &Arc<Ledger>) -> Result<(), AnyError> {
    let server = Server {
        runtime,
        question: question(ledger)?,
        effects: effects(ledger, 0)?,
        contested: contested(ledger)?,
        held: held(ledger, 0, Gate::new(true))?,
    };
    let mut lines = std::io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        println!("{}", server.obey(&line?, &mut lines).await?);
    }
    Ok(())
}

struct Server<'a> {
    runtime: &'a Runtime,
    question: Graph<Verdict>,
    effects: Graph<Work>,
    contested: Graph<Marks>,
    held: Graph<Work>,
}

impl Server<'_> {
    async fn obey(&self, line: &str, lines: &mut Lines<StdinLock<'_>>) -> Result<String, AnyError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["start", thread] => self.start(thread).await,
            ["answer", thread, interrupt, value] => {
                let thread = self.runtime.thread(&self.question, thread)?;
                let (interrupt, value): (_, u64) = (interrupt.parse()?, value.parse()?);
                println!("ready");
                lines.next().ok_or("the trial ended before its start")??;
                Ok(told(thread.answer(interrupt, value).await))
            }
            ["rest", thread] => self.rest(thread).await,
            ["inspect", graph, thread] => self.inspect(graph, thread).await,
            _ => Err(format!("`{line}` is not a command").into()),
        }
    }

    async fn inspect(&self, graph: &str, thread: &str) -> Result<String, AnyError> {
        let seen = match graph {
            "question" => inspect(self.runtime, &self.question, thread).await,
            "effects" => inspect(self.runtime, &self.effects, thread).await,
            "held" => inspect(self.runtime, &self.held, thread).await,
            "contested" => inspect(self.runtime, &self.contested, thread).await,
            unknown => Err(format!("there is no graph `{unknown}`").into()),
        };
        Ok(seen?.to_string())
    }

    async fn rest(&self, thread: &str) -> Result<String, AnyError> {
        let thread = self
            .runtime
            .thread(&self.contested, thread)?
            .with_options(patient_with_takeovers());
        let store = self.runtime.checkpointer();
        while unfinished(&**store, u32::MAX).await?.contains(thread.id()) {
            if let Err(error) = thread.recover().await {
                return Ok(error.code().to_owned());
            }
        }
        Ok("rests".to_owned())
    }

    async fn start(&self, thread: &str) -> Result<String, AnyError> {
        let thread = self.runtime.thread(&self.question, thread)?;
        match thread.start(VerdictUpdate::default()).await?.outcome {
            Outcome::Paused(asked) if asked.len() == 1 => Ok(format!("paused {}", asked[0].id)),
            other => Err(format!("the thread did not pause: {other:?}").into()),
        }
    }
}

fn told(answered: Result<Option<superstep::RunResult<Verdict>>, DriveError>) -> String {
    match answered {
        Ok(Some(stopped)) => format!("won {:?}", stopped.outcome),
        Ok(None) => "won elsewhere".to_owned(),
        Err(error) => format!("lost {}", error.code()),
    }
}
