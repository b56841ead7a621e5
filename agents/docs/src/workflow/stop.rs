//! When an agent stops refining, and why.

use std::fmt;

use super::super::state::AgentWorkflowState;

/// Why an agent stopped refining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The score reached the threshold.
    Enough,
    /// The model returned no scores.
    Unscored,
    /// Self-questioning is off.
    NoQuestions,
    /// The last refinement gained less than the minimum.
    Plateau,
    /// The text was refined as often as allowed.
    Limit,
    /// A person chose at the gate to stop, or deleted all questions.
    Skipped,
    /// A person chose to stop when the run reached its spending limit.
    Budget,
}

impl StopReason {
    /// Returns why to stop after a scoring, or `None` to refine again.
    pub fn of(state: &AgentWorkflowState) -> Option<Self> {
        let config = &state.config;
        if state.budget {
            return Some(Self::Budget);
        }
        if state.skipped {
            return Some(Self::Skipped);
        }
        if state.unscored.is_some() {
            return Some(Self::Unscored);
        }
        if state.clarity_score >= config.clarity_threshold {
            return Some(Self::Enough);
        }
        if !config.enable_self_questioning {
            return Some(Self::NoQuestions);
        }
        if state.iteration >= config.max_iterations {
            return Some(Self::Limit);
        }
        if state.iteration > 0 && gain(state) < i64::from(config.min_improvement) {
            return Some(Self::Plateau);
        }
        None
    }

    /// Returns the warning for the reader of the page, if this reason deserves one.
    pub(super) fn warning(self, state: &AgentWorkflowState) -> Option<String> {
        let threshold = state.config.clarity_threshold;
        let best = state.best.as_ref().map_or(0, |best| best.score);
        match self {
            Self::Limit if state.config.max_iterations > 0 => Some(format!(
                "Stopped after {} iterations at {best}, below the threshold of {threshold}",
                state.iteration
            )),
            Self::Plateau => Some(format!(
                "Stopped at {best}: the last iteration gained less than {}",
                state.config.min_improvement
            )),
            Self::Unscored => Some(format!(
                "Unscored: {}",
                state
                    .unscored
                    .as_deref()
                    .unwrap_or("the model gave no scores")
            )),
            Self::Skipped => Some(format!(
                "Stopped at {best}: a person said that this is enough"
            )),
            Self::Budget => Some(format!("Stopped at {best}: the budget is used up")),
            Self::Enough | Self::NoQuestions | Self::Limit => None,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enough => "enough",
            Self::Unscored => "unscored",
            Self::NoQuestions => "no questions",
            Self::Plateau => "plateau",
            Self::Limit => "limit",
            Self::Skipped => "skipped",
            Self::Budget => "budget",
        })
    }
}

/// Returns how many points the last version gained over the best one before it. Negative if it is worse.
fn gain(state: &AgentWorkflowState) -> i64 {
    let Some((last, before)) = state.scores.split_last() else {
        return 0;
    };
    let best = before
        .iter()
        .map(|scored| scored.overall)
        .max()
        .unwrap_or(0);
    i64::from(last.overall) - i64::from(best)
}
