//! Deadlines of interrupts: what is overdue is answered as its interrupt specifies, and its thread resumes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use superstep_core::checkpoint::{Answer, OverdueCursor};
use superstep_core::driver::ThreadRequest;
use superstep_core::error::CheckpointError;
use superstep_core::run::OpenInterrupt;
use superstep_core::{ThreadId, Timestamp};
use tokio::task::JoinSet;

use crate::__private::lock;
use crate::drive::DriveError;
use crate::runtime::{Runtime, read_interrupts};

impl Runtime {
    /// Answers every interrupt whose deadline has passed with the answer it specifies, and resumes the threads, up to 64 at once.
    /// Returns how many it answered when all of them have stopped. A thread that cannot resume does not keep the others waiting;
    /// the first error is returned at the end.
    ///
    /// A call leaves out the threads that another call of this runtime is working on. A program that calls this method
    /// again while a call is in progress therefore answers in time, however long the nodes of one thread take.
    pub async fn expire_interrupts(&self) -> Result<usize, DriveError> {
        let now = self.now();
        let due = self.interrupts_to_expire(now).await?;
        let mut waiting = self.expiring.enter(due).into_iter();
        let mut resuming = JoinSet::new();
        let mut expired = 0;
        let mut failure = None;
        loop {
            while resuming.len() < RESUMING_MAX
                && let Some(thread) = waiting.next()
            {
                let runtime = self.clone();
                resuming.spawn(async move { runtime.expire_thread(thread, now).await });
            }
            match resuming.join_next().await {
                Some(Ok(Ok(answered))) => expired += answered,
                Some(Ok(Err(error))) => failure = failure.or(Some(error)),
                Some(Err(panicked)) => std::panic::resume_unwind(panicked.into_panic()),
                None => return failure.map_or(Ok(expired), Err),
            }
        }
    }

    /// Lists the overdue interrupts that specify what happens at their deadline. The others stay open, however many they are, and must
    /// not fill the batch.
    async fn interrupts_to_expire(&self, now: Timestamp) -> Result<Vec<OpenInterrupt>, DriveError> {
        let mut due = Vec::new();
        let mut after: Option<OverdueCursor> = None;
        while due.len() < BATCH {
            let store = self.local.store();
            let page = store.overdue(now, after.as_ref(), PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            let page = read_interrupts(page)?;
            after = page.last().map(|open| OverdueCursor {
                deadline: open.interrupt.deadline.unwrap_or(now),
                thread: open.row.thread.clone(),
                id: open.row.id,
            });
            let expires = |open: &OpenInterrupt| open.interrupt.answer_at_deadline().is_some();
            due.extend(page.into_iter().filter(expires));
            if is_last {
                break;
            }
        }
        Ok(due)
    }

    /// Answers the overdue interrupts of a thread one after another, because each answer resumes it.
    async fn expire_thread(
        &self,
        mut thread: ExpiringThread,
        now: Timestamp,
    ) -> Result<usize, DriveError> {
        let mut expired = 0;
        for open in std::mem::take(&mut thread.due) {
            expired += usize::from(self.expire(open, now).await?);
        }
        Ok(expired)
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

/// The threads that calls of [`Runtime::expire_interrupts`] are working on.
#[derive(Clone, Default)]
pub(crate) struct ExpiringThreads {
    threads: Arc<Mutex<HashSet<ThreadId>>>,
}

impl ExpiringThreads {
    /// Takes the threads of these interrupts, without those that another call has taken. Keeps the order of the threads.
    fn enter(&self, due: Vec<OpenInterrupt>) -> Vec<ExpiringThread> {
        let mut taken = lock(&self.threads);
        let mut entered: Vec<ExpiringThread> = Vec::new();
        let mut index: HashMap<ThreadId, usize> = HashMap::new();
        for open in due {
            let id = &open.row.thread;
            if let Some(at) = index.get(id) {
                entered[*at].due.push(open);
            } else if taken.insert(id.clone()) {
                index.insert(id.clone(), entered.len());
                entered.push(ExpiringThread {
                    id: id.clone(),
                    due: vec![open],
                    expiring: self.clone(),
                });
            }
        }
        entered
    }
}

/// A thread with its overdue interrupts. Other calls may take the thread again when this value is dropped.
struct ExpiringThread {
    id: ThreadId,
    due: Vec<OpenInterrupt>,
    expiring: ExpiringThreads,
}

impl Drop for ExpiringThread {
    fn drop(&mut self) {
        lock(&self.expiring.threads).remove(&self.id);
    }
}

/// Number of interrupts beyond which a call of [`Runtime::expire_interrupts`] looks for no more.
const BATCH: usize = 10_000;
/// Number of interrupts that are read at once.
const PAGE: u32 = 1_000;
/// Number of threads that one call resumes at once.
const RESUMING_MAX: usize = 64;
