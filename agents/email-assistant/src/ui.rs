//! How the assistant meets a person, and what it tells in the end.

use serde_json::{Value as Json, json};

use crate::agents::email_assistant::state::{Ended, MailState};
use crate::agents::email_assistant::tools::SEND_EMAIL;
use crate::agents::{AnyThread, BoxFuture, state_of};
use crate::exit::Exit;
use crate::talk::{Manner, Talk};

/// How the assistant meets a person: question by question, and in the end what was done.
pub(in super::super) struct Desk;

impl Manner for Desk {
    fn shows_words(&self) -> bool {
        false
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "model_name": model }))
    }

    fn answered(&self, state: &Json) -> Vec<String> {
        let state: Result<MailState, _> = serde_json::from_value(state.clone());
        state.map(|state| summary(&state)).unwrap_or_default()
    }

    fn finish<'a>(
        &'a self,
        talk: &'a Talk<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(async move {
            let state: MailState = state_of(thread).await?;
            match talk.json {
                true => talk.say.json(&json!({
                    "thread": thread.id(),
                    "classification": state.classification_decision,
                    "ended": state.ended,
                    "done": state.done,
                    "learned": state.learned,
                    "marked_as_read": state.marked_as_read,
                })),
                false => summary(&state).iter().for_each(|line| talk.say.line(line)),
            }
            Ok(match state.ended {
                Some(Ended::Stopped) => Exit::Budget,
                _ => Exit::Done,
            })
        })
    }
}

/// What came of a mail, in lines.
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
        lines.push(format!("{} {count}", learned.memory));
        lines.extend(learned.diff.iter().map(|line| format!("  {line}")));
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
        // Behind this is what tells apart mails of an mbox file that claim the same id.
        let id = id.split('#').next().unwrap_or_default();
        lines.push(format!("marked read {id}"));
    }
    lines
}
