//! Node `evaluateClarity`: the model scores the text, and the accuracy score is checked against the tree.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::{Command, Node, NodeCx, NodeError, View};
use superstep_agent::AgentEvent;
use superstep_llm::Message;

use super::super::accuracy::{self, CheckedText, Claim};
use super::super::completeness::{is_plain_name, uncovered};
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
        let tree = self.deps.tree(cx.thread(), &state.context).await?;
        let checked = accuracy::check(&state.current_analysis, &tree);
        let mut missing: Vec<String> = checked.misses.iter().map(told).collect();
        let agent = self.deps.agent_of(&state.agent)?;
        let mut subjects = agent.subjects(&tree);
        subjects.retain(|subject| is_plain_name(subject));
        let coverage = Coverage::of(&state, &subjects);
        let unnamed = coverage.uncovered.iter();
        missing.extend(unnamed.map(|subject| format!("{UNNAMED}{subject}")));
        if coverage.is_cut_off {
            missing.push(CUT_OFF.to_owned());
        }
        if state.current_analysis.is_empty() {
            // Without a text there is nothing to score, and everything is missing.
            let nothing = scored(state.iteration, Scores::default(), &checked, coverage);
            return Ok(kept(&state, nothing)
                .missing_information(vec!["There is no text yet".to_owned()])
                .into());
        }
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
        let scored = scored(state.iteration, said.value, &checked, coverage);
        let is_enough = said.degraded.is_none() && scored.overall >= state.config.clarity_threshold;
        show(&state, &scored, said.degraded.is_some(), &cx)?;
        let update = match &said.degraded {
            Some(why) => AgentWorkflowStateUpdate::default()
                .unscored(Some(why.clone()))
                .versions(Version {
                    iteration: state.iteration,
                    analysis: state.current_analysis.clone(),
                    is_unscored: true,
                    ..Version::default()
                }),
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
    let version = Version {
        iteration: scored.iteration,
        score: scored.overall,
        analysis: state.current_analysis.clone(),
        is_unscored: false,
    };
    if is_best {
        update = update.best(Some(version.clone()));
    }
    update.versions(version).scores(scored)
}

/// What code can tell about the completeness of a text.
struct Coverage {
    /// Share of what the page must name that the text does name, from 0 to 100.
    percent: u32,
    uncovered: Vec<String>,
    is_cut_off: bool,
}

impl Coverage {
    fn of(state: &AgentWorkflowState, subjects: &[String]) -> Self {
        let uncovered = uncovered(&state.current_analysis, subjects);
        let named = subjects.len() - uncovered.len();
        Self {
            percent: match subjects.len() {
                0 => 100,
                all => u32::try_from(named * 100 / all).unwrap_or(100),
            },
            uncovered,
            is_cut_off: state.cut_off,
        }
    }
}

/// Combines the four scores. The model's own scores count only as far as the checks bear them out: accuracy for the share of
/// claims that the tree supports, completeness for the share of what the page must name. A text that is cut off is not
/// complete, whatever the model says.
fn scored(iteration: u32, scores: Scores, checked: &CheckedText, coverage: Coverage) -> Scored {
    let accuracy = (scores.accuracy.0 * checked.percent()).div_ceil(100);
    let (completeness, clarity) = match coverage.is_cut_off {
        true => (0, scores.clarity.0.min(CUT_OFF_CLARITY_MAX)),
        false => (
            (scores.completeness.0 * coverage.percent).div_ceil(100),
            scores.clarity.0,
        ),
    };
    let sum = completeness + clarity + scores.depth.0 + accuracy;
    let written = |claims: &[Claim]| claims.iter().map(Claim::to_string).collect();
    Scored {
        iteration,
        completeness,
        clarity,
        depth: scores.depth.0,
        accuracy,
        overall: (sum + 2) / 4,
        checked: u32::try_from(checked.checked()).unwrap_or(u32::MAX),
        misses: written(&checked.misses),
        unknown: written(&checked.unknown),
        uncovered: coverage.uncovered,
        is_cut_off: coverage.is_cut_off,
    }
}

/// Returns the gaps that remain. Unsupported claims were just looked up again; the other gaps count as closed once the text is
/// good enough.
fn still_missing(state: &AgentWorkflowState, misses: Vec<String>, is_enough: bool) -> Vec<String> {
    let gaps = state.missing_information.iter().filter(|gap| {
        let is_checked = gap.starts_with(MISS) || gap.starts_with(UNNAMED) || *gap == CUT_OFF;
        !is_enough && !is_checked
    });
    let mut missing = misses;
    missing.extend(gaps.cloned());
    missing
}

fn told(miss: &Claim) -> String {
    format!("{MISS}{miss}")
}

const MISS: &str = "Not borne out by the tree: ";
const UNNAMED: &str = "Not named: ";
const CUT_OFF: &str = "The end: the text is cut off";

/// Highest score for the clarity of a text that is cut off.
const CUT_OFF_CLARITY_MAX: u32 = 50;

const SPAN: &str = "EvaluateClarity";
