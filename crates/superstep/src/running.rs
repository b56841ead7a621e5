//! Tasks in flight: starts, times and drops them. It has no rules of its own; each task carries its limits.

mod lanes;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use superstep_core::checkpoint::{BoxFuture, CheckpointResult, RecordWrite};
use superstep_core::driver::{LiveEvent, NodeCache, NodeHost};
use superstep_core::error::CheckpointError;
use superstep_core::graph::{CacheKey, Timeout};
use superstep_core::node::{Execution, Pulse, Task, TaskEnd};
use superstep_core::store::Store;
use superstep_core::{Epoch, TaskId, ThreadId, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::{Instrument, Span};

use crate::clock::Clock;
use crate::live_bus::{LiveBus, LiveMessage};
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::spans;

use self::lanes::{EndedTask, Lanes};

/// The tasks of one run. Dropping this stops them all.
pub(crate) struct Running {
    lanes: Lanes,
    /// Tasks that have ended and were not returned yet: they ended without waiting, or together with others.
    ended: VecDeque<EndedTask>,
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
            ended: VecDeque::new(),
            surroundings,
            superstep: Span::none(),
        }
    }

    pub(crate) fn start(&mut self, tasks: Vec<Task>) {
        let is_idle = self.lanes.in_flight() == 0;
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
                TaskStart::Ended(end) => self.ended.push_back((id, end)),
                TaskStart::Waits(attempt) => self.lanes.spawn(id, async move {
                    around.await_attempt(attempt).instrument(span).await
                }),
                TaskStart::Later(task) => {
                    self.lanes.spawn(id, around.run(task).instrument(span));
                }
            }
        }
    }

    pub(crate) fn drop_tasks(&mut self, ids: &[TaskId]) {
        self.lanes.drop_tasks(ids);
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
        let timer = wait_until(until, &self.surroundings.clock);
        let relief = self.lanes.relieve();
        // Queued at once, so that dropping the future that waits for the next end does not lose it.
        tokio::select! {
            ended = self.lanes.next() => self.ended.push_back(ended),
            () = timer => return None,
            never = relief => match never {},
        }
        if self.lanes.in_flight() >= CROWD {
            // Lets other tasks that are about to end do so now, so that they are returned together.
            tokio::task::yield_now().await;
        }
        while let Some(ended) = self.lanes.try_next() {
            self.ended.push_back(ended);
        }
        self.ended.pop_front()
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
    Ended(TaskEnd),
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
        match Pin::new(&mut attempt.execution).poll(&mut nobody) {
            Poll::Ready(end) => TaskStart::Ended(end),
            Poll::Pending => TaskStart::Waits(attempt),
        }
    }

    pub(crate) async fn run(self: Arc<Self>, task: Task) -> TaskEnd {
        let permit = self.permits.clone().acquire_owned().await.ok();
        let key = task.cache().cloned();
        if let Some(key) = &key {
            // A cache that does not answer counts as a miss.
            if let Ok(Some(bytes)) = self.cache.get(&key.key, self.clock.now()).await {
                return TaskEnd::Cached(bytes);
            }
        }
        let end = self.await_attempt(self.attempt(task, permit)).await;
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

    async fn await_attempt(&self, attempt: Attempt) -> TaskEnd {
        let Attempt {
            execution, limit, ..
        } = attempt;
        let pulse = execution.pulse();
        let mut is_lost = self.lost.subscribe();
        tokio::select! {
            biased;
            // Checked first, so that no node starts another effect for a thread that this process no longer owns. The driver
            // drops the future.
            _ = lost(&mut is_lost) => std::future::pending().await,
            end = execution => end,
            () = sleep_ms(limit.run_ms) => TaskEnd::TimedOut,
            () = idle_ms(limit.idle_ms, &pulse) => TaskEnd::TimedOut,
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
