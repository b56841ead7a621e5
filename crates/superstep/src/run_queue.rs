//! The run queue: executes the runs of a registry. Requests survive a crash, runs of one thread keep their order, and no cluster is
//! needed; with one, several processes share the queue.

mod execution;
mod hook;
mod options;

pub use hook::{RunEndHook, RunEndHookError};
pub use options::{QueueHealth, QueueOptions};

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use superstep_core::__private::lock;
use superstep_core::checkpoint::{CheckpointResult, Status};
use superstep_core::driver::QueuedRequest;
use superstep_core::registry::{
    CancelledRun, CreatedRun, CronTick, FiredTick, NewRun, Registry, RunRow, TakenRun,
};
use superstep_core::{RunId, Timestamp};
use tokio::sync::{Mutex as AsyncMutex, Notify, RwLock, oneshot, watch};
use tokio::task::JoinSet;

use crate::drive::DriveError;
use crate::runtime::Runtime;

/// Executes the runs of a [`Registry`] with a [`Runtime`]: a durable queue without a cluster, or in front of one.
///
/// A run is stored with its request before [`RunQueue::submit`] returns, and is executed when its time has come and the runs of its
/// thread that were submitted before it have ended. After a crash, the next queue over the same stores executes what was pending,
/// and recovers what was running.
///
/// If the runtime runs threads in this process, one process at a time may have a queue over a registry. The databases of
/// `superstep-sqlite` and `superstep-postgres` have a lock for that, which a program takes before it starts the queue.
///
/// If the runtime has an [engine](crate::RuntimeBuilder::engine), any number of processes share the queue. Each keeps touching the
/// runs that it waits for. If it dies, another one takes them over after the runtime's [lease](crate::RuntimeBuilder::lease) and sends
/// them to the engine again, which executes a run once however often it is sent. A process that drains hands its runs back, and another
/// one takes them at once. The processes may have different graphs, as two versions of a program do: a process leaves the runs of
/// graphs that it does not know to the others.
pub struct RunQueue {
    shared: Arc<QueueState>,
    /// The dispatcher, which stops with the queue. Locked by a drain, which waits for its end.
    dispatcher: AsyncMutex<JoinSet<()>>,
}

struct QueueState {
    runtime: Runtime,
    registry: Arc<dyn Registry>,
    options: QueueOptions,
    /// Whether other processes have a queue over the same registry, and an engine executes the runs.
    is_shared: bool,
    /// Whether a run may be pending: the dispatcher has something to look for.
    may_have_pending: AtomicBool,
    /// Wakes the dispatcher: a run was submitted, or one that others waited for is gone.
    wake: Notify,
    /// Runs that this process executes, or is about to, each with the means to cancel it.
    executing: Mutex<BTreeMap<RunKey, watch::Sender<bool>>>,
    executions: Mutex<JoinSet<()>>,
    /// Shared by those who store a run as running, and held alone by the search for lost runs: the registry may be slow to answer, and
    /// a run that began in between would be taken for lost.
    beginning: RwLock<()>,
    /// Callers that wait for the end of a run.
    waiting: Mutex<BTreeMap<RunKey, Vec<oneshot::Sender<RunRow>>>>,
    is_draining: watch::Sender<bool>,
    /// Runs of graphs that this process does not know, which it took from a shared queue and handed back.
    left_to_others: Mutex<BTreeMap<RunId, LeftRun>>,
    /// When the queue last looked for runs with room for them, began one or ended one.
    progressed: Mutex<Instant>,
}

/// A run that a process leaves to others.
struct LeftRun {
    /// When the process first took it.
    since: Instant,
    /// When the process last took it.
    last: Instant,
}

/// A run's tenant and id.
type RunKey = (String, RunId);

impl RunQueue {
    /// Starts to execute the runs of a registry, at most `runs_max` at once. What a crash left running is pending again.
    ///
    /// The graphs of the runs must be registered with the runtime. A run of another graph ends with an error; if several processes
    /// share the queue, after none of them has known the graph for some minutes.
    pub async fn start(
        runtime: &Runtime,
        registry: Arc<dyn Registry>,
        runs_max: usize,
    ) -> Result<Self, DriveError> {
        Self::start_with(runtime, registry, QueueOptions::new(runs_max)).await
    }

    /// Starts to execute the runs of a registry, as [`RunQueue::start`] does, with further options.
    pub async fn start_with(
        runtime: &Runtime,
        registry: Arc<dyn Registry>,
        options: QueueOptions,
    ) -> Result<Self, DriveError> {
        let is_shared = runtime.driver().is_remote();
        if !is_shared {
            // One process has a queue over these stores: what it runs, it announces.
            runtime.live_bus().assume_sole_process();
            let released = registry.release_runs(&[], runtime.now()).await?;
            if released > 0 {
                tracing::info!(released, "runs of an earlier process are recovered");
            }
        }
        let shared = Arc::new(QueueState {
            runtime: runtime.clone(),
            registry,
            options,
            is_shared,
            may_have_pending: AtomicBool::new(true),
            wake: Notify::new(),
            executing: Mutex::default(),
            executions: Mutex::default(),
            beginning: RwLock::default(),
            waiting: Mutex::default(),
            is_draining: watch::Sender::new(false),
            left_to_others: Mutex::default(),
            progressed: Mutex::new(Instant::now()),
        });
        let mut dispatcher = JoinSet::new();
        dispatcher.spawn(dispatch(shared.clone()));
        if is_shared {
            dispatcher.spawn(watch_over_runs(shared.clone()));
        }
        let dispatcher = AsyncMutex::new(dispatcher);
        Ok(Self { shared, dispatcher })
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Arc<dyn Registry> {
        &self.shared.registry
    }

    /// Whether other processes may have a queue over the same registry, because an engine executes the runs.
    pub fn is_shared(&self) -> bool {
        self.shared.is_shared
    }

    /// Returns how the queue of this process is doing.
    pub fn health(&self) -> QueueHealth {
        QueueHealth {
            executing: lock(&self.shared.executing).len(),
            is_draining: *self.shared.is_draining.borrow(),
            since_progress: lock(&self.shared.progressed).elapsed(),
        }
    }

    /// Stores a run, to be executed when its turn comes: at once if its thread is free. Submitting a run again under the same id
    /// stores and executes nothing more.
    pub async fn submit(&self, run: &NewRun) -> Result<CreatedRun, DriveError> {
        let shared = &self.shared;
        let created = match shared.slot_for(run) {
            Some(slot) => {
                let _beginning = shared.beginning.read().await;
                let created = shared.registry.begin_run(run).await?;
                if created == CreatedRun::Begun {
                    shared.spawn(run.begun(), slot);
                    return Ok(created);
                }
                created
            }
            None => shared.registry.create_run(run).await?,
        };
        if let CreatedRun::Exists(_, request) = &created
            && !asks_the_same(request, run)
        {
            return Err(DriveError::IdReused { run: run.id });
        }
        shared.may_have_pending.store(true, Ordering::Relaxed);
        shared.wake.notify_one();
        Ok(created)
    }

    /// Fires a tick of a cron: stores its run, to be executed when its turn comes, and moves the cron to its next tick. Firing a tick
    /// again, here or in another process, stores and executes nothing more.
    pub async fn fire(&self, tick: &CronTick) -> Result<FiredTick, DriveError> {
        let fired = self.shared.registry.fire_cron(tick).await?;
        self.shared.may_have_pending.store(true, Ordering::Relaxed);
        self.shared.wake.notify_one();
        Ok(fired)
    }

    /// Waits until a run has ended, and returns it; `None` if there is no such run, or it was deleted.
    pub async fn wait(&self, tenant: &str, id: RunId) -> Result<Option<RunRow>, DriveError> {
        let key = (tenant.to_owned(), id);
        loop {
            // Before anything is read, so that an end in between is noticed.
            let ended = self.shared.subscribe(key.clone());
            // What this process executes, it reports.
            let row = match self.shared.is_executing(&key) {
                true => None,
                false => Some(self.shared.registry.run(tenant, id).await),
            };
            let is_active = |row: &RunRow| row.status.is_active();
            let goes_on = match &row {
                None => true,
                Some(row) => matches!(row, Ok(Some(row)) if is_active(row)),
            };
            if goes_on {
                // Nothing is sent for a run that was deleted, or that another process executes.
                if let Ok(Ok(row)) = tokio::time::timeout(self.shared.end_poll(), ended).await {
                    return Ok(Some(row));
                }
            } else {
                drop(ended);
            }
            self.shared.forget_closed(&key);
            if let (false, Some(row)) = (goes_on, row) {
                return Ok(row?);
            }
        }
    }

    /// Cancels a run and returns when it has stopped. A pending run never starts.
    pub async fn cancel(&self, tenant: &str, id: RunId) -> Result<CancelledRun, DriveError> {
        let key = (tenant.to_owned(), id);
        let mut pause = SHORTEST_WAIT;
        loop {
            let now = self.shared.now();
            let found = self.shared.registry.cancel_run(tenant, id, now).await?;
            match found {
                CancelledRun::Running => {
                    let signal = lock(&self.shared.executing).get(&key).cloned();
                    let Some(signal) = signal else {
                        if *self.shared.is_draining.borrow() {
                            // It has stopped, and stays marked as running for the next queue.
                            return Err(DriveError::Draining);
                        }
                        if self.shared.is_shared {
                            self.cancel_elsewhere(tenant, id).await?;
                            return Ok(found);
                        }
                        // The dispatcher has just taken it, or will: a run that was released must be taken over to stop it.
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(END_POLL);
                        continue;
                    };
                    signal.send_replace(true);
                    self.wait(tenant, id).await?;
                }
                CancelledRun::Withdrawn => {
                    self.shared.wake_waiting(&key);
                    self.shared.wake.notify_one();
                }
                CancelledRun::Ended | CancelledRun::Missing => {}
            }
            return Ok(found);
        }
    }

    /// Cancels a run that another process waits for, and returns when that one has stored its end.
    async fn cancel_elsewhere(&self, tenant: &str, id: RunId) -> Result<(), DriveError> {
        while let Some(row) = self.shared.registry.run(tenant, id).await? {
            if !row.status.is_active() {
                break;
            }
            // Again and again: a cancel that comes before a worker has claimed the thread is forgotten by the claim. But only while
            // the run is active, without waiting for the thread: the next run on it may start at any time.
            let store = self.shared.runtime.local.store();
            let glance = store.glance(&row.thread, None).await?;
            if glance.is_some_and(|glance| glance.status == Status::Running && !glance.cancel) {
                store.request_cancel(&row.thread).await?;
            }
            tokio::time::sleep(CANCEL_AGAIN).await;
        }
        Ok(())
    }

    /// Takes no further runs, drains the runtime, and returns when every run of this process has stopped. The next queue over the
    /// same stores continues with them. If several processes share the queue, another one waits for their ends from now on.
    pub async fn drain(&self) {
        self.shared.is_draining.send_replace(true);
        self.shared.runtime.drain().await;
        let mut dispatcher = self.dispatcher.lock().await;
        while dispatcher.join_next().await.is_some() {}
        let mut executions = std::mem::take(&mut *lock(&self.shared.executions));
        while executions.join_next().await.is_some() {}
    }
}

impl Drop for RunQueue {
    fn drop(&mut self) {
        // They hold what they are held by.
        lock(&self.shared.executions).abort_all();
    }
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue")
            .field("executing", &lock(&self.shared.executing).len())
            .finish_non_exhaustive()
    }
}

/// Whether a stored request is the one of a run that is submitted under the same id.
fn asks_the_same(stored: &[u8], run: &NewRun) -> bool {
    let read = |bytes| QueuedRequest::from_bytes(bytes, &run.thread).ok();
    match (read(stored), read(&run.request)) {
        (Some(stored), Some(new)) => stored.is_same_as(&new),
        _ => false,
    }
}

/// Takes runs from the registry and executes them, until the queue drains.
async fn dispatch(shared: Arc<QueueState>) {
    let mut draining = shared.is_draining.subscribe();
    // Runs may be marked as running in a reply that did not arrive, perhaps only after the store answers again.
    let mut looked_for_lost = Instant::now();
    let mut looked = Instant::now();
    // Until then others may take the runs that this process has handed back.
    let mut others_turn_until = Instant::now();
    loop {
        if !shared.is_shared && looked_for_lost.elapsed() > RELEASE_EVERY {
            match shared.release_lost_runs().await {
                Ok(0) => {}
                Ok(released) => {
                    tracing::warn!(released, "runs that got lost are pending again");
                    shared.may_have_pending.store(true, Ordering::Relaxed);
                }
                Err(error) => tracing::warn!(?error, "the registry did not answer"),
            }
            looked_for_lost = Instant::now();
        }
        let mut next_look = LOOK_AGAIN;
        let room = shared.room();
        let is_due =
            shared.may_have_pending.load(Ordering::Relaxed) || looked.elapsed() > LOOK_AGAIN;
        let is_others_turn = Instant::now() < others_turn_until;
        if room > 0 && is_due && !is_others_turn && !*draining.borrow_and_update() {
            looked = Instant::now();
            let limit = u32::try_from(room.min(TAKEN_AT_ONCE)).unwrap_or(u32::MAX);
            match take(&shared, limit).await {
                Ok(Taken::AsManyAsWanted) if shared.room() > 0 => continue,
                Ok(Taken::SomeForOthers) => {
                    others_turn_until = Instant::now() + OTHERS_TURN;
                    next_look = OTHERS_TURN;
                }
                Ok(_) => next_look = shared.time_until_next().await,
                Err(error) => {
                    shared.may_have_pending.store(true, Ordering::Relaxed);
                    tracing::warn!(?error, "the registry did not answer");
                }
            }
        }
        if *draining.borrow_and_update() {
            break;
        }
        tokio::select! {
            () = shared.wake.notified() => {}
            () = tokio::time::sleep(next_look) => {}
            _ = draining.changed() => {}
        }
    }
}

/// Whether there may be more to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    AsManyAsWanted,
    Fewer,
    /// Some were of graphs that this process does not know.
    SomeForOthers,
}

/// Takes runs and executes them. Hands back those of graphs that this process does not know.
async fn take(shared: &Arc<QueueState>, limit: u32) -> CheckpointResult<Taken> {
    // Before the registry is read: a run that is stored after that says so again.
    shared.may_have_pending.store(false, Ordering::Relaxed);
    shared.forget_left_runs();
    let mut for_others = Vec::new();
    let taken = take_own(shared, limit, &mut for_others).await;
    if for_others.is_empty() {
        let taken = taken?;
        if taken == Taken::AsManyAsWanted {
            shared.may_have_pending.store(true, Ordering::Relaxed);
        }
        return Ok(taken);
    }
    shared.may_have_pending.store(true, Ordering::Relaxed);
    tracing::debug!(
        runs = for_others.len(),
        "runs of unknown graphs are left to others"
    );
    // Also if the registry stopped answering in between: without this they wait for the end of a lease.
    shared.hand_back(&for_others).await?;
    taken?;
    Ok(Taken::SomeForOthers)
}

/// Takes runs, executes those of known graphs and collects the others, which stay taken meanwhile: the registry returns the oldest
/// runs, so those behind many of unknown graphs are reached only this way.
async fn take_own(
    shared: &Arc<QueueState>,
    mut limit: u32,
    for_others: &mut Vec<RunId>,
) -> CheckpointResult<Taken> {
    loop {
        let (wanted, full) = shared.tenant_room(limit);
        let taken = match full.is_empty() {
            true => shared.registry.take_runs(shared.now(), wanted).await?,
            false => {
                let taken = shared
                    .registry
                    .take_runs_except(shared.now(), wanted, &full);
                taken.await?
            }
        };
        shared.mark_progress();
        let has_as_many = taken.len() as u32 == wanted;
        let before = for_others.len();
        for run in taken {
            if shared.is_for_others(&run) {
                for_others.push(run.row.id);
                continue;
            }
            // Known before the task runs, so that a cancel finds it.
            let slot = shared.slot(key_of(&run.row));
            shared.spawn(run, slot);
        }
        if !has_as_many {
            return Ok(Taken::Fewer);
        }
        limit = u32::try_from(shared.room().min(TAKEN_AT_ONCE)).unwrap_or(u32::MAX);
        let is_blocked = for_others.len() > before;
        if !is_blocked || limit == 0 || for_others.len() >= HELD_MAX {
            return Ok(Taken::AsManyAsWanted);
        }
    }
}

/// Touches the runs that this process waits for, and releases those that nobody touches, until the queue drains.
async fn watch_over_runs(shared: Arc<QueueState>) {
    let lease = match shared.runtime.local.leases().length() {
        Duration::ZERO => IDLE,
        lease => lease,
    };
    let touch_every = (lease / 5).min(TOUCH_EVERY);
    let mut draining = shared.is_draining.subscribe();
    while !*draining.borrow_and_update() {
        let held: Vec<RunId> = lock(&shared.executing).keys().map(|(_, id)| *id).collect();
        let now = shared.now();
        let idle_since = Timestamp(now.0.saturating_sub(lease.as_millis() as i64));
        let watched = async {
            if !held.is_empty() {
                shared.registry.touch_runs(&held, now).await?;
            }
            shared.registry.release_idle_runs(idle_since, now).await
        };
        match watched.await {
            Ok(0) => {}
            Ok(released) => {
                tracing::info!(released, "runs of a process that is gone are taken over");
                shared.may_have_pending.store(true, Ordering::Relaxed);
                shared.wake.notify_one();
            }
            Err(error) => tracing::warn!(?error, "the registry did not answer"),
        }
        tokio::select! {
            () = tokio::time::sleep(touch_every) => {}
            _ = draining.changed() => {}
        }
    }
}

impl QueueState {
    /// Returns how long to wait for the end of a run before its row is read again.
    fn end_poll(&self) -> Duration {
        match self.is_shared {
            true => END_POLL,
            false => LOOK_AGAIN,
        }
    }

    /// Makes runs pending again that are marked as running, and that this process does not execute.
    async fn release_lost_runs(&self) -> CheckpointResult<u64> {
        let Ok(_none_begins) = tokio::time::timeout(LOOK_AGAIN, self.beginning.write()).await
        else {
            // Runs are waiting to be stored; the next look comes soon.
            return Ok(0);
        };
        let held: Vec<RunId> = lock(&self.executing).keys().map(|(_, id)| *id).collect();
        self.registry.release_runs(&held, self.now()).await
    }

    /// Whether a run is of a graph that only other processes know, as while two versions of a program share the queue. If none of
    /// them takes it for minutes, it is executed here, which says what is wrong. Time decides and not the number of attempts, because
    /// that grows with the number of processes that hand the run back.
    fn is_for_others(&self, run: &TakenRun) -> bool {
        if !self.is_shared {
            return false;
        }
        let thread = &run.row.thread;
        let queued = QueuedRequest::from_bytes(&run.request, thread);
        let is_unknown =
            queued.is_ok_and(|queued| self.runtime.local.graph(&queued.graph, thread).is_err());
        if !is_unknown {
            return false;
        }
        let now = Instant::now();
        let mut left_runs = lock(&self.left_to_others);
        let left = left_runs.entry(run.row.id).or_insert(LeftRun {
            since: now,
            last: now,
        });
        left.last = now;
        now.duration_since(left.since) < LEFT_TO_OTHERS_FOR
    }

    /// Forgets the runs that this process has not taken for a while: others execute them, or they were cancelled.
    fn forget_left_runs(&self) {
        lock(&self.left_to_others).retain(|_, left| left.last.elapsed() < LEFT_RUN_KEPT);
    }

    /// Makes runs pending again that this process has taken, so that another one takes them at once. Only for a shared queue.
    async fn hand_back(&self, runs: &[RunId]) -> CheckpointResult<()> {
        // Idle since before any run that another process touches, so that the release is of these alone.
        let since_ever = Timestamp(0);
        self.registry.touch_runs(runs, since_ever).await?;
        let now = self.now();
        self.registry.release_idle_runs(since_ever, now).await?;
        Ok(())
    }

    /// Returns how many further runs may be executed.
    fn room(&self) -> usize {
        let runs_max = self.options.runs_max;
        runs_max.saturating_sub(lock(&self.executing).len())
    }

    /// Returns how many runs may be taken at once, and the tenants that may not have more of them. However many of those that are
    /// taken belong to one other tenant, it has no more than it may.
    fn tenant_room(&self, limit: u32) -> (u32, Vec<String>) {
        let Some(tenant_max) = self.options.tenant_runs_max else {
            return (limit, Vec::new());
        };
        let mut counts = BTreeMap::<String, usize>::new();
        for (tenant, _) in lock(&self.executing).keys() {
            match counts.get_mut(tenant) {
                Some(count) => *count += 1,
                None => drop(counts.insert(tenant.clone(), 1)),
            }
        }
        let is_full = |count: usize| count >= tenant_max;
        let most = counts.values().copied().filter(|count| !is_full(*count));
        let left = tenant_max - most.max().unwrap_or(0);
        let full = counts.into_iter().filter(|(_, count)| is_full(*count));
        let full = full.map(|(tenant, _)| tenant).collect();
        (limit.min(u32::try_from(left).unwrap_or(u32::MAX)), full)
    }

    fn mark_progress(&self) {
        *lock(&self.progressed) = Instant::now();
    }

    /// Returns how long to wait until a pending run may be due, or may have been submitted by another process.
    async fn time_until_next(&self) -> Duration {
        let due = match self.registry.next_due().await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(?error, "the registry did not answer");
                self.may_have_pending.store(true, Ordering::Relaxed);
                return LOOK_AGAIN;
            }
        };
        let Some(due) = due else {
            return LOOK_AGAIN;
        };
        self.may_have_pending.store(true, Ordering::Relaxed);
        let left = due.0.saturating_sub(self.now().0);
        match u64::try_from(left) {
            Ok(left) => Duration::from_millis(left).clamp(SHORTEST_WAIT, LOOK_AGAIN),
            // It is due and waits for another run of its thread, whose end wakes the dispatcher.
            Err(_) => LOOK_AGAIN,
        }
    }

    /// Returns a slot for a run that may begin as soon as it is stored; `None` if it has to wait, or its id is in use.
    fn slot_for(self: &Arc<Self>, run: &NewRun) -> Option<RunSlot> {
        if run.due > self.now() || *self.is_draining.borrow() {
            return None;
        }
        let key = (run.thread.tenant().to_owned(), run.id);
        let mut executing = lock(&self.executing);
        let has_room = executing.len() < self.options.runs_max
            && self.options.tenant_runs_max.is_none_or(|tenant_max| {
                let of_tenant = executing.keys().filter(|(tenant, _)| *tenant == key.0);
                of_tenant.count() < tenant_max
            });
        let (signal, cancelled) = watch::channel(false);
        match executing.entry(key.clone()) {
            Entry::Vacant(entry) if has_room => {
                entry.insert(signal.clone());
            }
            _ => return None,
        }
        drop(executing);
        Some(RunSlot {
            shared: self.clone(),
            key,
            signal,
            cancelled,
        })
    }

    /// Returns the slot of a run that was taken.
    fn slot(self: &Arc<Self>, key: RunKey) -> RunSlot {
        let (signal, cancelled) = watch::channel(false);
        lock(&self.executing).insert(key.clone(), signal.clone());
        RunSlot {
            shared: self.clone(),
            key,
            signal,
            cancelled,
        }
    }

    /// Executes a run in the background.
    fn spawn(self: &Arc<Self>, run: TakenRun, slot: RunSlot) {
        let mut executions = lock(&self.executions);
        while executions.try_join_next().is_some() {}
        self.mark_progress();
        executions.spawn(execution::execute_to_its_end(self.clone(), run, slot));
    }

    fn is_executing(&self, run: &RunKey) -> bool {
        lock(&self.executing).contains_key(run)
    }

    fn subscribe(&self, run: RunKey) -> oneshot::Receiver<RunRow> {
        let (sender, ended) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let senders = waiting.entry(run).or_default();
        senders.retain(|sender| !sender.is_closed());
        senders.push(sender);
        ended
    }

    /// Drops what is left of callers that no longer wait, so that asking for runs that do not exist costs no memory.
    fn forget_closed(&self, run: &RunKey) {
        let mut waiting = lock(&self.waiting);
        let Some(senders) = waiting.get_mut(run) else {
            return;
        };
        senders.retain(|sender| !sender.is_closed());
        if senders.is_empty() {
            waiting.remove(run);
        }
    }

    /// Gives a run that has ended to those who wait for it.
    fn report_end(&self, run: &RunKey, row: &RunRow) {
        let senders = lock(&self.waiting).remove(run);
        for sender in senders.into_iter().flatten() {
            // The caller may have gone.
            let _ = sender.send(row.clone());
        }
    }

    /// Lets those who wait for a run read its row again.
    fn wake_waiting(&self, run: &RunKey) {
        lock(&self.waiting).remove(run);
    }

    fn now(&self) -> Timestamp {
        self.runtime.now()
    }
}

/// The place of a run among those that this process executes. It is there before the run is marked as running, so that nobody
/// takes the run for lost and a cancel finds it, and is given up when this is dropped.
struct RunSlot {
    shared: Arc<QueueState>,
    key: RunKey,
    signal: watch::Sender<bool>,
    cancelled: watch::Receiver<bool>,
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut executing = lock(&self.shared.executing);
        // The run may have been taken in another way meanwhile, and then has another slot.
        if executing
            .get(&self.key)
            .is_some_and(|found| found.same_channel(&self.signal))
        {
            executing.remove(&self.key);
        }
    }
}

fn key_of(row: &RunRow) -> RunKey {
    (row.thread.tenant().to_owned(), row.id)
}

/// How often the queue looks for runs that another process submitted, and for ends that nothing reported.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const SHORTEST_WAIT: Duration = Duration::from_millis(2);
/// How often a shared queue looks whether a run that another process waits for has ended.
const END_POLL: Duration = Duration::from_millis(100);
/// How often a process touches the runs that it waits for; more often with a short lease.
const TOUCH_EVERY: Duration = Duration::from_secs(2);
/// How often the only process of a queue looks for runs that are marked as running and that it does not execute.
const RELEASE_EVERY: Duration = Duration::from_secs(2);
/// How often a run is taken from the queue before it is given up, if it has never begun.
const ATTEMPTS_MAX: u32 = 3;
/// How long a process hands a run of an unknown graph back before it gives the run up.
const LEFT_TO_OTHERS_FOR: Duration = Duration::from_secs(5 * 60);
/// How long a process remembers a run of an unknown graph that it does not see any more.
const LEFT_RUN_KEPT: Duration = Duration::from_secs(60);
/// Number of runs of unknown graphs from which on a process looks for no runs behind them.
const HELD_MAX: usize = 4_096;
/// How long a process takes no runs after it has handed some back: longer than others wait until they look again.
const OTHERS_TURN: Duration = Duration::from_millis(1_500);
/// How long a process that drains tries to hand a run back. After that, the lease says when another one takes it.
const HAND_BACK_MAX: Duration = Duration::from_secs(5);
/// How many entries back the stop of a run is looked for.
const LOOKED_BACK: u32 = 1_000;
/// How long a run goes untouched before another process takes it over, if the runtime has no lease that says so.
const IDLE: Duration = Duration::from_secs(15);
const CANCEL_AGAIN: Duration = Duration::from_millis(20);
/// Number of runs that are taken with one call to the registry.
const TAKEN_AT_ONCE: usize = 256;
