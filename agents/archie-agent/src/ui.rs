//! The user interface of an agent, independent of the host: how it shows interrupts, reads answers, and presents the result of
//! a thread.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::{AnyThread, ThreadId};

use crate::choice::AnswerChoice;
use crate::exit::Exit;
use crate::interrupt::InterruptRequest;
use crate::terminal::Terminal;

/// User interface of an agent. Every method has a default that suits an agent which asks plain questions.
pub trait AgentUi: Send + Sync {
    /// Returns the text to show for an interrupt. It must include everything that an answer may cause.
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        interrupt.words()
    }

    /// Returns whether the text for an interrupt is Markdown, which a terminal renders. Default: no.
    fn is_markdown(&self, _interrupt: &InterruptRequest) -> bool {
        false
    }

    /// Returns the prompt for the person's answer.
    fn prompt(&self, interrupt: &InterruptRequest) -> String {
        interrupt.prompt()
    }

    /// Returns what may be typed and what each answer causes. A host shows this before the prompt.
    fn answer_effects(&self, interrupt: &InterruptRequest) -> Vec<(&'static str, &'static str)> {
        interrupt.answer_effects()
    }

    /// Returns the ways to answer that a host offers as keys or buttons. Each leads to a line for
    /// [`read_answer`](Self::read_answer).
    fn choices(&self, interrupt: &InterruptRequest) -> Vec<AnswerChoice> {
        AnswerChoice::of(interrupt)
    }

    /// Parses a typed line into an answer. On an error, the host shows the message and asks again.
    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        interrupt.read(line)
    }

    /// Returns whether the interrupt contains everything that an answer may cause. An interrupt raised by an older version may
    /// not.
    fn is_complete(&self, _interrupt: &InterruptRequest) -> bool {
        true
    }

    /// Returns whether the interrupt repeats the answer that was just streamed, so that the host need not show it again.
    fn was_streamed(&self, _interrupt: &InterruptRequest) -> bool {
        false
    }

    /// Returns whether the host shows tokens as they arrive. Agents that call several models at once return false.
    fn streams_tokens(&self) -> bool {
        true
    }

    /// Returns who gives the answers that are shown as they arrive, printed before each.
    fn speaker(&self) -> &'static str {
        "Agent: "
    }

    /// Returns whether an idle thread is complete, so that only [`finish`](Self::finish) is left to call.
    fn is_finished(&self, _state: &Json) -> bool {
        true
    }

    /// Returns the node and the update that reopen a thread which stopped early, or `None` if it did not stop early.
    fn reopen(&self, _state: &Json) -> Option<(&'static str, Json)> {
        None
    }

    /// Returns the update that switches a thread to another model, or `None` if the agent cannot switch.
    fn with_model(&self, _state: &Json, _model: &str) -> Option<Json> {
        None
    }

    /// Returns the update that a copy of a thread begins with, or `None` if it needs none. An agent that writes files of its own
    /// gives a copy another place for them, so that it does not overwrite those of the original.
    fn in_copy(&self, _state: &Json, _copy: &ThreadId) -> Option<Json> {
        None
    }

    /// Returns the folder with the files of a thread, or `None` if the agent stores none. The host copies, moves and deletes
    /// this folder together with the thread.
    fn files(&self, _thread: &ThreadId) -> Option<PathBuf> {
        None
    }

    /// Returns the folder that has the [files](Self::files) of all threads of a named tenant and nothing else, or `None` if there is no
    /// such folder. The host deletes it when it erases the tenant.
    fn tenant_files(&self, _tenant: &str) -> Option<PathBuf> {
        None
    }

    /// Returns the lines to print when the thread asks again after an answer in the inbox, such as what the agent did in between.
    fn after_answer(&self, _state: &Json) -> Vec<String> {
        Vec::new()
    }

    /// Returns what a thread started with, in words for its history: `the question “Which queue?”`. `input` holds the fields of the
    /// input. Default: `None`, and the host lists the fields.
    fn describe_input(&self, _input: &Json) -> Option<String> {
        None
    }

    /// Returns what a node did, in words for the history of a thread: `wrote the next question`. `update` holds the fields that it
    /// wrote. An empty text leaves the node out, for instance because the answer that it took is in the history already. Default:
    /// `None`, and the host names the node and the fields.
    fn describe_step(&self, _node: &str, _update: &Json) -> Option<String> {
        None
    }

    /// Prints the result of a thread that has ended, and writes its files. The host may call it more than once for a thread.
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
                    .verbatim(&serde_json::to_string_pretty(&values)?),
            }
            Ok(Exit::Done)
        })
    }
}

/// An [`AgentUi`] that keeps every default.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainUi;

impl AgentUi for PlainUi {}

/// Returns the names of the tools that the model requests in these messages, which are part of the update of a node.
pub fn requested_tools(messages: &Json) -> Vec<&str> {
    let messages = messages.as_array().into_iter().flatten();
    let calls = messages.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
    calls.filter_map(|call| call["name"].as_str()).collect()
}

/// Where and in which format a command prints.
#[derive(Clone, Copy)]
pub struct Output<'a> {
    /// The person's terminal, or a pipe.
    pub terminal: &'a dyn Terminal,
    /// Whether stdout carries only the result, as JSON.
    pub json: bool,
    /// Progress of the run that was printed already, so that the result need not repeat it.
    pub told: &'a [String],
    /// Answer of a model that was printed as it arrived and is on the screen, or nothing.
    pub streamed: &'a str,
}

impl Output<'_> {
    /// Prints a message that is not the result: to stderr if stdout is reserved for JSON, otherwise to stdout.
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
