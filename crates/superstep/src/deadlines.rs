//! Deadlines of interrupts: what is overdue is answered as its interrupt specifies, and its thread resumes.

mod scan;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};

use superstep_core::checkpoint::Answer;
use superstep_core::driver::ThreadRequest;
use superstep_core::error::CheckpointError;
use superstep_core::run::OpenInterrupt;
use superstep_core::{ThreadId, Timestamp};
use tokio::task::JoinSet;

pub use self::scan::DeadlineScan;
use crate::__private::lock;
use crate::drive::DriveError;
use crate::runtime::Runtime;

impl Runtime {
    /// Answers the interrupts whose deadline has passed with the answers they specify, and resumes the threads, up to 64 at once and
    /// 10,000 in all. Returns how many it answered when all of them have stopped. A thread that cannot resume and an interrupt that
    /// cannot be read do not keep the others waiting; the first error is returned at the end.
    ///
    /// A call leaves out the threads that another call of this runtime is working on. A program that calls this method
    /// again while a call is in progress therefore answers in time, however long the nodes of one thread take. A program that does
    /// so for as long as it runs scans less with a [`DeadlineScan`].
    pub async fn expire_interrupts(&self) -> Result<usize, DriveError> {
        let found = DeadlineScan::new(self).scan(TAKEN_MAX).await?;
        let mut failure = found.unreadable.into_iter().next().map(|row| row.error);
        let mut waiting = found.threads.into_iter();
        let mut resuming = JoinSet::new();
        let mut expired = 0;
        loop {
            while resuming.len() < RESUMING_MAX
                && let Some(thread) = waiting.next()
            {
                resuming.spawn(thread.expire());
            }
            match resuming.join_next().await {
                Some(Ok(Ok(answered))) => expired += answered,
                Some(Ok(Err(error))) => failure = failure.or(Some(error)),
                Some(Err(panicked)) => std::panic::resume_unwind(panicked.into_panic()),
                None => return failure.map_or(Ok(expired), Err),
            }
        }
    }

    /// Answers an overdue interrupt. Returns false if it specifies no answer, or if a person answered first.
    async fn expire(&self, open: OpenInterrupt, now: Timestamp) -> Result<bool, DriveError> {
        let OpenInterrupt { interrupt, row } = open;
        let Some(body) = interrupt.answer_at_deadline() else {
            return Ok(false);
        };
        let answer = Answer {
            interrupt: interrupt.id,
            body,
            by: "deadline".to_owned(),
            at: now,
        };
        let graph = self.graph_of(&row.thread).await?;
        let request = ThreadRequest::Answer(vec![answer]);
        let resumed = self
            .driver
            .execute(&row.thread, &graph, request, &self.options)
            .await;
        match resumed {
            Ok(_) => Ok(true),
            Err(DriveError::Checkpoint(CheckpointError::NotOpen { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The threads whose overdue interrupts this runtime is answering.
#[derive(Clone, Default)]
pub(crate) struct ExpiringThreads {
    threads: Arc<Mutex<HashSet<ThreadId>>>,
}

/// A thread with overdue interrupts, found by a [`DeadlineScan`]. No other scan of its runtime finds the thread before this value is
/// dropped.
pub struct OverdueThread {
    id: ThreadId,
    due: Vec<OpenInterrupt>,
    /// When they were found.
    now: Timestamp,
    runtime: Runtime,
}

impl OverdueThread {
    /// Takes a thread; `None` if it is taken.
    fn take(runtime: &Runtime, first: OpenInterrupt, now: Timestamp) -> Option<Self> {
        let id = first.row.thread.clone();
        let is_free = lock(&runtime.expiring.threads).insert(id.clone());
        is_free.then(|| Self {
            id,
            due: vec![first],
            now,
            runtime: runtime.clone(),
        })
    }

    /// Returns the id of the thread.
    pub fn thread(&self) -> &ThreadId {
        &self.id
    }

    /// Answers the interrupts one after another, because each answer resumes the thread. Returns how many it answered when the thread
    /// has stopped, and ends at the first error.
    pub async fn expire(mut self) -> Result<usize, DriveError> {
        let mut expired = 0;
        for open in std::mem::take(&mut self.due) {
            expired += usize::from(self.runtime.expire(open, self.now).await?);
        }
        Ok(expired)
    }
}

impl Drop for OverdueThread {
    fn drop(&mut self) {
        lock(&self.runtime.expiring.threads).remove(&self.id);
    }
}

impl fmt::Debug for OverdueThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverdueThread")
            .field("id", &self.id)
            .field("due", &self.due.len())
            .finish_non_exhaustive()
    }
}

/// Number of threads that one call of [`Runtime::expire_interrupts`] resumes.
const TAKEN_MAX: usize = 10_000;
/// Number of threads that one call resumes at once.
const RESUMING_MAX: usize = 64;
