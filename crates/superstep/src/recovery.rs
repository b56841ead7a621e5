//! Recovery: resuming the threads of processes that died, many at once, and none of a process that is alive.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use superstep_core::checkpoint::UnfinishedThread;
use superstep_core::error::OpenError;
use superstep_core::{Outcome, ThreadId, Timestamp};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::drive::{DriveError, RequestEnd};
use crate::runtime::Runtime;

/// A thread that was recovered, and how its run stopped.
type Recovered = (ThreadId, Result<Outcome, DriveError>);

/// One call of [`Runtime::recover`].
struct Recovery {
    runtime: Runtime,
    /// Threads with a lease, which their owner may renew.
    held: BTreeSet<UnfinishedThread>,
    ready: VecDeque<UnfinishedThread>,
    running: JoinSet<Recovered>,
    done: Vec<Recovered>,
    /// Threads that this call has taken on. What could not be recovered is still unfinished, and is not tried again.
    seen: BTreeSet<ThreadId>,
    /// Panic of a run that was recovered.
    panic: Option<Box<dyn Any + Send>>,
}

impl Runtime {
    /// Recovers every unfinished thread: those whose process died or was drained during a run, and paused ones with answers
    /// that no owner has seen. Their graphs must be registered. Returns when all of them have stopped, each with its outcome.
    ///
    /// Threads of living processes are left alone. A process that runs a thread renews its
    /// [lease](crate::RuntimeBuilder::lease); this method waits until the leases that it finds are renewed or over, so it
    /// resumes the threads of a process that died just now after at most the length of a lease. Any number of processes can
    /// call it at once: each thread is recovered by one of them, and left out of the results of the others.
    pub async fn recover(
        &self,
    ) -> Result<Vec<(ThreadId, Result<Outcome, DriveError>)>, DriveError> {
        Recovery::new(self).await?.run().await
    }

    /// Recovers unfinished threads in the background of this process, as [`Runtime::recover`] does, and returns once they are
    /// listed. A program that serves requests calls this when it comes up. What cannot be recovered is logged; a store that
    /// does not answer is an error here.
    pub async fn begin_recovery(&self) -> Result<(), DriveError> {
        let recovery = Recovery::new(self).await?;
        self.local.in_background(async move {
            match recovery.run().await {
                Ok(recovered) => {
                    for (thread, outcome) in recovered {
                        if let Err(error) = outcome {
                            tracing::warn!(%thread, ?error, "thread was not recovered");
                        }
                    }
                }
                Err(error) => tracing::error!(?error, "recovery stopped"),
            }
        });
        Ok(())
    }

    /// Returns the unfinished threads that this process does not drive: those that may be recovered, and those with a lease.
    async fn unfinished(
        &self,
    ) -> Result<(BTreeSet<UnfinishedThread>, BTreeSet<UnfinishedThread>), DriveError> {
        let mut all: Vec<UnfinishedThread> = Vec::new();
        loop {
            let after = all.last().map(|last| &last.thread);
            let page = self.local.store().unfinished(after, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            all.extend(page);
            if is_last {
                break;
            }
        }
        let others = (all.into_iter()).filter(|found| !self.local.is_driving(&found.thread));
        let now = self.now();
        Ok(others.partition(|found| found.lease.is_none_or(|lease| lease <= now)))
    }

    async fn recover_thread(&self, found: &UnfinishedThread) -> Result<Outcome, DriveError> {
        let thread = &found.thread;
        // The list may be old: an owner that was cut off from the store for a while has renewed its lease since.
        let (glance, now) = (self.local.store().glance(thread, None).await?, self.now());
        let is_held = |lease: Option<Timestamp>| {
            lease != found.lease && lease.is_some_and(|lease| lease > now)
        };
        if glance.is_none_or(|glance| glance.epoch != found.epoch || is_held(glance.lease)) {
            let thread = thread.clone();
            return Err(OpenError::Busy { thread }.into());
        }
        let graph = self.graph_of(thread).await?;
        let end = (self.driver()).recover(thread, &graph, found.epoch, &self.options);
        match end.await? {
            Some(RequestEnd {
                driven: Some(driven),
                ..
            }) => Ok(driven.0),
            end => {
                let loaded = self.loaded(thread).await?;
                let seq = end.map_or(loaded.head.seq, |end| end.seq);
                self.local.outcome_at(thread, seq, &loaded).await
            }
        }
    }
}

impl Recovery {
    async fn new(runtime: &Runtime) -> Result<Self, DriveError> {
        runtime.local.leases().end_given_up().await?;
        let (free, held) = runtime.unfinished().await?;
        let mut recovery = Self {
            runtime: runtime.clone(),
            held,
            ready: VecDeque::new(),
            running: JoinSet::new(),
            done: Vec::new(),
            seen: BTreeSet::new(),
            panic: None,
        };
        recovery.take_on(free);
        Ok(recovery)
    }

    async fn run(mut self) -> Result<Vec<Recovered>, DriveError> {
        let lease = self.runtime.local.leases().length();
        let ends = self.held.iter().filter_map(|held| held.lease).max();
        let now = self.runtime.now();
        let left = ends.map_or(0, |ends| ends.0.saturating_sub(now.0).unsigned_abs());
        // Not longer than a whole lease: a clock that is ahead must not keep a dead process alive.
        let over = Instant::now() + Duration::from_millis(left).min(lease);
        let mut look = over.min(Instant::now() + lease / 3);
        let mut failed = None;
        loop {
            self.start();
            tokio::select! {
                Some(ended) = self.running.join_next() => self.note(ended),
                () = tokio::time::sleep_until(look), if !self.held.is_empty() => {
                    let is_over = Instant::now() >= over;
                    look = over.min(Instant::now() + lease / 3);
                    let (free, still_held) = match self.runtime.unfinished().await {
                        Ok(found) => found,
                        // The runs in progress are not cut off.
                        Err(error) => {
                            failed = Some(error);
                            self.held.clear();
                            continue;
                        }
                    };
                    // A living owner renews its lease, which is another one then.
                    self.held.retain(|held| still_held.contains(held));
                    self.take_on(free);
                    if is_over {
                        let over = std::mem::take(&mut self.held);
                        self.take_on(over);
                    }
                }
                else => break,
            }
        }
        if let Some(panic) = self.panic {
            std::panic::resume_unwind(panic);
        }
        self.done.sort_by(|(a, _), (b, _)| a.cmp(b));
        match failed {
            Some(error) => Err(error),
            None => Ok(self.done),
        }
    }

    fn take_on(&mut self, threads: BTreeSet<UnfinishedThread>) {
        for found in threads {
            if self.seen.insert(found.thread.clone()) {
                self.ready.push_back(found);
            }
        }
    }

    fn start(&mut self) {
        while self.running.len() < RECOVERIES_MAX
            && let Some(found) = self.ready.pop_front()
        {
            let runtime = self.runtime.clone();
            self.running.spawn(async move {
                let outcome = runtime.recover_thread(&found).await;
                (found.thread, outcome)
            });
        }
    }

    fn note(&mut self, ended: Result<Recovered, JoinError>) {
        match ended {
            Ok((
                thread,
                Err(DriveError::Open(OpenError::Busy { .. } | OpenError::NothingToRun { .. })),
            )) => {
                tracing::debug!(%thread, "another process recovered the thread first, or still runs it");
            }
            Ok(recovered) => self.done.push(recovered),
            // Passed on once the others have stopped.
            Err(error) if error.is_panic() => self.panic = Some(error.into_panic()),
            // Only dropping the recovery aborts its tasks.
            Err(_) => {}
        }
    }
}

/// Number of threads that one call of [`Runtime::recover`] drives at once.
const RECOVERIES_MAX: usize = 256;
/// Number of threads that are listed with one call to the store.
const PAGE: u32 = 1_000;
