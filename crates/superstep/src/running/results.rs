//! Records the results of tasks: those that ended together in one call of the store.
//!
//! At most one batch of a run is being stored. What ends meanwhile waits, and is the next batch; a result that finds none being
//! stored is sent at once, so a lone task waits for nothing. A task has ended for the state machine when the store has
//! acknowledged its record, and not before.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use superstep_core::TaskId;
use superstep_core::checkpoint::{CheckpointResult, RecordBatch};
use superstep_core::error::CheckpointError;
use superstep_core::node::UnrecordedResult;
use tokio::task::JoinSet;

use super::Surroundings;
use super::lanes::RecordedEnd;

/// The results of one run that are not recorded yet. Dropping this stops the call of the store.
pub(super) struct ResultRecorder {
    around: Arc<Surroundings>,
    waiting: VecDeque<UnrecordedResult>,
    /// Results that are being stored, in the order of their records; `None` for tasks that were dropped meanwhile.
    batch: Vec<Option<UnrecordedResult>>,
    /// The call that stores them. `None` until one has to wait for its store.
    storing: Option<JoinSet<Stored>>,
}

/// What the store returns for a batch.
type Stored = CheckpointResult<Vec<Option<Vec<u8>>>>;

/// Largest number of records in a batch, which bounds how long the first one waits for the last.
const BATCH_MAX: usize = 256;
/// Largest size of a batch in bytes, unless a single record is larger.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

impl ResultRecorder {
    pub(super) fn new(around: Arc<Surroundings>) -> Self {
        Self {
            around,
            waiting: VecDeque::new(),
            batch: Vec::new(),
            storing: None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.batch.is_empty()
    }

    pub(super) fn add(&mut self, result: UnrecordedResult) {
        self.waiting.push_back(result);
    }

    /// Forgets the results of these tasks. Those that are being stored may be stored.
    pub(super) fn drop_tasks(&mut self, is_dropped: impl Fn(TaskId) -> bool) {
        self.waiting.retain(|result| !is_dropped(result.task()));
        for slot in &mut self.batch {
            slot.take_if(|result| is_dropped(result.task()));
        }
    }

    /// Stores what waits, unless a batch is being stored. Adds the ends of tasks whose records the store acknowledged at once.
    pub(super) fn start(&mut self, ended: &mut VecDeque<RecordedEnd>) {
        while self.batch.is_empty() && !self.waiting.is_empty() {
            let batch = self.take_batch();
            let store = self.around.store.clone();
            let mut storing = Box::pin(async move { store.record_all(&batch).await });
            // Most stores answer at once or after they were polled from their own side. A call that waits is polled again by its
            // new owner, so no wake-up is lost. It is a task of its own, because nobody polls this while the driver commits, and a
            // store may let the commit wait for the call.
            let mut nobody = Context::from_waker(Waker::noop());
            match storing.as_mut().poll(&mut nobody) {
                Poll::Ready(stored) => self.finish(stored, ended),
                Poll::Pending => {
                    self.storing.get_or_insert_default().spawn(storing);
                }
            }
        }
    }

    /// Returns what the store answered to the batch; never, if none is being stored. Cancel-safe.
    pub(super) async fn stored(&mut self) -> Stored {
        let Some(storing) = &mut self.storing else {
            return pending().await;
        };
        match storing.join_next().await {
            Some(Ok(stored)) => stored,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The tokio runtime shuts down.
            Some(Err(_)) | None => pending().await,
        }
    }

    /// Ends the tasks of the batch.
    pub(super) fn finish(&mut self, stored: Stored, ended: &mut VecDeque<RecordedEnd>) {
        let results = self.batch.drain(..);
        let stored = match stored {
            Ok(others) if others.len() != results.len() => Err(CheckpointError::store(format!(
                "it returned {} results for {} records",
                others.len(),
                results.len()
            ))),
            stored => stored,
        };
        match stored {
            Ok(others) => {
                let kept = results.zip(others);
                let kept = kept.filter_map(|(result, other)| Some((result?, other)));
                ended.extend(kept.map(|(result, other)| (result.task(), result.recorded(other))));
            }
            // Nothing of this run counts any more, and its driver stops it.
            Err(CheckpointError::Fenced { epoch, .. }) => {
                drop(results);
                self.around.lost.send_replace(Some(epoch));
            }
            Err(error) => {
                let failed = results.flatten();
                ended.extend(failed.map(|result| (result.task(), result.refused(&error))));
            }
        }
    }

    /// Stops the call of the store, and waits until it has stopped.
    pub(super) async fn stop(&mut self) {
        if let Some(mut storing) = self.storing.take() {
            storing.shutdown().await;
        }
    }

    /// Takes the first result, and as many after it as fit.
    fn take_batch(&mut self) -> RecordBatch {
        let mut records = Vec::with_capacity(self.waiting.len().min(BATCH_MAX));
        let (mut bytes, mut epoch) = (0, None);
        while let Some(next) = self.waiting.front() {
            let fits = records.len() < BATCH_MAX && bytes + next.bytes() <= BATCH_BYTES_MAX;
            let shares = *epoch.get_or_insert(next.epoch()) == next.epoch();
            if !(records.is_empty() || fits && shares) {
                break;
            }
            bytes += next.bytes();
            let result = self.waiting.pop_front();
            self.batch.extend(result.map(|mut result| {
                records.push(result.take_record());
                Some(result)
            }));
        }
        RecordBatch {
            thread: self.around.thread.clone(),
            epoch: epoch.unwrap_or_default(),
            records,
        }
    }
}
