//! Polls the tasks of a run, on as many OS threads as the tokio runtime has workers.
//!
//! A task that waits has a tokio task of its own. Most tasks of a wide superstep end when they are first polled, so they share
//! lanes: a lane takes one queued task after the other, polls it once, and spawns it only if it waits. There are as many lanes as
//! workers, so nodes that compute run in parallel, as they would if each was spawned. If the lanes make no progress, because their
//! nodes compute for long or block their OS threads, the tasks that are still queued are spawned.
//!
//! Invariant: a task is in one place. It is queued, or a lane polls it, or it is spawned, or its end was returned; it is moved
//! under the lock. So a dropped task is found wherever it is, and a lane that polled a dropped task forgets it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use superstep_core::__private::lock;
use superstep_core::TaskId;
use superstep_core::node::{Task, TaskEnd};
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;
use tokio::task::{AbortHandle, JoinError, JoinSet, yield_now};
use tracing::{Instrument, Span};

use super::{Surroundings, TaskStart};

pub(super) type EndedTask = (TaskId, TaskEnd);

/// The tasks of one run that have not ended. Dropping this stops them all.
pub(super) struct Lanes {
    shared: Arc<Shared>,
}

/// What a lane shares with the driver of its run.
struct Shared {
    around: Arc<Surroundings>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tasks that no lane has taken yet.
    queued: VecDeque<(Task, Span)>,
    /// Tasks that lanes poll now, each with the number under which it was taken: a task that is dropped may start again.
    polled: Vec<(u64, TaskId)>,
    /// Number of tasks that lanes ever took.
    taken: u64,
    /// Number of lanes.
    lanes: usize,
    /// Ends of tasks that never waited.
    ended: VecDeque<EndedTask>,
    /// Wakes the driver for these.
    driver: Option<Waker>,
    /// Tasks that wait, and lanes, which return nothing. Lanes own what owns them, so [`Shared::clear`] takes this out. `None`
    /// until a task waits: most runs of quick nodes need none.
    spawned: Option<JoinSet<Option<EndedTask>>>,
    /// Tasks that wait.
    handles: BTreeMap<TaskId, AbortHandle>,
}

impl Lanes {
    pub(super) fn new(around: Arc<Surroundings>) -> Self {
        let state = Mutex::default();
        Self {
            shared: Arc::new(Shared { around, state }),
        }
    }

    /// Number of tasks that have not ended.
    pub(super) fn in_flight(&self) -> usize {
        let state = lock(&self.shared.state);
        state.queued.len() + state.polled.len() + state.handles.len()
    }

    /// Spawns a task.
    pub(super) fn spawn(
        &self,
        id: TaskId,
        running: impl Future<Output = TaskEnd> + Send + 'static,
    ) {
        lock(&self.shared.state).spawn(id, running);
    }

    /// Lets lanes poll these tasks.
    pub(super) fn queue(&self, mut tasks: VecDeque<(Task, Span)>) {
        let workers = Handle::current().metrics().num_workers();
        let mut state = lock(&self.shared.state);
        state.queued.append(&mut tasks);
        while state.lanes < workers.min(state.queued.len()) {
            state.lanes += 1;
            let lane = lane(self.shared.clone());
            state.spawned.get_or_insert_default().spawn(lane);
        }
    }

    /// Stops tasks, wherever they are.
    pub(super) fn drop_tasks(&self, ids: &[TaskId]) {
        let ids: BTreeSet<TaskId> = ids.iter().copied().collect();
        let mut state = lock(&self.shared.state);
        for id in &ids {
            if let Some(handle) = state.handles.remove(id) {
                handle.abort();
            }
        }
        state.polled.retain(|(_, id)| !ids.contains(id));
        let queued = mem::take(&mut state.queued).into_iter();
        let (dropped, kept): (VecDeque<_>, VecDeque<_>) =
            queued.partition(|(task, _)| ids.contains(&task.id()));
        state.queued = kept;
        drop(state);
        // What a task holds is dropped without the lock.
        drop(dropped);
    }

    /// Returns the next task that ends; never, if there is none.
    pub(super) async fn next(&mut self) -> EndedTask {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<EndedTask> {
        loop {
            let mut state = lock(&self.shared.state);
            if let Some(ended) = state.ended.pop_front() {
                return Poll::Ready(ended);
            }
            state.driver = Some(cx.waker().clone());
            let Some(spawned) = &mut state.spawned else {
                return Poll::Pending;
            };
            // If there is none, there is no lane either that could spawn one later.
            let Poll::Ready(Some(joined)) = spawned.poll_join_next(cx) else {
                return Poll::Pending;
            };
            drop(state);
            if let Some(ended) = self.take_end(joined) {
                return Poll::Ready(ended);
            }
        }
    }

    /// Returns a task that has ended already.
    pub(super) fn try_next(&mut self) -> Option<EndedTask> {
        loop {
            let mut state = lock(&self.shared.state);
            if let Some(ended) = state.ended.pop_front() {
                return Some(ended);
            }
            let joined = state.spawned.as_mut()?.try_join_next()?;
            drop(state);
            if let Some(ended) = self.take_end(joined) {
                return Some(ended);
            }
        }
    }

    /// Skips ends of lanes, and of aborted tasks: the state machine has dropped them.
    fn take_end(&self, joined: Result<Option<EndedTask>, JoinError>) -> Option<EndedTask> {
        match joined {
            Ok(ended) => {
                let (id, end) = ended?;
                lock(&self.shared.state).handles.remove(&id);
                Some((id, end))
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => None,
        }
    }

    /// Spawns the queued tasks as soon as no lane has taken one for a while. Never returns.
    pub(super) fn relieve(&self) -> impl Future<Output = Infallible> + use<> {
        let shared = self.shared.clone();
        async move {
            let mut taken = shared.taken_if_queued();
            while let Some(before) = taken {
                tokio::time::sleep(STUCK).await;
                taken = shared.taken_if_queued();
                if taken == Some(before) {
                    shared.spawn_queued();
                }
            }
            std::future::pending().await
        }
    }

    /// Stops all tasks and waits until they have stopped: everything they held is dropped when this returns.
    pub(super) async fn stop(&mut self) {
        // A lane that polls a task now forgets it before it ends.
        if let Some(mut spawned) = self.shared.clear() {
            spawned.abort_all();
            while spawned.join_next().await.is_some() {}
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        drop(self.shared.clear());
    }
}

/// Polls queued tasks until there are none.
async fn lane(shared: Arc<Shared>) -> Option<EndedTask> {
    let mut turn = Instant::now();
    // No node starts for a thread that this process no longer owns. The driver stops all of them.
    while shared.around.lost.borrow().is_none() {
        let (number, task, span) = shared.take()?;
        let id = task.id();
        let begun = span.in_scope(|| shared.around.begin(task));
        let around = shared.around.clone();
        match begun {
            TaskStart::Ended(end) => shared.end(number, (id, end)),
            TaskStart::Waits(attempt) => shared.spawn_taken(number, id, async move {
                around.await_attempt(attempt).instrument(span).await
            }),
            TaskStart::Later(task) => {
                shared.spawn_taken(number, id, around.run(task).instrument(span));
            }
        }
        // The lane must not starve other work on this OS thread, not even with nodes that each compute a little.
        if turn.elapsed() < TURN {
            consume_budget().await;
        } else {
            yield_now().await;
            turn = Instant::now();
        }
    }
    None
}

impl Shared {
    /// Takes the next queued task, with a number. If there is none, the lane that asks ends.
    fn take(&self) -> Option<(u64, Task, Span)> {
        let mut state = lock(&self.state);
        let Some((task, span)) = state.queued.pop_front() else {
            state.lanes = state.lanes.saturating_sub(1);
            return None;
        };
        state.taken += 1;
        let number = state.taken;
        state.polled.push((number, task.id()));
        Some((number, task, span))
    }

    fn end(&self, number: u64, ended: EndedTask) {
        let mut state = lock(&self.state);
        if !state.is_wanted(number) {
            return;
        }
        state.ended.push_back(ended);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    fn spawn_taken(
        &self,
        number: u64,
        id: TaskId,
        running: impl Future<Output = TaskEnd> + Send + 'static,
    ) {
        let mut state = lock(&self.state);
        if state.is_wanted(number) {
            state.spawn(id, running);
        }
    }

    /// Returns how many tasks were taken, if others wait to be.
    fn taken_if_queued(&self) -> Option<u64> {
        let state = lock(&self.state);
        (!state.queued.is_empty()).then_some(state.taken)
    }

    fn spawn_queued(&self) {
        let mut state = lock(&self.state);
        for (task, span) in mem::take(&mut state.queued) {
            let id = task.id();
            let running = self.around.clone().run(task).instrument(span);
            state.spawn(id, running);
        }
    }

    /// Forgets every task, and returns what polls them.
    fn clear(&self) -> Option<JoinSet<Option<EndedTask>>> {
        let mut state = lock(&self.state);
        let cleared = mem::take(&mut *state);
        // What the tasks hold is dropped without the lock.
        drop(state);
        cleared.spawned
    }
}

impl State {
    fn spawn(&mut self, id: TaskId, running: impl Future<Output = TaskEnd> + Send + 'static) {
        let spawned = self.spawned.get_or_insert_default();
        let handle = spawned.spawn(async move { Some((id, running.await)) });
        self.handles.insert(id, handle);
    }

    /// Whether a task that a lane polled was not dropped meanwhile.
    fn is_wanted(&mut self, number: u64) -> bool {
        let at = self.polled.iter().position(|(polled, _)| *polled == number);
        at.map(|at| self.polled.swap_remove(at)).is_some()
    }
}

/// How long a lane polls tasks before it lets other work on its OS thread run.
const TURN: Duration = Duration::from_micros(200);
/// How long lanes may take no task before the queued ones are spawned.
const STUCK: Duration = Duration::from_millis(5);
