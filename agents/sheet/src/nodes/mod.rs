//! The nodes: planner, informer, tool runner, and review by the person.

mod change_set;
mod grounds;
mod informer;
mod open_workbook;
mod planner;
mod repeats;
mod save_results;
mod step_form;
mod tool;

use std::sync::Arc;

use archie_agent::ModelRegistry;
use superstep::label::{Label, Labels};
use superstep::{NodeCx, NodeError};
use superstep_agent::{AgentEvent, Spending, failure};
use superstep_llm::{Model, Reply, Request, fit};

use super::plan::{self, Plan};
use super::prompts::Prompts;
use super::state::{Call, GraphState};

pub(super) use change_set::ChangeSetNode;
pub(super) use informer::InformerNode;
pub(super) use open_workbook::OpenWorkbookNode;
pub(super) use planner::PlannerNode;
pub(super) use save_results::SaveResultsNode;
pub(super) use tool::ToolNode;

/// Dependencies of the nodes that call models.
#[derive(Clone)]
pub(super) struct ModelDeps {
    pub(super) models: Arc<ModelRegistry>,
    pub(super) spending: Option<Spending>,
    pub(super) prompts: Prompts,
}

/// Where the graph continues after the planner.
pub(super) enum Next {
    Tool,
    Informer,
    End,
}

/// The routing from the specification. A tool call leads to the tool node, and `Done`, `Finish` or a stop such as the step
/// limit to the end. A message without an action leads to the informer if there is one and the workbook has changed since its
/// last lookup; otherwise to the tool node, which tells the planner what is wrong.
pub(super) fn should_continue(state: &GraphState) -> Next {
    if state.stopped.is_some() {
        return Next::End;
    }
    let Some(last) = state.messages.last() else {
        return Next::End;
    };
    match plan::read(&last.message, state.step) {
        // The tool node tells the planner why.
        Plan::Finish(answer) if grounds::refusal(state, state.step, &answer).is_some() => {
            Next::Tool
        }
        Plan::Finish(_) => Next::End,
        // The tool node tells the planner that it has asked this already.
        Plan::Ask(call) if repeats::earlier_questions(state, &call) > 0 => Next::Tool,
        Plan::Ask(_) if state.informer.is_some() => Next::Informer,
        Plan::Think if state.informer.is_some() && is_stale(state) => Next::Informer,
        Plan::Act(_) | Plan::Ask(_) | Plan::Think | Plan::Malformed(_) => Next::Tool,
    }
}

/// Returns whether an answer may still be recorded. The first one stays, unless failed checks have reopened the work since.
fn takes_answer(state: &GraphState) -> bool {
    state.answer.is_empty() || state.reopened > 0
}

fn is_stale(state: &GraphState) -> bool {
    let known = state.key_information.as_ref();
    known.is_none_or(|known| known.snapshot != state.workbook.snapshot)
}

/// Cuts a request to fit the model's context and reports the cuts. Sets the token limit of the answer to at most `tokens`.
async fn fitted(
    request: &mut Request,
    model: &dyn Model,
    tokens: u32,
    cx: &NodeCx,
) -> Result<(), NodeError> {
    let size = model.context_size().await.map_err(failure)?;
    // A small context means a small model, and those tend to write until they are stopped.
    let room = size.map_or(tokens, |size| u32::try_from(size / 16).unwrap_or(tokens));
    request.tokens_max = Some(room.clamp(256, tokens));
    if let Some(size) = size {
        let cuts = fit::fit(request, size);
        if !cuts.is_empty() {
            let cuts: Vec<_> = cuts.iter().map(ToString::to_string).collect();
            progress(cx, &format!("cut to fit the model: {}", cuts.join(", ")))?;
        }
    }
    Ok(())
}

/// Emits a progress message to everyone who streams the run.
fn progress(cx: &NodeCx, text: &str) -> Result<(), NodeError> {
    cx.emit_live(AgentEvent::progress(text))
}

/// Returns the joined labels of the whole conversation.
fn labels(state: &GraphState) -> Labels {
    let mut all = Labels::NONE;
    for kept in &state.messages {
        all = all.join(&kept.labels);
    }
    all
}

/// Returns the labels of text that comes from cells.
fn untrusted(state: &GraphState) -> Labels {
    labels(state).join(&Label::UNTRUSTED.into())
}

fn call(node: &str, reply: &Reply) -> Call {
    Call {
        node: node.to_owned(),
        model: reply.model.to_string(),
        usage: reply.usage,
        cost: reply.cost,
    }
}

const PROGRESS_CHARS: usize = 160;
