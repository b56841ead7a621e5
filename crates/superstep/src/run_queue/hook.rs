//! The hook into the end of a run.

use superstep_core::checkpoint::BoxFuture;
use superstep_core::registry::{NewDelivery, RunEnd, RunRow};

/// What a program does before the end of a run is stored. See [`QueueOptions::end_hook`](super::QueueOptions::end_hook).
///
/// A run that is cancelled before it began has no end in this sense: nothing was executed, and the hook is not called for it.
pub trait RunEndHook: Send + Sync + 'static {
    /// Is called with a run that has stopped, as it was when it was taken from the queue, and its end. Returns what to deliver because
    /// of it. The deliveries are stored in the same write as the end, so they exist if and only if the run ended.
    ///
    /// If this fails, or the process dies before the end is stored, it is called again for the same run, maybe by another process: it
    /// must not do twice what it has done. Until then the run counts as running.
    fn before_end<'a>(
        &'a self,
        run: &'a RunRow,
        end: &'a RunEnd,
    ) -> BoxFuture<'a, Result<Vec<NewDelivery>, RunEndHookError>>;

    /// Is called after deliveries were stored. Not if the reply of the store got lost.
    fn deliveries_stored(&self) {}
}

/// Why a [`RunEndHook`] could not do its part now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a hook for the end of runs failed: {0}")]
pub struct RunEndHookError(pub String);
