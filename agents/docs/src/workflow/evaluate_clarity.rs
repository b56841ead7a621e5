//! Node `evaluateClarity`: the model scores the text, and the accuracy score is checked against the tree.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::AgentEvent;
use superstep_llm::Message;

use super::super::accuracy::{self, CheckedText, Claim};
use super::super::deps::DocsDeps;
use super::super::state::{AgentWorkflowState, AgentWorkflowStateUpdate, Scored, Version};
use super::asking::Ask;
use super::name_span;

pub(super) struct EvaluateClarity {
    pub(super) deps: Arc<DocsDeps>,
}

/// What the model fills in.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
struct Scores {
    #[schemars(range(min = 0, max = 100))]
    completeness: Percent,
    #[schemars(range(min = 0, max = 100))]
    clarity: Percent,
    #[schemars(range(min = 0, max = 100))]
    depth: Percent,
    #[schemars(range(min = 0, max = 100))]
    accuracy: Percent,
}

/// From 0 to 100, and nothing else: a server that does not keep to the range is asked again.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
struct Percent(u32);

impl TryFrom<u32> for Percent {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        match number {
            0..=100 => Ok(Self(number)),
            _ => Err(format!("{number} is not between 0 and 100")),
        }
    }
}

impl From<Percent> for u32 {
    fn from(percent: Percent) -> Self {
        percent.0
    }
}

impl Node<AgentWorkflowState> for EvaluateClarity {
    async fn run(
        &self,
        state: View<AgentWorkflowState>,
        cx: NodeCx,
    ) -> Result<Command<AgentWorkflowState>, NodeError> {
        name_span(&state, SPAN, &cx)?;
        let tree = self.deps.tree(&state.context).await?;
        let checked = accuracy::check(&state.current_analysis, &tree);
        let missing: Vec<String> = checked.misses.iter().map(told).collect();
        if state.current_analysis.is_empty() {
            // Without a text there is nothing to score, and everything is missing.
            let nothing = scored(state.iteration, Scores::default(), &checked);
            return Ok(kept(&state, nothing)
                .missing_information(vec!["There is no text yet".to_owned()])
                .into());
        }
        let agent = self.deps.agent_of(&state.agent)?;
        let ask = Ask::of(&self.deps, &state, SPAN, &cx);
        let messages = vec![
            Message::system(agent.build_system_prompt(&state.context)),
            Message::user(
                self.deps
                    .prompts
                    .evaluate(&state.current_analysis, &missing),
            ),
        ];
        let Some(said) = ask.form(messages, Scores::default).await? else {
            return Ok(AgentWorkflowStateUpdate::default().budget(true).into());
        };
        let scored = scored(state.iteration, said.value, &checked);
        let is_enough = said.degraded.is_none() && scored.overall >= state.config.clarity_threshold;
        show(&state, &scored, said.degraded.is_some(), &cx)?;
        let update = match &said.degraded {
            Some(why) => AgentWorkflowStateUpdate::default().unscored(Some(why.clone())),
            None => kept(&state, scored),
        };
        Ok(update
            .missing_information(still_missing(&state, missing, is_enough))
            .calls_all(said.calls)
            .warnings_all(said.warnings)
            .into())
    }
}

/// Shows the current score to clients that stream the run.
fn show(
    state: &AgentWorkflowState,
    scored: &Scored,
    is_unscored: bool,
    cx: &NodeCx,
) -> Result<(), NodeError> {
    let score = match is_unscored {
        true => "not scored".to_owned(),
        false => format!("{} of 100", scored.overall),
    };
    let text = match state.iteration {
        0 => format!("{}: {score}", state.agent),
        round => format!("{}: {score} after iteration {round}", state.agent),
    };
    cx.emit_live(AgentEvent::progress(text))
}

/// Returns the update with the score, and with this version if it is the best so far.
fn kept(state: &AgentWorkflowState, scored: Scored) -> AgentWorkflowStateUpdate {
    let mut update = AgentWorkflowStateUpdate::default().clarity_score(scored.overall);
    let is_best = state
        .best
        .as_ref()
        .is_none_or(|best| scored.overall > best.score);
    if is_best {
        update = update.best(Some(Version {
            iteration: scored.iteration,
            score: scored.overall,
            analysis: state.current_analysis.clone(),
        }));
    }
    update.scores(scored)
}

/// Combines the four scores. The model's accuracy score counts only for the share of claims that the tree supports.
fn scored(iteration: u32, scores: Scores, checked: &CheckedText) -> Scored {
    let accuracy = (scores.accuracy.0 * checked.percent()).div_ceil(100);
    let sum = scores.completeness.0 + scores.clarity.0 + scores.depth.0 + accuracy;
    Scored {
        iteration,
        completeness: scores.completeness.0,
        clarity: scores.clarity.0,
        depth: scores.depth.0,
        accuracy,
        overall: (sum + 2) / 4,
        checked: u32::try_from(checked.hits.len() + checked.misses.len()).unwrap_or(u32::MAX),
        misses: checked.misses.iter().map(Claim::to_string).collect(),
    }
}

/// Returns the gaps that remain. Unsupported claims were just looked up again; the other gaps count as closed once the text is
/// good enough.
fn still_missing(state: &AgentWorkflowState, misses: Vec<String>, is_enough: bool) -> Vec<String> {
    let gaps = state
        .missing_information
        .iter()
        .filter(|gap| !is_enough && !gap.starts_with(MISS));
    let mut missing = misses;
    missing.extend(gaps.cloned());
    missing
}

fn told(miss: &Claim) -> String {
    format!("{MISS}{miss}")
}

const MISS: &str = "Not borne out by the tree: ";

const SPAN: &str = "EvaluateClarity";
