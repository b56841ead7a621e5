//! Terminal interface of the agent: interrupts one by one, and a summary at the end.

use archie_agent::{AgentUi, Exit, InterruptRequest, Output, state_of};
use serde_json::{Value as Json, json};
use superstep::AnyThread;
use superstep::checkpoint::BoxFuture;

use super::mail_view;
use super::state::{Ended, MailState};
use super::step_text;
use super::tools::SEND_EMAIL;

/// Shows interrupts one by one, and a summary at the end.
#[derive(Debug)]
pub(super) struct EmailUi;

impl AgentUi for EmailUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        mail_view::describe(interrupt)
    }

    fn answer_effects(&self, interrupt: &InterruptRequest) -> Vec<(&'static str, &'static str)> {
        mail_view::answer_effects(interrupt)
    }

    fn streams_tokens(&self) -> bool {
        false
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "model_name": model }))
    }

    fn describe_input(&self, input: &Json) -> Option<String> {
        step_text::describe_input(input)
    }

    fn describe_step(&self, node: &str, update: &Json) -> Option<String> {
        step_text::describe_step(node, update)
    }

    fn after_answer(&self, state: &Json) -> Vec<String> {
        let state: Result<MailState, _> = serde_json::from_value(state.clone());
        state.map(|state| summary(&state)).unwrap_or_default()
    }

    fn finish<'a>(
        &'a self,
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(async move {
            let state: MailState = state_of(thread).await?;
            match output.json {
                true => output.terminal.json(&json!({
                    "thread": thread.id().to_string(),
                    "classification": state.classification_decision,
                    "ended": state.ended,
                    "done": state.done,
                    "learned": state.learned,
                    "marked_as_read": state.marked_as_read,
                })),
                false => summary(&state)
                    .iter()
                    .filter(|line| !output.told.contains(line))
                    .for_each(|line| output.terminal.line(line)),
            }
            Ok(match state.ended {
                Some(Ended::Stopped) => Exit::Budget,
                _ => Exit::Done,
            })
        })
    }
}

/// Says that an email was marked as read. What follows `#` in an id distinguishes emails of a file in mbox format that claim the
/// same Message-ID.
pub(super) fn marked_as_read(id: &str) -> String {
    let id = id.split('#').next().unwrap_or_default();
    format!("marked read {id}")
}

/// Returns the effects, the memory changes and the ending of a thread, one line each.
fn summary(state: &MailState) -> Vec<String> {
    let mut lines = Vec::new();
    for deed in &state.done {
        lines.push(match deed.tool.as_str() {
            SEND_EMAIL => format!("sent 1 message <{}>", deed.receipt),
            _ => format!("scheduled 1 meeting {}", deed.receipt),
        });
    }
    for learned in &state.learned {
        let come = learned
            .diff
            .iter()
            .filter(|line| line.starts_with('+'))
            .count();
        let gone = learned.diff.len() - come;
        let count = match gone {
            0 => format!("+{come} line"),
            gone => format!("+{come} -{gone} lines"),
        };
        let id = &learned.proposal;
        lines.push(match id.is_empty() {
            true => format!("{} {count}", learned.memory),
            false => format!("{} {count}, proposed", learned.memory),
        });
        lines.extend(learned.diff.iter().map(|line| format!("  {line}")));
        if !id.is_empty() {
            lines.push(format!(
                "  not in effect before `archie mail memory accept {id}`; `reject {id}` discards it"
            ));
        }
    }
    match state.ended {
        Some(Ended::Done) => lines.push("Done".to_owned()),
        Some(Ended::Ignored) => lines.push("left as it is".to_owned()),
        Some(Ended::Stopped) => lines.push(
            "stopped at the budget; `archie mail ingest SOURCE --rerun` starts over".to_owned(),
        ),
        Some(Ended::Drafted) | None => {}
    }
    if state.marked_as_read {
        let id = state.email_input["id"].as_str().unwrap_or_default();
        lines.push(marked_as_read(id));
    }
    lines
}
