//! How far a run is on its way to its end.
//!
//! One value, so that a run cannot be both halting and over. Two facts are independent of it and have fields of their own:
//! a commit may be in flight in any phase, and a drain request outlives a stop that answers revoke.

use crate::checkpoint::format::Stop;
use crate::run::Outcome;

/// How far a run is on its way to its end. It only ever moves down this list, except that answers which arrive while a
/// pause is being persisted take it back to [`Running`](Self::Running).
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// It starts supersteps.
    #[default]
    Running,
    /// It was resumed to stop for this reason, and first starts the supersteps again that were under way when it was
    /// suspended.
    Held(Stop),
    /// It starts nothing more, and stops for this reason once nothing is under way.
    Halting(Stop),
    /// It stops for this reason as soon as that is persisted.
    Stopping(Stop),
    /// Its stop is persisted.
    Over(Outcome),
}

impl Phase {
    /// The stop that the next commit persists.
    pub(super) fn stop(&self) -> Option<&Stop> {
        match self {
            Self::Stopping(stop) => Some(stop),
            _ => None,
        }
    }

    /// Whether it stops as soon as that is persisted.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self, Self::Stopping(_))
    }

    /// Whether it waits for what is under way to end.
    pub(super) fn is_halting(&self) -> bool {
        matches!(self, Self::Halting(_))
    }

    /// Takes the reason for which it was to stop once nothing is under way. The run then has to decide again.
    pub(super) fn take_halting(&mut self) -> Option<Stop> {
        match std::mem::take(self) {
            Self::Halting(stop) => Some(stop),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Everything that was under way when the run was suspended is under way again.
    pub(super) fn release_held(&mut self) {
        if let Self::Held(_) = self
            && let Self::Held(stop) = std::mem::take(self)
        {
            *self = Self::Halting(stop);
        }
    }
}
