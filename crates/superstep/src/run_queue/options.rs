//! What a program can say about a queue, and what it can ask it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::RunEndHook;

/// Options of a [`RunQueue`](crate::RunQueue).
#[derive(Clone)]
pub struct QueueOptions {
    pub(super) runs_max: usize,
    pub(super) tenant_runs_max: Option<usize>,
    pub(super) end_hooks: Vec<Arc<dyn RunEndHook>>,
}

impl QueueOptions {
    /// Creates options for a queue that executes at most this many runs at once; at least 1.
    pub fn new(runs_max: usize) -> Self {
        Self {
            runs_max: runs_max.max(1),
            tenant_runs_max: None,
            end_hooks: Vec::new(),
        }
    }

    /// Sets how many runs of one tenant are executed at once; at least 1. Further ones wait, and do not delay those of other
    /// tenants. Runs that are submitted while others are taken from the queue may exceed it by a few. Default: no limit.
    #[must_use]
    pub fn tenant_runs_max(mut self, tenant_runs_max: usize) -> Self {
        self.tenant_runs_max = Some(tenant_runs_max.max(1));
        self
    }

    /// Calls a hook before the end of each run is stored, after those that were added before it. Default: none.
    #[must_use]
    pub fn end_hook(mut self, hook: Arc<dyn RunEndHook>) -> Self {
        self.end_hooks.push(hook);
        self
    }
}

impl fmt::Debug for QueueOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOptions")
            .field("runs_max", &self.runs_max)
            .field("tenant_runs_max", &self.tenant_runs_max)
            .finish_non_exhaustive()
    }
}

/// How the queue of a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueHealth {
    /// Number of runs that the process executes.
    pub executing: usize,
    /// Whether the queue takes no further runs.
    pub is_draining: bool,
    /// Time since the queue last looked for runs with room for them, began one or ended one.
    pub since_progress: Duration,
}
