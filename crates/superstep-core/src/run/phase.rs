//! How close a run is to its end.
//!
//! One value, so that a run cannot be both halting and over. Two facts are independent of it and have their own fields: a
//! commit may be in flight in any phase, and a drain request outlives a stop that answers revoke.

use crate::checkpoint::format::Stop;
use crate::run::Outcome;

/// How close a run is to its end. It only moves down this list, except that answers which arrive while a pause is being
/// persisted take it back to [`Running`](Self::Running).
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// The run starts supersteps.
    #[default]
    Running,
    /// The run was resumed in order to stop for this reason, and first starts the supersteps again that were in progress when
    /// it was suspended.
    Held(Stop),
    /// The run starts nothing more, and stops for this reason once nothing is in progress.
    Halting(Stop),
    /// The run stops for this reason as soon as the stop is persisted.
    Stopping(Stop),
    /// The stop is persisted.
    Over(Outcome),
}

impl Phase {
    /// Returns the stop that the next commit persists.
    pub(super) fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Stopping(stop) => Some(stop),
            _ => None,
        }
    }

    /// Whether the run stops as soon as the stop is persisted.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping(_))
    }

    /// Whether the run waits for what is in progress to end.
    pub(super) fn is_halting(&self) -> bool {
        matches!(self, Self::Halting(_))
    }

    /// Takes the reason of a halting run. The run then has to decide again.
    pub(super) fn take_halting(&mut self) -> Option<Stop> {
        match std::mem::take(self) {
            Self::Halting(stop) => Some(stop),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Everything that was in progress when the run was suspended is in progress again, so the run can halt.
    pub(super) fn release_held(&mut self) {
        if let Self::Held(_) = self
            && let Self::Held(stop) = std::mem::take(self)
        {
            *self = Self::Halting(stop);
        }
    }
}
