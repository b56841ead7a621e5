//! Tasks in flight: starts, times and drops them. It has no rules of its own; each task carries its limits.

mod lanes;
mod results;

use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use superstep_core::checkpoint::{BoxFuture, CheckpointResult, RecordWrite};
use superstep_core::driver::{LiveEvent, NodeCache, NodeHost};
use superstep_core::error::CheckpointError;
use superstep_core::graph::{CacheKey, Timeout};
use superstep_core::node::{Execution, ExecutionEnd, Pulse, Task, TaskEnd};
use superstep_core::store::Store;
use superstep_core::{Epoch, TaskId, ThreadId, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::{Instrument, Span};

use crate::clock::Clock;
use crate::live_bus::{LiveBus, LiveMessage};
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::spans;

use self::lanes::{EndedTask, Lanes, RecordedEnd};
use self::results::ResultRecorder;

/// The tasks of one run. Dropping this stops them all.
pub(crate) struct Running {
    lanes: Lanes,
    /// Tasks that have ended and whose results are not recorded yet.
    results: ResultRecorder,
    /// Tasks that have ended and were not returned yet: they ended without waiting, or together with others.
    ended: VecDeque<RecordedEnd>,
    surroundings: Arc<Surroundings>,
    /// Live span of the current superstep.
    superstep: Span,
}

/// What every task of a run is started with.
pub(crate) struct Surroundings {
    pub(crate) store: RetryingCheckpointer,
    pub(crate) cache: Arc<dyn NodeCache>,
    pub(crate) clock: Clock,
    /// Limits how many tasks of this runtime run at once.
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) live_bus: Arc<dyn LiveBus>,
    pub(crate) long_term: Option<Arc<dyn Store>>,
    pub(crate) thread: ThreadId,
    /// Epoch under which the store refused a record: another process owns the thread, and this one must stop its nodes.
    pub(crate) lost: watch::Sender<Option<Epoch>>,
}

/// Returns when the thread is lost to another owner, with the epoch that was refused.
pub(crate) async fn lost(lost: &mut watch::Receiver<Option<Epoch>>) -> Epoch {
    match lost.wait_for(Option::is_some).await.map(|epoch| *epoch) {
        Ok(Some(epoch)) => epoch,
        // The sender is gone, so the thread will never be reported as lost.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

impl Running {
    pub(crate) fn new(surroundings: Arc<Surroundings>) -> Self {
        Self {
            lanes: Lanes::new(surroundings.clone()),
            results: ResultRecorder::new(surroundings.clone()),
            ended: VecDeque::new(),
            surroundings,
            superstep: Span::none(),
        }
    }

    pub(crate) fn start(&mut self, tasks: Vec<Task>) {
        let is_idle = self.lanes.in_flight() == 0 && self.results.is_idle();
        let is_watched = spans::are_wanted();
        if is_watched
            && is_idle
            && self.ended.is_empty()
            && let Some(task) = tasks.first()
        {
            self.superstep = spans::of_superstep(task);
        }
        let superstep = self.superstep.clone();
        let with_span = move |task: Task| {
            let span = match is_watched {
                true => spans::of_node(&task, &superstep),
                false => Span::none(),
            };
            (task, span)
        };
        // A single task starts on the current OS thread: many tasks never wait, and need no switch to another one.
        let alone = tasks.len() == 1 && is_idle;
        let are_many = tasks.len() >= CROWD;
        let tasks = tasks.into_iter().map(with_span);
        if are_many {
            self.lanes.queue(tasks.collect());
            return;
        }
        for (task, span) in tasks {
            let id = task.id();
            let around = self.surroundings.clone();
            let begun = match alone {
                true => span.in_scope(|| around.begin(task)),
                false => TaskStart::Later(task),
            };
            match begun {
                TaskStart::Ended(end) => self.take((id, end)),
                TaskStart::Waits(attempt) => self.lanes.spawn(id, async move {
                    around.await_attempt(attempt).instrument(span).await
                }),
                TaskStart::Later(task) => {
                    self.lanes
                        .spawn(id, around.run_unrecorded(task).instrument(span));
                }
            }
        }
    }

    fn take(&mut self, (id, end): EndedTask) {
        match end {
            ExecutionEnd::Ended(end) => self.ended.push_back((id, end)),
            ExecutionEnd::Unrecorded(result) => self.results.add(result),
        }
    }

    pub(crate) fn drop_tasks(&mut self, ids: &[TaskId]) {
        self.lanes.drop_tasks(ids);
        let ids: BTreeSet<TaskId> = ids.iter().copied().collect();
        // A dropped task may start again: what it came to before must not be taken for its new end.
        self.ended.retain(|(id, _)| !ids.contains(id));
        self.results.drop_tasks(|id| ids.contains(&id));
    }

    /// Whether an ended task is ready to be returned.
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Returns the next task that ends, or `None` once the time has passed.
    pub(crate) async fn next_until(
        &mut self,
        until: Option<Timestamp>,
    ) -> Option<(TaskId, TaskEnd)> {
        if let Some(ended) = self.next_ended_already().await {
            return Some(ended);
        }
        let clock = self.surroundings.clock.clone();
        let mut timer = pin!(wait_until(until, &clock));
        let mut relief = pin!(self.lanes.relieve());
        loop {
            self.results.start(&mut self.ended);
            if let Some(ended) = self.ended.pop_front() {
                return Some(ended);
            }
            // Queued at once, so that dropping the future that waits for the next end does not lose it.
            tokio::select! {
                ended = self.lanes.next() => self.take(ended),
                stored = self.results.stored() => self.results.finish(stored, &mut self.ended),
                () = &mut timer => return None,
                never = &mut relief => match never {},
            }
            if self.lanes.in_flight() >= CROWD {
                // Lets other tasks that are about to end do so now, so that they are recorded and returned together.
                tokio::task::yield_now().await;
            }
            while let Some(ended) = self.lanes.try_next() {
                self.take(ended);
            }
        }
    }

    /// Returns the next task that has already ended.
    pub(crate) async fn next_ended_already(&mut self) -> Option<(TaskId, TaskEnd)> {
        // A long chain of such tasks must not starve other work on this OS thread.
        tokio::task::coop::consume_budget().await;
        self.ended.pop_front()
    }

    /// Stops all tasks and waits until they have stopped: everything they held is dropped when this returns.
    pub(crate) async fn stop(&mut self) {
        self.lanes.stop().await;
        self.results.stop().await;
    }
}

/// Number of tasks from which they share lanes, and from which several ends are collected at once.
const CROWD: usize = 16;

async fn wait_until(until: Option<Timestamp>, clock: &Clock) {
    let Some(until) = until else {
        return std::future::pending().await;
    };
    let wait = u64::try_from(until.0.saturating_sub(clock.now().0)).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(wait)).await;
}

/// A started task with its permit to run.
struct Attempt {
    execution: Execution,
    limit: Timeout,
    /// `None` only if the semaphore is closed.
    _permit: Option<OwnedSemaphorePermit>,
}

/// What became of a task that was to start on the spot.
enum TaskStart {
    Ended(ExecutionEnd),
    /// The task waits for something.
    Waits(Attempt),
    /// The task could not start without waiting for a permit or the cache.
    Later(Task),
}

impl Surroundings {
    /// Starts a task on the spot, if it need not wait for a permit or for the cache.
    fn begin(self: &Arc<Self>, task: Task) -> TaskStart {
        let permit = self.permits.clone().try_acquire_owned();
        let (Ok(permit), None) = (permit, task.cache()) else {
            return TaskStart::Later(task);
        };
        let mut attempt = self.attempt(task, Some(permit));
        // If the task waits, its new owner polls it again, so no wake-up is lost.
        let mut nobody = Context::from_waker(Waker::noop());
        match attempt.execution.poll_unrecorded(&mut nobody) {
            Poll::Ready(end) => TaskStart::Ended(end),
            Poll::Pending => TaskStart::Waits(attempt),
        }
    }

    /// Runs a task. Its result is left to the caller to record, unless it goes into the cache.
    async fn run_unrecorded(self: Arc<Self>, task: Task) -> ExecutionEnd {
        if task.cache().is_some() {
            return ExecutionEnd::Ended(self.run(task).await);
        }
        let permit = self.permits.clone().acquire_owned().await.ok();
        self.await_attempt(self.attempt(task, permit)).await
    }

    /// Runs a task, and records its result.
    pub(crate) async fn run(self: Arc<Self>, task: Task) -> TaskEnd {
        let permit = self.permits.clone().acquire_owned().await.ok();
        let key = task.cache().cloned();
        if let Some(key) = &key {
            // A cache that does not answer counts as a miss.
            if let Ok(Some(bytes)) = self.cache.get(&key.key, self.clock.now()).await {
                return TaskEnd::Cached(bytes);
            }
        }
        let end = {
            let Attempt {
                execution,
                limit,
                _permit,
            } = self.attempt(task, permit);
            let pulse = execution.pulse();
            self.within(limit, pulse, execution).await
        };
        if let (Some(key), TaskEnd::Done(output)) = (&key, &end) {
            self.keep(key, output.to_cache()).await;
        }
        end
    }

    fn attempt(self: &Arc<Self>, task: Task, permit: Option<OwnedSemaphorePermit>) -> Attempt {
        Attempt {
            limit: task.timeout(),
            execution: task.execute(self.clone()),
            _permit: permit,
        }
    }

    async fn await_attempt(&self, attempt: Attempt) -> ExecutionEnd {
        let Attempt {
            mut execution,
            limit,
            _permit,
        } = attempt;
        let pulse = execution.pulse();
        let end = poll_fn(|cx| execution.poll_unrecorded(cx));
        self.within(limit, pulse, end).await
    }

    /// Awaits the end of an attempt within its limits.
    async fn within<T: From<TaskEnd>>(
        &self,
        limit: Timeout,
        pulse: Pulse,
        end: impl Future<Output = T>,
    ) -> T {
        let mut is_lost = self.lost.subscribe();
        tokio::select! {
            biased;
            // Checked first, so that no node starts another effect for a thread that this process no longer owns. The driver
            // drops the future.
            _ = lost(&mut is_lost) => std::future::pending().await,
            end = end => end,
            () = sleep_ms(limit.run_ms) => TaskEnd::TimedOut.into(),
            () = idle_ms(limit.idle_ms, &pulse) => TaskEnd::TimedOut.into(),
        }
    }

    async fn keep(&self, key: &CacheKey, bytes: Vec<u8>) {
        let expires = key.ttl_ms.map(|ttl| self.clock.now().plus_ms(ttl));
        if let Err(error) = self.cache.put(&key.key, bytes, expires).await {
            tracing::warn!(key = key.key, %error, "a result was not kept in the node cache");
        }
    }
}

async fn sleep_ms(ms: Option<u64>) {
    match ms {
        Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        None => std::future::pending().await,
    }
}

/// Returns when the task has shown no sign of life for this long.
async fn idle_ms(ms: Option<u64>, pulse: &Pulse) {
    let Some(ms) = ms else {
        return std::future::pending().await;
    };
    loop {
        let before = pulse.count();
        tokio::time::sleep(Duration::from_millis(ms)).await;
        if pulse.count() == before {
            return;
        }
    }
}

/// Through this, a running node reaches its driver.
impl NodeHost for Surroundings {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        let (store, lost) = (self.store.clone(), self.lost.clone());
        Box::pin(async move {
            match store.record(&write).await {
                // Nothing the node could still do would count, so it never continues, however it handles errors.
                Err(CheckpointError::Fenced { epoch, .. }) => {
                    lost.send_replace(Some(epoch));
                    std::future::pending().await
                }
                stored => stored,
            }
        })
    }

    fn emit(&self, event: LiveEvent) {
        self.live_bus
            .publish(&self.thread, LiveMessage::Live(event));
    }

    fn store(&self) -> Option<(Arc<dyn Store>, Timestamp)> {
        Some((self.long_term.clone()?, self.clock.now()))
    }
}
