//! How a person uses an agent, whichever host runs it: what is shown of its interrupts, what an answer means, and what
//! remains when a thread has ended.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::{AnyThread, ThreadId};

use crate::exit::Exit;
use crate::interrupt::InterruptRequest;
use crate::terminal::Terminal;

/// How a person uses an agent. Every method has a default that suits an agent which asks plain questions.
pub trait AgentUi: Send + Sync {
    /// Returns what to show of an interrupt: everything that an answer may cause.
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        interrupt.words()
    }

    /// Returns the prompt before what the person types.
    fn prompt(&self, interrupt: &InterruptRequest) -> String {
        interrupt.prompt()
    }

    /// Reads a typed line as an answer. An error says what is wrong with it, and the person is asked again.
    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        interrupt.read(line)
    }

    /// Returns whether the interrupt holds everything that an answer may cause. One from an older version may not.
    fn is_complete(&self, _interrupt: &InterruptRequest) -> bool {
        true
    }

    /// Returns whether the interrupt repeats the answer that was just streamed, so that it need not be shown again.
    fn was_streamed(&self, _interrupt: &InterruptRequest) -> bool {
        false
    }

    /// Returns whether tokens are shown as they arrive. They are not where several models answer at once.
    fn streams_tokens(&self) -> bool {
        true
    }

    /// Returns whether nothing is left of an idle thread but to [finish](Self::finish).
    fn is_finished(&self, _state: &Json) -> bool {
        true
    }

    /// Returns the node and the update that reopen a thread which stopped before its end. None if it did not.
    fn reopen(&self, _state: &Json) -> Option<(&'static str, Json)> {
        None
    }

    /// Returns the update with which a thread continues with another model. None if it cannot.
    fn with_model(&self, _state: &Json, _model: &str) -> Option<Json> {
        None
    }

    /// Returns the folder of the files that belong to a thread. None if there are none. The host copies, moves and deletes
    /// it with the thread.
    fn files(&self, _thread: &ThreadId) -> Option<PathBuf> {
        None
    }

    /// Returns the lines to print after an interrupt was answered in the inbox.
    fn after_answer(&self, _state: &Json) -> Vec<String> {
        Vec::new()
    }

    /// Prints the result of a thread that has ended, and writes its files. It may be called twice for a thread.
    fn finish<'a>(
        &'a self,
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(async move {
            let state = thread.state(None).await?;
            let state = state.context("the thread has no state")?;
            let values: Json = state.values.decode()?;
            match output.json {
                true => output
                    .terminal
                    .json(&json!({ "thread": thread.id().to_string(), "values": values })),
                false => output
                    .terminal
                    .line(&serde_json::to_string_pretty(&values)?),
            }
            Ok(Exit::Done)
        })
    }
}

/// The defaults of [`AgentUi`].
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainUi;

impl AgentUi for PlainUi {}

/// Where a command prints.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    /// The person's terminal, or a pipe.
    pub terminal: &'a dyn Terminal,
    /// Whether stdout gets the result alone, as JSON.
    pub json: bool,
}

impl Output<'_> {
    /// Prints something that is not the result: to stderr if stdout is for JSON.
    pub fn tell(&self, text: &str) {
        match self.json {
            true => self.terminal.aside(text),
            false => self.terminal.line(text),
        }
    }
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("json", &self.json)
            .finish_non_exhaustive()
    }
}
