//! User interface of the agent: approvals while it runs, and the answer at the end.

use archie_agent::{AgentUi, AnswerChoice, Exit, InterruptRequest, Output, state_of};
use serde_json::{Value as Json, json};
use superstep::AnyThread;
use superstep::checkpoint::BoxFuture;

use super::answer::shown;
use super::nodes::choice::{NONE, WHICH_API, WHICH_CALL};
use super::state::{AtrisState, OFTEN};
use super::{run_log, step_text, write};

/// User interface of the agent.
#[derive(Debug)]
pub(super) struct AtrisUi {
    /// Whether to print the update of each node.
    pub(super) debug: bool,
}

impl AgentUi for AtrisUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        write::describe(interrupt)
    }

    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        read_outcome(interrupt, line)
            .or_else(|| read_choice(interrupt, line))
            .unwrap_or_else(|| interrupt.read(line))
    }

    fn prompt(&self, interrupt: &InterruptRequest) -> String {
        match interrupt.kind.as_str() {
            OUTCOME_UNKNOWN => "happened, call or response …: ".to_owned(),
            _ => interrupt.prompt(),
        }
    }

    fn choices(&self, interrupt: &InterruptRequest) -> Vec<AnswerChoice> {
        choices_of(interrupt)
    }

    fn answer_effects(&self, interrupt: &InterruptRequest) -> Vec<(&'static str, &'static str)> {
        effects_of(interrupt)
    }

    /// The model only chooses from lists, so there is nothing to stream.
    fn streams_tokens(&self) -> bool {
        false
    }

    fn is_finished(&self, state: &Json) -> bool {
        state["query"].is_null()
    }

    fn describe_input(&self, input: &Json) -> Option<String> {
        step_text::describe_input(input)
    }

    fn describe_step(&self, node: &str, update: &Json) -> Option<String> {
        step_text::describe_step(node, update)
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "llm": model }))
    }

    fn finish<'a>(
        &'a self,
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(thread, output, self.debug))
    }
}

/// Returns the ways to answer an interrupt, one about a call whose outcome is unknown included.
pub(super) fn choices_of(interrupt: &InterruptRequest) -> Vec<AnswerChoice> {
    match interrupt.kind.as_str() {
        OUTCOME_UNKNOWN => vec![
            AnswerChoice::line('a', "call again", "call"),
            AnswerChoice::line('i', "it happened", "happened"),
            AnswerChoice::rest('r', "respond", "response "),
        ],
        _ => AnswerChoice::of(interrupt),
    }
}

/// Returns what may be typed and what each answer causes.
pub(super) fn effects_of(interrupt: &InterruptRequest) -> Vec<(&'static str, &'static str)> {
    match interrupt.kind.as_str() {
        OUTCOME_UNKNOWN => vec![
            ("happened", "the call was made; do not make it again"),
            ("call", "it was not made; make it again"),
            ("response …", "do not make it; continue with this text"),
        ],
        _ => interrupt.answer_effects(),
    }
}

/// Reads a one-word answer about a call whose outcome is unknown. `None` for other interrupts and answers.
pub(super) fn read_outcome(
    interrupt: &InterruptRequest,
    line: &str,
) -> Option<Result<Json, String>> {
    let word = line.trim();
    match (interrupt.kind.as_str(), word) {
        (OUTCOME_UNKNOWN, "happened" | "call") => Some(Ok(json!({ "type": word }))),
        _ => None,
    }
}

/// Reads the number of an offered API or call. `None` for other interrupts.
pub(super) fn read_choice(
    interrupt: &InterruptRequest,
    line: &str,
) -> Option<Result<Json, String>> {
    if ![WHICH_API, WHICH_CALL].contains(&interrupt.kind.as_str()) {
        return None;
    }
    let word = line.trim();
    let choices = interrupt.request["choices"].as_array();
    let chosen = word
        .parse::<usize>()
        .ok()
        .and_then(|number| choices?.get(number.checked_sub(1)?));
    if let Some(chosen) = chosen {
        return Some(Ok(chosen.clone()));
    }
    let allowed = interrupt
        .schema
        .as_ref()
        .and_then(|schema| schema["enum"].as_array());
    let is_allowed = allowed.is_none_or(|allowed| allowed.contains(&json!(word)));
    Some(match is_allowed {
        true => Ok(json!(word)),
        false => Err(format!(
            "say a number from the list, one of the names, or `{NONE}`"
        )),
    })
}

async fn finish(thread: &dyn AnyThread, output: &Output<'_>, debug: bool) -> anyhow::Result<Exit> {
    let state: AtrisState = state_of(thread).await?;
    let written = run_log::last_run(thread).await?;
    let wrote = |field: &str| {
        written
            .iter()
            .rev()
            .map(|written| &written.update[field])
            .find(|value| !value.is_null())
    };
    let error = wrote("error").cloned();
    let answer = state
        .message_history
        .last()
        .map(|said| said.content.clone())
        .unwrap_or_default();
    if output.json {
        output.terminal.json(&json!({
            "thread": thread.id().to_string(),
            "answer": answer,
            "error": error,
            "response": wrote("secondaryResponse").or_else(|| wrote("response")),
            "bestApi": wrote("bestApi").map(|api| &api["id"]),
            "parameters": wrote("parameters"),
            "selectedHost": state.selected_host,
            "notes": wrote("messages"),
            "requests": written.iter().flat_map(|written| written.requests.clone()).collect::<Vec<_>>(),
            "errors": frequency(&state),
            "nodes": debug.then_some(&written),
        }));
    } else {
        if debug {
            written
                .iter()
                .for_each(|written| output.terminal.line(&run_log::line(written)));
        }
        for note in wrote("messages")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
        {
            output.terminal.aside(&format!(
                "note: {}",
                shown(note["content"].as_str().unwrap_or_default())
            ));
        }
        output.terminal.line(&answer);
        for request in written.iter().flat_map(|written| &written.requests) {
            output.terminal.aside(&format!("called {}", shown(request)));
        }
        if debug {
            state.error_frequency().iter().for_each(|(entry, count)| {
                let often = if *count > OFTEN { "  (often)" } else { "" };
                output.terminal.line(&format!(
                    "{count:>4} × {}: {}{often}",
                    entry.node, entry.error
                ));
            });
        }
        output.terminal.aside(&format!("thread {}", thread.id()));
    }
    Ok(if error.is_some() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

fn frequency(state: &AtrisState) -> Json {
    let counted = state.error_frequency();
    counted.iter().map(|(entry, count)| json!({ "node": entry.node, "error": entry.error, "count": count, "often": *count > OFTEN })).collect()
}

const OUTCOME_UNKNOWN: &str = "outcome_unknown";
