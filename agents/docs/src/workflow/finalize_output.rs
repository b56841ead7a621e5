//! Node `finalizeOutput`: makes the page from the best version, without unsupported claims. Calls no model.

use std::sync::Arc;

use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_llm::{Cost, Usage};

use super::super::accuracy::{self, CheckedText, Claim};
use super::super::completeness;
use super::super::deps::DocsDeps;
use super::super::prose;
use super::super::scan::Tree;
use super::super::state::{
    AgentResult, AgentWorkflowState, AgentWorkflowStateUpdate, Metadata, Status,
};
use super::stop::StopReason;
use super::{BaseAgentWorkflow, name_span};

pub(super) struct FinalizeOutput {
    pub(super) deps: Arc<DocsDeps>,
}

impl Node<AgentWorkflowState> for FinalizeOutput {
    async fn run(
        &self,
        state: View<AgentWorkflowState>,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        name_span(&state, "Finalize", &cx)?;
        let agent = self.deps.agent_of(&state.agent)?;
        let tree = self.deps.tree(cx.thread(), &state.context).await?;
        let result = result(&*agent, &state, &tree);
        let analysis = best_text(&state).to_owned();
        Ok(AgentWorkflowStateUpdate::default()
            .final_analysis(analysis)
            .result(Some(result))
            .into())
    }
}

/// Returns the best version, or the current text if none was ever scored.
fn best_text(state: &AgentWorkflowState) -> &str {
    match &state.best {
        Some(best) => &best.analysis,
        None => &state.current_analysis,
    }
}

fn result(agent: &dyn BaseAgentWorkflow, state: &AgentWorkflowState, tree: &Tree) -> AgentResult {
    let stop = StopReason::of(state).unwrap_or(StopReason::Skipped);
    let best = best_text(state);
    let finished = completeness::finished_part(best);
    let tidy = prose::tidied(finished.as_deref().unwrap_or(best), tree);
    let mut warnings: Vec<String> = state.refinement_notes.clone();
    warnings.extend(stop.warning(state));
    let is_cut_off = finished.is_some() || is_best_cut_off(state);
    if is_cut_off {
        warnings.push("The text was cut off; the page has the part that is whole".to_owned());
    }
    warnings.extend(tidy.warnings());
    warnings.extend(state.warnings.iter().cloned());
    if tree.hash != state.context.scan {
        warnings.push(
            "The tree has changed since it was scanned; run again to describe it as it is"
                .to_owned(),
        );
    }
    let data = agent.parse_analysis(&tidy.text, tree);
    let score = state.best.as_ref().map_or(0, |best| best.score);
    let is_whole = state.unscored.is_none() && !tidy.text.is_empty();
    AgentResult {
        agent_name: state.agent.clone(),
        status: if is_whole {
            Status::Success
        } else {
            Status::Degraded
        },
        summary: agent.generate_summary(&data),
        markdown: agent.format_markdown(&data),
        data,
        confidence: f64::from(score) / 100.0,
        warnings,
        metadata: metadata(state, stop, &accuracy::check(&tidy.text, tree)),
        versions: state.versions.clone(),
    }
}

/// Returns whether the version that is kept was cut off at the token limit.
fn is_best_cut_off(state: &AgentWorkflowState) -> bool {
    let Some(best) = &state.best else {
        return state.cut_off;
    };
    let scored = state
        .scores
        .iter()
        .rfind(|scored| scored.iteration == best.iteration);
    scored.is_some_and(|scored| scored.is_cut_off)
}

fn metadata(state: &AgentWorkflowState, stop: StopReason, checked: &CheckedText) -> Metadata {
    let written = |claims: &[Claim]| claims.iter().map(Claim::to_string).collect();
    let mut usage = Usage::default();
    let mut cost = Cost::NanoDollars(0);
    for call in &state.calls {
        usage += call.usage.unwrap_or_default();
        cost = cost.plus(call.cost);
    }
    let mut reads = state.reads.clone();
    reads.sort_by(|one, other| one.path.cmp(&other.path));
    reads.dedup();
    let questions = state.rounds.iter().flat_map(|round| &round.questions);
    Metadata {
        iterations: state.iteration,
        self_questions: questions.cloned().collect(),
        missing_information: state.missing_information.clone(),
        refinement_notes: notes(state),
        scores: state.scores.iter().map(|scored| scored.overall).collect(),
        threshold: state.config.clarity_threshold,
        inputs: state.inputs.clone(),
        stopped: stop.to_string(),
        calls: u32::try_from(state.calls.len()).unwrap_or(u32::MAX),
        usage,
        cost: Some(cost),
        claims: written(&checked.hits),
        unknown: written(&checked.unknown),
        sources: state.sources.clone(),
        reads,
    }
}

/// Returns the refinement notes, each with the scores before and after where both are known.
fn notes(state: &AgentWorkflowState) -> Vec<String> {
    let score = |iteration: usize| state.scores.get(iteration).map(|scored| scored.overall);
    let told = |(at, note): (usize, &String)| match (score(at), score(at + 1)) {
        (Some(before), Some(after)) => format!("{note}: {before} → {after}"),
        _ => note.clone(),
    };
    state
        .refinement_notes
        .iter()
        .enumerate()
        .map(told)
        .collect()
}
