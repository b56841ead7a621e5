//! Rules as data: retries, time limits, caching, what becomes of siblings. The machine consults them; no driver does.

use std::time::Duration;

use crate::ids::TaskId;

/// When and how often a failed node is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// How often it is run at most, the first time included.
    pub attempts_max: u32,
    /// The wait before the second attempt.
    pub initial_ms: u64,
    /// What the wait is multiplied with each time.
    pub factor: f64,
    /// The longest wait.
    pub wait_max_ms: u64,
    /// Up to this much is added to each wait, derived from the task, so that siblings do not retry in step.
    pub jitter_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            initial_ms: 500,
            factor: 2.0,
            wait_max_ms: 128_000,
            jitter_ms: 1_000,
        }
    }
}

impl RetryPolicy {
    /// So many attempts, with the default waits.
    pub fn attempts(attempts_max: u32) -> Self {
        Self {
            attempts_max,
            ..Self::default()
        }
    }

    /// With this wait before each further attempt, neither growing nor jittered.
    #[must_use]
    pub fn every(mut self, wait: Duration) -> Self {
        self.initial_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.factor = 1.0;
        self.jitter_ms = 0;
        self
    }

    /// Returns how long to wait after this many failed attempts, or none if no attempt is left.
    pub(crate) fn wait_ms(&self, task: TaskId, failed: u32) -> Option<u64> {
        if failed >= self.attempts_max {
            return None;
        }
        let grown = self.initial_ms as f64
            * self
                .factor
                .powi(i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX));
        // `as` saturates, which is what a limit wants.
        let wait = (grown as u64).min(self.wait_max_ms);
        let dice = u64::from_le_bytes(
            task.to_bytes()[..8]
                .try_into()
                .expect("eight of sixteen bytes"),
        );
        let jitter = dice
            .rotate_left(failed)
            .checked_rem(self.jitter_ms)
            .unwrap_or(0);
        Some(wait + jitter)
    }
}

/// How long one attempt of a node may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeout {
    /// In all.
    pub run_ms: Option<u64>,
    /// Without a sign of life: a step, an event, a heartbeat.
    pub idle_ms: Option<u64>,
}

impl Timeout {
    /// So long in all.
    pub fn run(limit: Duration) -> Self {
        Self {
            run_ms: Some(millis(limit)),
            idle_ms: None,
        }
    }

    /// So long without a sign of life.
    pub fn idle(limit: Duration) -> Self {
        Self {
            run_ms: None,
            idle_ms: Some(millis(limit)),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What becomes of the other tasks of a superstep when one has failed permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Siblings {
    /// They finish, their results are kept, and all failures are told together.
    #[default]
    Finish,
    /// They are dropped at once. Results that were there already are kept.
    Cancel,
}

/// How long the state of a subgraph lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SubgraphLife {
    /// As long as one invocation. It can pause and survives a crash.
    #[default]
    Invocation,
    /// As long as the thread: the next invocation finds the state of the last.
    Thread,
    /// Nothing of it is stored: it cannot pause, and a crash starts it again.
    Stateless,
}

/// Where a result may be found again: the key that a node's cache function gave, made the graph's and node's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheKey {
    /// Unique to graph, node and input.
    pub key: String,
    /// How long the result may be used; none for ever.
    pub ttl_ms: Option<u64>,
}
