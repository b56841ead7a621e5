//! The nodes: who plans, who looks up, what runs tools, and who asks the person.

mod change_set;
mod informer;
mod planner;
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
pub(super) use planner::PlannerNode;
pub(super) use tool::ToolNode;

/// How models are asked.
#[derive(Clone)]
pub(super) struct ModelDeps {
    pub(super) models: Arc<ModelRegistry>,
    pub(super) spending: Option<Spending>,
    pub(super) prompts: Prompts,
}

/// Where it goes after the planner.
pub(super) enum Next {
    Tool,
    Informer,
    End,
}

/// The brief's edge: a call of a tool leads to the tool, `JournalEntry` or `Finish` to the end, and so do too many steps. Without either,
/// the informer is asked if there is one and the workbook changed since it was; else the planner is told what is wrong.
pub(super) fn should_continue(state: &GraphState) -> Next {
    if state.stopped.is_some() {
        return Next::End;
    }
    let Some(last) = state.messages.last() else {
        return Next::End;
    };
    match plan::read(&last.message, state.step) {
        Plan::Finish(_) => Next::End,
        Plan::Ask(_) if state.informer.is_some() => Next::Informer,
        Plan::Think if state.informer.is_some() && is_stale(state) => Next::Informer,
        Plan::Act(_) | Plan::Ask(_) | Plan::Think | Plan::Malformed(_) => Next::Tool,
    }
}

fn is_stale(state: &GraphState) -> bool {
    let known = state.key_information.as_ref();
    known.is_none_or(|known| known.snapshot != state.workbook.snapshot)
}

/// Cuts a request to what the model can read, and says so.
async fn fitted(
    request: &mut Request,
    model: &dyn Model,
    tokens: u32,
    cx: &NodeCx,
) -> Result<(), NodeError> {
    let size = model.context_size().await.map_err(failure)?;
    // A model with little room is a small one, which goes on until it is stopped.
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

/// Tells whoever watches what happens.
fn progress(cx: &NodeCx, text: &str) -> Result<(), NodeError> {
    cx.emit_live(AgentEvent::progress(text))
}

/// The labels of all that was said.
fn labels(state: &GraphState) -> Labels {
    let mut all = Labels::NONE;
    for kept in &state.messages {
        all = all.join(&kept.labels);
    }
    all
}

/// The labels of what comes out of cells.
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
