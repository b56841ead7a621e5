//! User interface of the agent: an interview that ends with a result file.

use archie_agent::printable::counted;
use archie_agent::terminal_markdown::labeled;
use archie_agent::{
    AgentUi, Exit, InterruptRequest, Output, Terminal, ThreadFolders, UsageTotal, state_of,
};
use serde_json::{Value as Json, json};
use superstep::AnyThread;
use superstep::checkpoint::BoxFuture;

use super::ANALYSIS_INTERRUPT;
use super::result::{self, SavedPage};
use super::state::{AppState, Call, Evidence, Finding};
use super::step_text;
use super::tools::consultations;

/// User interface of the agent: an interview that ends with a result file.
#[derive(Debug)]
pub(super) struct AnalyzeUi {
    pub(super) folders: Option<ThreadFolders>,
}

impl AgentUi for AnalyzeUi {
    fn describe(&self, interrupt: &InterruptRequest) -> String {
        match interrupt.node == ANALYSIS_INTERRUPT {
            true => labeled("Agent:", &interrupt.words()),
            false => interrupt.words(),
        }
    }

    fn is_markdown(&self, interrupt: &InterruptRequest) -> bool {
        interrupt.node == ANALYSIS_INTERRUPT
    }

    fn was_streamed(&self, interrupt: &InterruptRequest) -> bool {
        interrupt.node == ANALYSIS_INTERRUPT
    }

    fn is_finished(&self, state: &Json) -> bool {
        state["analysisOutput"] != json!("")
    }

    fn reopen(&self, state: &Json) -> Option<(&'static str, Json)> {
        let is_stopped = !state["stopped"].is_null();
        is_stopped.then(|| (ANALYSIS_INTERRUPT, json!({ "stopped": null })))
    }

    fn with_model(&self, _state: &Json, model: &str) -> Option<Json> {
        Some(json!({ "modelName": model }))
    }

    fn describe_input(&self, input: &Json) -> Option<String> {
        step_text::describe_input(input)
    }

    fn describe_step(&self, node: &str, update: &Json) -> Option<String> {
        step_text::describe_step(node, update)
    }

    fn finish<'a>(
        &'a self,
        output: &'a Output<'a>,
        thread: &'a dyn AnyThread,
    ) -> BoxFuture<'a, anyhow::Result<Exit>> {
        Box::pin(finish(thread, output, self.folders.as_ref()))
    }
}

/// Prints the result and writes it.
async fn finish(
    thread: &dyn AnyThread,
    output: &Output<'_>,
    folders: Option<&ThreadFolders>,
) -> anyhow::Result<Exit> {
    let state = get_final_output(thread).await?;
    let terminal = output.terminal;
    if state.stopped.is_some() {
        let id = thread.id();
        output.tell(&format!(
            "stopped at the budget; everything is kept, `archie resume {id}` asks again"
        ));
        return Ok(Exit::Budget);
    }
    if state.analysis_output.is_empty() {
        // Nothing was analyzed: the input began with another keyword than `analyze:`.
        match state.current_analysis_query.is_empty() {
            true => terminal.line(
                "nothing to analyze: begin the input with `analyze:`, or use `archie analyze --query \"…\" --inputs DIR`",
            ),
            false => terminal.line(&state.current_analysis_query),
        }
        return Ok(Exit::Done);
    }
    let saved = result::save(&state, thread.id(), folders)?;
    match output.json {
        true => terminal.json(&report(&thread.id().to_string(), &state, &saved)),
        false => {
            display_final_output_to_user(&state.analysis_output, terminal);
            terminal.line(&saved.to_string());
            if let Some(doubts) = doubts(&state) {
                terminal.line(&doubts);
            }
            let consulted = consultations(&state).len();
            if consulted > 0 {
                terminal.line(&format!("consulted {}", counted(consulted, "tool call")));
            }
            terminal.line(&spent(&state.calls).to_string());
        }
    }
    Ok(Exit::Done)
}

/// Returns what a reader of the result should look at twice, in one line.
fn doubts(state: &AppState) -> Option<String> {
    let count = |is: &dyn Fn(&Finding) -> bool| state.findings.iter().filter(|f| is(f)).count();
    let unsupported = count(&|finding| finding.evidence == Some(Evidence::Unsupported));
    let weak = count(&|finding| finding.evidence == Some(Evidence::Weak));
    let contradictions = count(&|finding| finding.contradicts.is_some());
    let mut doubts = Vec::new();
    if unsupported > 0 {
        doubts.push(format!("{} unsupported", counted(unsupported, "claim")));
    }
    if weak > 0 {
        doubts.push(format!("{} weakly supported", counted(weak, "claim")));
    }
    if contradictions > 0 {
        let decisions = counted(contradictions, "decision");
        doubts.push(format!("{decisions} may contradict your answers"));
    }
    if !state.gaps.is_empty() {
        let incomplete = counted(state.gaps.len(), "heading");
        doubts.push(format!("{incomplete} incomplete"));
    }
    (!doubts.is_empty()).then(|| format!("check: {}", doubts.join(", ")))
}

/// Returns the latest state of a thread.
pub async fn get_final_output(thread: &dyn AnyThread) -> anyhow::Result<AppState> {
    state_of(thread).await
}

fn display_final_output_to_user(text: &str, terminal: &dyn Terminal) {
    terminal.line("--- Final Analysis Output ---");
    terminal.markdown(text);
}

fn report(thread: &str, state: &AppState, saved: &SavedPage) -> Json {
    json!({
        "thread": thread,
        "saved": saved.path.display().to_string(),
        "kept": saved.kept,
        "output": state.analysis_output,
        "inputs": state.inputs.hashes,
        "findings": state.findings,
        "degraded": state.degraded,
        "gaps": state.gaps,
        "calls": state.calls,
        "consulted": consultations(state),
    })
}

/// Returns the total usage of the model calls.
pub(super) fn spent(calls: &[Call]) -> UsageTotal {
    let mut spent = UsageTotal::default();
    for call in calls {
        spent.add(call.usage, call.cost);
    }
    spent
}
