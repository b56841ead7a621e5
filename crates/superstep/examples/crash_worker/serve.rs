//! `serve`: a process that lives through many trials and takes one command a line.
//!
//! - `start THREAD` runs it to its question; prints `paused INTERRUPT`.
//! - `answer THREAD INTERRUPT VALUE` prints `ready`, waits for the line `go`, answers; prints `won STATE` or `lost CODE`.
//! - `inspect THREAD` prints what the store holds, as JSON.

use std::io::{BufRead, Lines, StdinLock};
use std::sync::Arc;

use serde_json::json;
use superstep::{DriveError, Graph, Outcome, Runtime, Seq, State, Thread};

use crate::AnyError;
use crate::graphs::{Verdict, VerdictUpdate, Work, effects, question};
use crate::ledger::Ledger;

pub(crate) async fn serve(runtime: &Runtime, ledger: &Arc<Ledger>) -> Result<(), AnyError> {
    let server = Server {
        runtime,
        question: question(ledger)?,
        effects: effects(ledger, 0)?,
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
            ["inspect", "question", thread] => {
                inspect(&self.runtime.thread(&self.question, thread)?).await
            }
            ["inspect", "effects", thread] => {
                inspect(&self.runtime.thread(&self.effects, thread)?).await
            }
            _ => Err(format!("`{line}` is not a command").into()),
        }
    }

    async fn start(&self, thread: &str) -> Result<String, AnyError> {
        let thread = self.runtime.thread(&self.question, thread)?;
        match thread.start(VerdictUpdate::default()).await?.outcome {
            Outcome::Paused(asked) if asked.len() == 1 => Ok(format!("paused {}", asked[0].id)),
            other => Err(format!("the thread did not pause: {other:?}").into()),
        }
    }
}

fn told(answered: Result<Option<superstep::Stopped<Verdict>>, DriveError>) -> String {
    match answered {
        Ok(Some(stopped)) => format!("won {:?}", stopped.outcome),
        Ok(None) => "won elsewhere".to_owned(),
        Err(error) => format!("lost {}", error.code()),
    }
}

/// What stands in the store, and whether the history is one chain.
async fn inspect<S: State>(thread: &Thread<S>) -> Result<String, AnyError> {
    let (entries, fault) = match thread.history(Seq(0), u32::MAX).await {
        Ok(history) => {
            let broken = history.iter().enumerate().find(|(at, past)| {
                let before = *at as u64;
                (past.seq, past.entry.parent) != (Seq(before + 1), Seq(before))
            });
            (
                history.len(),
                broken
                    .map(|(_, past)| format!("entry {} does not follow the one before", past.seq)),
            )
        }
        Err(error) => (0, Some(error.to_string())),
    };
    let (state, fault) = match thread.state().await {
        Ok(Some(state)) => (Some(state.values.decode::<serde_json::Value>()?), fault),
        Ok(None) => (None, fault),
        Err(error) => (None, fault.or(Some(error.to_string()))),
    };
    Ok(json!({ "entries": entries, "fault": fault, "state": state }).to_string())
}
