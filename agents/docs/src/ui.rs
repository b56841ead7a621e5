//! User interface of the agent: gates while it runs, and the pages at the end.

use std::path::PathBuf;
use std::sync::Arc;

use archie_agent::printable::one_line;
use archie_agent::{
    AgentUi, AnswerChoice, Exit, InterruptRequest, Output, ThreadFolders, state_of,
};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;
use superstep::{AnyThread, ThreadId};

use super::deps::DocsDeps;
use super::gate::{approval, gate};
use super::state::DocsState;
use super::{nodes, pages, step_text};

/// Folder below the pages, with one folder for the pages of each copy of a thread.
const FORKS: &str = "forks";

/// User interface of the agent.
#[derive(Debug)]
pub(super) struct DocsUi {
    pub(super) deps: Arc<DocsDeps>,
}

impl AgentUi for DocsUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        match interrupt.kind.as_str() {
            "gate" => gate(&interrupt.request),
            _ => interrupt.words(),
        }
    }

    fn prompt(&self, interrupt: &InterruptRequest) -> String {
        match interrupt.kind.as_str() {
            "gate" => "accept, skip, add QUESTION or delete NUMBERS: ".to_owned(),
            _ => interrupt.prompt(),
        }
    }

    fn choices(&self, interrupt: &InterruptRequest) -> Vec<AnswerChoice> {
        match interrupt.kind.as_str() {
            "gate" => vec![
                AnswerChoice::line('a', "accept", "accept"),
                AnswerChoice::rest('r', "add", "add "),
                AnswerChoice::rest('d', "delete", "delete "),
                AnswerChoice::line('i', "skip", "skip"),
            ],
            _ => AnswerChoice::of(interrupt),
        }
    }

    fn read_answer(&self, interrupt: &InterruptRequest, line: &str) -> Result<Json, String> {
        match interrupt.kind.as_str() {
            "gate" => approval(line).and_then(|approval| {
                serde_json::to_value(approval).map_err(|error| error.to_string())
            }),
            _ => interrupt.read(line),
        }
    }

    fn streams_tokens(&self) -> bool {
        // Several agents answer at once.
        false
    }

    fn is_finished(&self, state: &Json) -> bool {
        !state["report"].is_null()
    }

    fn describe_input(&self, input: &Json) -> Option<String> {
        step_text::describe_input(input)
    }

    fn describe_step(&self, node: &str, update: &Json) -> Option<String> {
        step_text::describe_step(node, update)
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "modelName": model }))
    }

    fn in_copy(&self, state: &Json, copy: &ThreadId) -> Option<Json> {
        let output = state["output"]
            .as_str()
            // The files of a thread are its own already.
            .filter(|output| !output.is_empty() && !ThreadFolders::has(output))?;
        // Below the folder of the pages, because a scan leaves that out. The end of the id is its random part.
        let id = copy.to_string();
        let short = &id[id.floor_char_boundary(id.len().saturating_sub(12))..];
        let own = PathBuf::from(output).join(FORKS).join(short);
        Some(json!({ "output": own.display().to_string() }))
    }

    fn finish<'a>(
        &'a self,
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(&self.deps, thread, output))
    }
}

/// Writes the pages and prints the results.
async fn finish(
    deps: &DocsDeps,
    thread: &dyn AnyThread,
    output: &Output<'_>,
) -> anyhow::Result<Exit> {
    let state: DocsState = state_of(thread).await?;
    let (folder, written) = deps.save(thread.id(), &state).await?;
    for result in &state.results {
        output.tell(&nodes::line(result));
        for warning in &result.warnings {
            output.terminal.aside(&format!("  {}", one_line(warning)));
        }
    }
    let report = state.report.clone().unwrap_or_default();
    let mut cost = superstep_llm::Cost::NanoDollars(0);
    for result in &state.results {
        cost = cost.plus(result.metadata.cost.unwrap_or(superstep_llm::Cost::Unknown));
    }
    output.tell(&format!(
        "{} model calls, {} tokens in, {} out, cost {cost}",
        report.calls, report.usage.input_tokens, report.usage.output_tokens
    ));
    match output.json {
        true => output
            .terminal
            .json(&report_json(&thread.id().to_string(), &state, &written)),
        false => output
            .terminal
            .line(&format!("saved {}", folder.join(pages::INDEX).display())),
    }
    let mut results = state.results.iter();
    if results.any(|result| result.metadata.is_cut_short()) {
        output
            .tell("stopped at the budget; what there is is saved, and the next run makes the rest");
        return Ok(Exit::Budget);
    }
    Ok(Exit::Done)
}

fn report_json(thread: &str, state: &DocsState, written: &[PathBuf]) -> Json {
    let written: Vec<String> = written
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    json!({
        "thread": thread,
        "saved": written,
        "results": state.results,
        "scan": state.scan,
        "report": state.report,
    })
}
