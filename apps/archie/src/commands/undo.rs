//! `archie undo`: takes back the last answer of a thread, as long as nothing has left because of it.

use anyhow::{Context, bail};
use archie_agent::printable::summary_line;
use archie_agent::{Exit, InterruptRequest, Terminal, each_entry};
use serde_json::{Value as Json, json};
use superstep::checkpoint::format::{Change, TaskWrite};
use superstep::checkpoint::{AnswerBody, InterruptQuery, Status};
use superstep::run::OpenInterrupt;
use superstep::trace::{CallSpan, is_trace_record};
use superstep::{AnyThread, Seq};
use superstep_agent::trace::{TOOL, fields};

use super::threads::short;
use crate::app::App;
use crate::cli::args::ThreadArgs;
use crate::inbox;

pub(super) async fn run(
    args: &ThreadArgs,
    app: &App,
    terminal: &dyn Terminal,
) -> anyhow::Result<Exit> {
    let (thread, row) = app.find(&args.thread).await?;
    let id = thread.id();
    if !matches!(row.head.status, Status::Paused | Status::Idle) {
        bail!(
            "the thread is {}, so calls may be in progress; `archie fork {id}` copies it at an earlier entry",
            row.head.status.as_str()
        );
    }
    let answered = last_answered(app, &*thread).await?;
    let answered = answered.context("the thread has no answer to take back")?;
    let asked_at = answered.row.seq;
    let left = calls_after(&*thread, asked_at).await?;
    let is_in_progress = has_steps(app, &*thread).await?;
    if !left.is_empty() || is_in_progress {
        let why = match left.is_empty() {
            true => "a step after it is in progress and may have called tools".to_owned(),
            false => format!("it led to calls of {}", left.join(", ")),
        };
        bail!(
            "the answer cannot be taken back: {why}; `archie fork {id} --at {}` copies the thread before the answer",
            asked_at.0
        );
    }
    thread.fork(asked_at).await?;
    // The thread asks again, under a new id.
    thread.recover_or_resume().await?;
    let next = inbox::items_of(app, id).await?;
    let asked = InterruptRequest::of(&answered.interrupt)?;
    let answer = match &answered.row.answer {
        Some(AnswerBody::Value(answer)) => answer.decode::<Json>()?,
        _ => Json::Null,
    };
    if args.json {
        terminal.json(&json!({
            "thread": id.to_string(),
            "entry": asked_at.0,
            "answer": answer,
            "items": next.iter().map(|item| item.id()).collect::<Vec<_>>(),
        }));
        return Ok(Exit::Done);
    }
    terminal.line(&format!("took back the answer {}", short(&answer)));
    terminal.line(&format!(
        "to: {}",
        summary_line(&asked.summary(), SUMMARY_CHARS)
    ));
    for item in next {
        terminal.line(&format!(
            "answer it again with `archie inbox {}`",
            item.short_id
        ));
    }
    Ok(Exit::Done)
}

/// Returns the interrupt of a thread that a person answered last.
async fn last_answered(app: &App, thread: &dyn AnyThread) -> anyhow::Result<Option<OpenInterrupt>> {
    let query = InterruptQuery {
        thread: Some(thread.id().clone()),
        ..InterruptQuery::default()
    };
    let all = app.runtime.interrupts(&query).await?.into_iter();
    let answered = all.filter(|open| matches!(open.row.answer, Some(AnswerBody::Value(_))));
    Ok(answered.max_by_key(|open| (open.row.answered_at, open.row.seq)))
}

/// Returns the tools that were called after an entry and that do more than read.
async fn calls_after(thread: &dyn AnyThread, entry: Seq) -> anyhow::Result<Vec<String>> {
    let mut tools = Vec::new();
    each_entry(thread, entry, |past| {
        for change in &past.entry.changes {
            if let Change::FrameAdvanced(advanced) = change {
                advanced
                    .writes
                    .iter()
                    .for_each(|write| add_calls(write, &mut tools));
            }
        }
        Ok(())
    })
    .await?;
    tools.sort_unstable();
    tools.dedup();
    Ok(tools)
}

fn add_calls(write: &TaskWrite, tools: &mut Vec<String>) {
    let calls = write.events.iter().filter(|event| is_trace_record(event));
    for call in calls.filter_map(|event| event.decode::<CallSpan>().ok()) {
        let text = |name: &str| call.fields.get(name).and_then(Json::as_str);
        let only_reads = text(fields::TOOL_CLASS) == Some("read");
        if call.span == TOOL && !only_reads {
            tools.push(text(fields::TOOL_NAME).unwrap_or(&call.name).to_owned());
        }
    }
}

/// Returns whether a task that has not ended has made steps. The log does not have them yet.
async fn has_steps(app: &App, thread: &dyn AnyThread) -> anyhow::Result<bool> {
    let loaded = app.store().load(thread.id()).await?;
    Ok(loaded.is_some_and(|loaded| !loaded.records.is_empty()))
}

const SUMMARY_CHARS: usize = 72;
