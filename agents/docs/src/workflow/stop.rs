//! When an agent stops, and why.

use std::fmt;

use super::super::state::AgentWorkflowState;

/// Why an agent goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The text is good enough.
    Enough,
    /// The model could not be brought to give scores.
    Unscored,
    /// It was not to ask itself anything.
    NoQuestions,
    /// The last refinement gained too little.
    Plateau,
    /// It was refined as often as it may be.
    Limit,
    /// A person said that this is enough.
    Skipped,
    /// A person said so at a limit of what may be spent.
    Budget,
}

impl StopReason {
    /// Whether to stop after a scoring, and why.
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

    /// What a reader should be warned of.
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

/// What the last refinement gained over the best before it.
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
