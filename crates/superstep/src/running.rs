//! Tasks under way: started, timed, dropped. No rule lives here; each task says what it wants.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use superstep_core::checkpoint::{BoxFuture, CheckpointResult, RecordWrite};
use superstep_core::driver::{Door, LiveEvent, NodeCache};
use superstep_core::error::CheckpointError;
use superstep_core::graph::CacheKey;
use superstep_core::node::{Pulse, Task, TaskEnd};
use superstep_core::{Epoch, TaskId, Timestamp};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::clock::Clock;
use crate::events::Notice;
use crate::patient::Patient;

/// The tasks of one run. Dropping it stops them all.
pub(crate) struct Running {
    tasks: JoinSet<(TaskId, TaskEnd)>,
    handles: BTreeMap<TaskId, AbortHandle>,
    /// Those that ended without ever having waited.
    ended: VecDeque<(TaskId, TaskEnd)>,
    surroundings: Arc<Surroundings>,
}

/// What every task of a run is started with.
pub(crate) struct Surroundings {
    pub(crate) store: Patient,
    pub(crate) cache: Arc<dyn NodeCache>,
    pub(crate) clock: Clock,
    /// How many tasks of this runtime may run at once.
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) notices: broadcast::Sender<Notice>,
    /// The epoch under which a record was refused: the thread is another's, and its nodes here must not go on.
    pub(crate) lost: watch::Sender<Option<Epoch>>,
}

/// Ends when the thread is lost.
pub(crate) async fn lost(lost: &mut watch::Receiver<Option<Epoch>>) -> Epoch {
    match lost.wait_for(Option::is_some).await.map(|epoch| *epoch) {
        Ok(Some(epoch)) => epoch,
        // Whoever could say so is gone.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

impl Running {
    pub(crate) fn new(surroundings: Arc<Surroundings>) -> Self {
        Self {
            tasks: JoinSet::new(),
            handles: BTreeMap::new(),
            ended: VecDeque::new(),
            surroundings,
        }
    }

    pub(crate) fn start(&mut self, tasks: Vec<Task>) {
        // A task without company is begun right here: many never wait, and need no trip to another thread.
        let alone = tasks.len() == 1 && self.tasks.is_empty();
        for task in tasks {
            let id = task.id();
            let around = self.surroundings.clone();
            let mut running = Box::pin(async move { (id, around.run(task).await) });
            match alone.then(|| begin(running.as_mut())) {
                Some(Poll::Ready(ended)) => self.ended.push_back(ended),
                Some(Poll::Pending) | None => {
                    let handle = self.tasks.spawn(running);
                    self.handles.insert(id, handle);
                }
            }
        }
    }

    pub(crate) fn drop_tasks(&mut self, ids: &[TaskId]) {
        for id in ids {
            if let Some(handle) = self.handles.remove(id) {
                handle.abort();
            }
        }
    }

    /// The next task that ends, or none when the time has passed.
    pub(crate) async fn next_until(
        &mut self,
        until: Option<Timestamp>,
    ) -> Option<(TaskId, TaskEnd)> {
        if !self.ended.is_empty() {
            // A long chain of tasks that never wait must not keep the thread from everybody else.
            tokio::task::coop::consume_budget().await;
            return self.ended.pop_front();
        }
        let timer = wait_until(until, &self.surroundings.clock);
        tokio::select! {
            ended = next_ended(&mut self.tasks) => {
                self.handles.remove(&ended.0);
                Some(ended)
            }
            () = timer => None,
        }
    }

    /// Stops everything and waits until it has stopped: whatever the tasks held is gone when this returns.
    pub(crate) async fn stop(&mut self) {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
        self.handles.clear();
    }
}

/// Polls a task for the first time. If it waits, it is polled again by whoever runs it from then on, so no wake is lost.
fn begin<T>(task: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    task.poll(&mut Context::from_waker(Waker::noop()))
}

async fn wait_until(until: Option<Timestamp>, clock: &Clock) {
    let Some(until) = until else {
        return std::future::pending().await;
    };
    let wait = u64::try_from(until.0.saturating_sub(clock.now().0)).unwrap_or(0);
    tokio::time::sleep(Duration::from_millis(wait)).await;
}

/// Ends of aborted tasks are passed over: the machine has forgotten them.
async fn next_ended(tasks: &mut JoinSet<(TaskId, TaskEnd)>) -> (TaskId, TaskEnd) {
    loop {
        match tasks.join_next().await {
            Some(Ok(ended)) => return ended,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Some(Err(_)) => {}
            None => return std::future::pending().await,
        }
    }
}

impl Surroundings {
    async fn run(self: Arc<Self>, task: Task) -> TaskEnd {
        let _permit = self.permits.acquire().await;
        let key = task.cache().cloned();
        if let Some(key) = &key {
            // A cache that does not answer is a cache that has nothing.
            if let Ok(Some(bytes)) = self.cache.get(&key.key, self.clock.now()).await {
                return TaskEnd::Cached(bytes);
            }
        }
        let end = self.execute(task).await;
        if let (Some(key), TaskEnd::Done(output)) = (&key, &end) {
            self.keep(key, output.to_cache()).await;
        }
        end
    }

    async fn execute(self: &Arc<Self>, task: Task) -> TaskEnd {
        let limit = task.timeout();
        let execution = task.execute(Arc::new(LocalDoor {
            around: self.clone(),
        }));
        let pulse = execution.pulse();
        let mut is_lost = self.lost.subscribe();
        tokio::select! {
            biased;
            // Looked at first, so that no node begins another effect for a thread that is not its own. The driver drops it.
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

/// Ends when there was no sign of life for so long.
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

/// What a running node reaches its driver through.
struct LocalDoor {
    around: Arc<Surroundings>,
}

impl Door for LocalDoor {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        let around = self.around.clone();
        Box::pin(async move {
            match around.store.record(&write).await {
                // Nothing that the node could still do would count, so it does not go on, whatever it makes of errors.
                Err(CheckpointError::Fenced { epoch, .. }) => {
                    around.lost.send_replace(Some(epoch));
                    std::future::pending().await
                }
                stored => stored,
            }
        })
    }

    fn emit(&self, event: LiveEvent) {
        // Nobody watches: then nobody misses it.
        let _ = self.around.notices.send(Notice::Live(event));
    }
}
