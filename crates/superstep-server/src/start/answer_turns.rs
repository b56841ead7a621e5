//! Requests that answer interrupts of one thread take turns, so that each sees the answers that were accepted before it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use superstep::__private::lock;
use superstep::ThreadId;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

type Turns = BTreeMap<ThreadId, Arc<AsyncMutex<()>>>;

/// Whose turn it is on which thread, in this process.
#[derive(Debug, Default)]
pub(crate) struct AnswerTurns(Arc<Mutex<Turns>>);

/// The turn of a request on a thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct AnswerTurn {
    turns: Arc<Mutex<Turns>>,
    thread: ThreadId,
    held: Option<OwnedMutexGuard<()>>,
}

impl AnswerTurns {
    /// Waits until the requests that came before have been stored or refused.
    pub(crate) async fn take(&self, thread: &ThreadId) -> AnswerTurn {
        // Before the wait, so that a request that is dropped while it waits is cleaned up as well.
        let mut turn = AnswerTurn {
            turns: self.0.clone(),
            thread: thread.clone(),
            held: None,
        };
        let own = lock(&self.0).entry(thread.clone()).or_default().clone();
        turn.held = Some(own.lock_owned().await);
        turn
    }
}

impl Drop for AnswerTurn {
    fn drop(&mut self) {
        // The guard counts as one that waits.
        self.held = None;
        let mut turns = lock(&self.turns);
        // Those who wait were counted under this lock.
        let is_last = |own: &Arc<AsyncMutex<()>>| Arc::strong_count(own) == 1;
        if turns.get(&self.thread).is_some_and(is_last) {
            turns.remove(&self.thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn one_thread_has_one_turn_and_leaves_nothing_behind() {
        let turns = AnswerTurns::default();
        let [a, b] = ["a", "b"].map(|name| ThreadId::new(name).unwrap());
        let first = turns.take(&a).await;
        let other = turns.take(&b).await;
        let pause = Duration::from_millis(10);
        let second = tokio::time::timeout(pause, turns.take(&a)).await;
        assert!(second.is_err(), "two turns on one thread");
        drop(first);
        drop(turns.take(&a).await);
        drop(other);
        assert_eq!(lock(&turns.0).len(), 0);
    }
}
