//! The run queue: executes the runs of a registry. Requests survive a crash, runs of one thread keep their order, and no cluster is
//! needed; with one, several processes share the queue.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use superstep_core::__private::lock;
use superstep_core::checkpoint::{CheckpointResult, Loaded, Status};
use superstep_core::driver::{QueuedRequest, ThreadRequest};
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::graph::Definition;
use superstep_core::registry::{
    CancelledRun, CreatedRun, CronTick, FiredTick, NewRun, Registry, RunEnd, RunRow, RunStatus,
    TakenRun,
};
use superstep_core::run::read_state;
use superstep_core::{Outcome, RunId, Timestamp};
use tokio::sync::{Mutex as AsyncMutex, Notify, oneshot, watch};
use tokio::task::JoinSet;

use crate::drive::{DriveError, RequestEnd};
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
/// runs that it waits for. If it dies, another one takes them over after a while and sends them to the engine again, which executes
/// a run once however often it is sent.
pub struct RunQueue {
    shared: Arc<QueueState>,
    /// The dispatcher, which stops with the queue. Locked by a drain, which waits for its end.
    dispatcher: AsyncMutex<JoinSet<()>>,
}

struct QueueState {
    runtime: Runtime,
    registry: Arc<dyn Registry>,
    runs_max: usize,
    /// Whether other processes have a queue over the same registry, and an engine executes the runs.
    is_shared: bool,
    /// Whether a run was submitted that is not due yet, or may have been: the dispatcher has to ask when the next one is.
    has_later_runs: AtomicBool,
    /// Wakes the dispatcher: a run was submitted, or one that others waited for is gone.
    wake: Notify,
    /// Runs that this process executes, each with the means to cancel it.
    executing: Mutex<BTreeMap<RunKey, watch::Sender<bool>>>,
    /// Callers that wait for the end of a run.
    waiting: Mutex<BTreeMap<RunKey, Vec<oneshot::Sender<RunRow>>>>,
    is_draining: watch::Sender<bool>,
}

/// A run's tenant and id.
type RunKey = (String, RunId);

impl RunQueue {
    /// Starts to execute the runs of a registry, at most `runs_max` at once. What a crash left running is pending again.
    ///
    /// The graphs of the runs must be registered with the runtime. A run of another graph ends with an error.
    pub async fn start(
        runtime: &Runtime,
        registry: Arc<dyn Registry>,
        runs_max: usize,
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
            runs_max: runs_max.max(1),
            is_shared,
            has_later_runs: AtomicBool::new(true),
            wake: Notify::new(),
            executing: Mutex::default(),
            waiting: Mutex::default(),
            is_draining: watch::Sender::new(false),
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

    /// Stores a run, to be executed when its turn comes. Submitting a run again under the same id stores and executes nothing more.
    pub async fn submit(&self, run: &NewRun) -> Result<CreatedRun, DriveError> {
        let created = self.shared.registry.create_run(run).await?;
        if let CreatedRun::Exists(_, request) = &created
            && !asks_the_same(request, run)
        {
            return Err(DriveError::IdReused { run: run.id });
        }
        if run.due > self.shared.now() {
            self.shared.has_later_runs.store(true, Ordering::Relaxed);
        }
        self.shared.wake.notify_one();
        Ok(created)
    }

    /// Fires a tick of a cron: stores its run, to be executed when its turn comes, and moves the cron to its next tick. Firing a tick
    /// again, here or in another process, stores and executes nothing more.
    pub async fn fire(&self, tick: &CronTick) -> Result<FiredTick, DriveError> {
        let fired = self.shared.registry.fire_cron(tick).await?;
        self.shared.wake.notify_one();
        Ok(fired)
    }

    /// Waits until a run has ended, and returns it; `None` if there is no such run, or it was deleted.
    pub async fn wait(&self, tenant: &str, id: RunId) -> Result<Option<RunRow>, DriveError> {
        let key = (tenant.to_owned(), id);
        loop {
            // Before the row is read, so that an end in between is noticed.
            let ended = self.shared.subscribe(key.clone());
            let row = self.shared.registry.run(tenant, id).await;
            let is_active = |row: &RunRow| row.status.is_active();
            let goes_on = matches!(&row, Ok(Some(row)) if is_active(row));
            if goes_on {
                // Nothing is sent for a run that was deleted, or that another process executes.
                if let Ok(Ok(row)) = tokio::time::timeout(self.shared.end_poll(), ended).await {
                    return Ok(Some(row));
                }
            } else {
                drop(ended);
            }
            self.shared.forget_closed(&key);
            if !goes_on {
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
            // Again and again: a cancel that comes before a worker has claimed the thread is forgotten by the claim.
            self.shared.runtime.cancel(&row.thread).await?;
            tokio::time::sleep(CANCEL_AGAIN).await;
        }
        Ok(())
    }

    /// Takes no further runs, drains the runtime, and returns when every run of this process has stopped. The next queue over the
    /// same stores continues with them.
    pub async fn drain(&self) {
        self.shared.is_draining.send_replace(true);
        self.shared.runtime.drain().await;
        let mut dispatcher = self.dispatcher.lock().await;
        while dispatcher.join_next().await.is_some() {}
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
    let mut executions = JoinSet::new();
    let mut draining = shared.is_draining.subscribe();
    // Runs may be marked as running in a reply that did not arrive, perhaps only after the store answers again.
    let mut looked_for_lost = Instant::now();
    // When the next run is due, and when the registry was asked.
    let mut next_due = None;
    let mut looked_ahead = Instant::now();
    loop {
        if !shared.is_shared && looked_for_lost.elapsed() > RELEASE_EVERY {
            match shared.release_lost_runs().await {
                Ok(0) => {}
                Ok(released) => tracing::warn!(released, "runs that got lost are pending again"),
                Err(error) => tracing::warn!(?error, "the registry did not answer"),
            }
            looked_for_lost = Instant::now();
        }
        let (mut may_have_more, mut next_look) = (false, LOOK_AGAIN);
        let room = shared.runs_max.saturating_sub(executions.len());
        if room > 0 && !*draining.borrow_and_update() {
            let limit = u32::try_from(room.min(TAKEN_AT_ONCE)).unwrap_or(u32::MAX);
            match shared.registry.take_runs(shared.runtime.now(), limit).await {
                Ok(taken) => {
                    may_have_more = taken.len() == limit as usize;
                    for run in taken {
                        // Known before the task runs, so that a cancel finds it.
                        let cancelled = shared.begin(&run);
                        executions.spawn(execute_to_its_end(shared.clone(), run, cancelled));
                    }
                }
                Err(error) => tracing::warn!(?error, "the registry did not answer"),
            }
            // A run that is due now was taken, or waits for one whose end wakes the dispatcher.
            let is_past = next_due.is_some_and(|due| due <= shared.now());
            if is_past
                || shared.has_later_runs.swap(false, Ordering::Relaxed)
                || looked_ahead.elapsed() > LOOK_AGAIN
            {
                next_due = shared.registry.next_due().await.unwrap_or_default();
                looked_ahead = Instant::now();
            }
            next_look = shared.time_until(next_due);
        }
        if *draining.borrow_and_update() {
            break;
        }
        if may_have_more && executions.len() < shared.runs_max {
            continue;
        }
        tokio::select! {
            () = shared.wake.notified() => {}
            Some(_) = executions.join_next() => {}
            () = tokio::time::sleep(next_look) => {}
            _ = draining.changed() => {}
        }
        while executions.try_join_next().is_some() {}
    }
    while executions.join_next().await.is_some() {}
}

/// Touches the runs that this process waits for, and releases those that nobody touches, until the queue drains.
async fn watch_over_runs(shared: Arc<QueueState>) {
    let mut draining = shared.is_draining.subscribe();
    while !*draining.borrow_and_update() {
        let held: Vec<RunId> = lock(&shared.executing).keys().map(|(_, id)| *id).collect();
        let now = shared.now();
        let idle_since = Timestamp(now.0.saturating_sub(IDLE.as_millis() as i64));
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
                shared.wake.notify_one();
            }
            Err(error) => tracing::warn!(?error, "the registry did not answer"),
        }
        tokio::select! {
            () = tokio::time::sleep(TOUCH_EVERY) => {}
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
        let held: Vec<RunId> = lock(&self.executing).keys().map(|(_, id)| *id).collect();
        self.registry.release_runs(&held, self.now()).await
    }

    /// Returns how long to wait until a run may be due that is not yet.
    fn time_until(&self, due: Option<Timestamp>) -> Duration {
        let Some(due) = due else {
            return LOOK_AGAIN;
        };
        let left = due.0.saturating_sub(self.runtime.now().0);
        match u64::try_from(left) {
            Ok(left) => Duration::from_millis(left).clamp(SHORTEST_WAIT, LOOK_AGAIN),
            // It is due and waits for another run of its thread, whose end wakes the dispatcher.
            Err(_) => LOOK_AGAIN,
        }
    }

    fn begin(&self, run: &TakenRun) -> watch::Receiver<bool> {
        let (signal, cancelled) = watch::channel(false);
        lock(&self.executing).insert(key_of(&run.row), signal);
        cancelled
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

fn key_of(row: &RunRow) -> RunKey {
    (row.thread.tenant().to_owned(), row.id)
}

/// Executes a run and stores how it ended. Leaves it running if the process drains: the next queue recovers it.
async fn execute_to_its_end(
    shared: Arc<QueueState>,
    run: TakenRun,
    cancelled: watch::Receiver<bool>,
) {
    let key = key_of(&run.row);
    let mut ended = None;
    if let Some(end) = execute(&shared, &run, cancelled).await {
        let mut pause = SHORTEST_WAIT;
        loop {
            match shared.registry.end_run(&key.0, key.1, &end).await {
                Ok(is_first) => {
                    ended = is_first.then(|| ended_row(&run, &end));
                    break;
                }
                // A store that does not answer now will later; until then the run counts as running.
                Err(error) => {
                    tracing::warn!(run = %key.1, ?error, "the end of a run was not stored");
                }
            }
            if *shared.is_draining.borrow() {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_AGAIN);
        }
    }
    lock(&shared.executing).remove(&key);
    match ended {
        Some(row) => shared.report_end(&key, &row),
        None => shared.wake_waiting(&key),
    }
    // The next run of the thread can start.
    shared.wake.notify_one();
}

/// Returns the row of a run after its end was stored.
fn ended_row(run: &TakenRun, end: &RunEnd) -> RunRow {
    RunRow {
        status: end.status,
        error: end.error.clone(),
        updated: end.at,
        ..run.row.clone()
    }
}

async fn drains(shared: &QueueState) {
    let mut draining = shared.is_draining.subscribe();
    // It fails only if the queue is gone, with which this ends.
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// Executes a run until it stops. `None` if the process drains.
async fn execute(
    shared: &QueueState,
    run: &TakenRun,
    mut cancelled: watch::Receiver<bool>,
) -> Option<RunEnd> {
    let mut pause = SHORTEST_WAIT;
    // The first execution may have stored something before a crash.
    let mut is_repeated = run.row.attempts > 1;
    loop {
        let executed = tokio::select! {
            executed = execute_once(shared, run, is_repeated) => executed,
            () = cancel_until_it_stops(shared, run, &mut cancelled) => unreachable!("it never returns"),
            // The engine goes on with it, and another process takes its end.
            () = drains(shared), if shared.is_shared => return None,
        };
        match executed {
            Ok(Some(end)) => return Some(end),
            // Drained, or about to be.
            Ok(None) | Err(DriveError::Draining) => return None,
            // Another process runs the thread, or the store did not answer: its turn comes later.
            Err(
                error @ (DriveError::Open(OpenError::Busy { .. })
                | DriveError::Checkpoint(
                    CheckpointError::Store { .. } | CheckpointError::Fenced { .. },
                )
                | DriveError::Engine {
                    is_refusal: false, ..
                }),
            ) => {
                tracing::debug!(run = %run.row.id, ?error, "a run is tried again");
                let is_begun = !matches!(error, DriveError::Open(OpenError::Busy { .. }));
                if *cancelled.borrow() && !is_begun {
                    return Some(cancelled_end(shared.now()));
                }
                // Of a run that may have begun, the thread says how it ends, also if it is cancelled.
                is_repeated = true;
            }
            // What a worker said.
            Err(DriveError::Engine { code, message, .. }) => {
                return Some(failed(&code, &message, shared.now()));
            }
            Err(error) => return Some(failed(error.code(), &error.to_string(), shared.now())),
        }
        let mut draining = shared.is_draining.subscribe();
        if *draining.borrow_and_update() {
            return None;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = draining.changed() => return None,
            _ = cancelled.changed() => {}
        }
        pause = (pause * 2).min(LOOK_AGAIN);
    }
}

/// Cancels the run whenever that was requested, again and again: a request that arrives before the run has claimed its thread is
/// forgotten by the claim.
async fn cancel_until_it_stops(
    shared: &QueueState,
    run: &TakenRun,
    cancelled: &mut watch::Receiver<bool>,
) {
    loop {
        if *cancelled.borrow_and_update() {
            // Only this run can be running on its thread here; a failure is retried like a request that came too early.
            let _ = shared.runtime.cancel(&run.row.thread).await;
            tokio::time::sleep(CANCEL_AGAIN).await;
        } else if cancelled.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn execute_once(
    shared: &QueueState,
    run: &TakenRun,
    is_repeated: bool,
) -> Result<Option<RunEnd>, DriveError> {
    let (thread, id) = (&run.row.thread, run.row.id);
    let queued = QueuedRequest::from_bytes(&run.request, thread).map_err(CheckpointError::from)?;
    let graph = shared.runtime.local.graph(&queued.graph, thread)?;
    let options = queued.options(id)?;
    let mut request = queued.request;
    // An engine that gets a request again replies as it did before.
    if is_repeated && !shared.is_shared {
        let loaded = shared.runtime.local.store().load(thread).await?;
        if let Some(loaded) = loaded {
            let state = read_state(&graph, thread, &loaded.history)?;
            if state.is_some_and(|state| state.run.run == id) {
                if loaded.head.status != Status::Running {
                    let outcome = stored_outcome(shared, &graph, run, &loaded).await?;
                    return Ok(run_end(&outcome, shared.now()));
                }
                request = ThreadRequest::Recover;
            }
        }
    }
    let driver = shared.runtime.driver();
    match driver.execute(thread, &graph, request, &options).await {
        Ok(Some(RequestEnd {
            driven: Some(driven),
            ..
        })) => Ok(run_end(&driven.0, shared.now())),
        Ok(Some(RequestEnd { seq, .. })) if shared.is_shared => {
            let loaded = shared.runtime.loaded(thread).await?;
            let stop = shared.runtime.local.stop_at(thread, seq, &loaded).await?;
            // A change has no stop.
            let outcome = stop.unwrap_or(Outcome::Finished);
            Ok(run_end(&outcome, shared.now()))
        }
        // A change without a run, or answers that the thread's owner takes in. After a crash before its end was stored, a
        // change is made again: the log does not have the ids of changes.
        Ok(_) => Ok(Some(ended(RunStatus::Success, Json::Null, shared.now()))),
        Err(DriveError::Open(OpenError::Taken { .. })) => {
            let loaded = shared.runtime.loaded(thread).await?;
            let outcome = stored_outcome(shared, &graph, run, &loaded).await?;
            Ok(run_end(&outcome, shared.now()))
        }
        Err(error) => Err(error),
    }
}

/// Returns how a run stopped, which its thread is done with. Its state may have been changed since.
async fn stored_outcome(
    shared: &QueueState,
    graph: &Arc<Definition>,
    run: &TakenRun,
    loaded: &Loaded,
) -> Result<Outcome, DriveError> {
    let (thread, id) = (&run.row.thread, run.row.id);
    let local = &shared.runtime.local;
    if let Some(outcome) = local.stop_at(thread, loaded.head.seq, loaded).await? {
        return Ok(outcome);
    }
    let states = shared.runtime.states_of(graph, thread, None, LOOKED_BACK);
    let states = states.await?;
    let mut of_run = states.iter().filter(|state| state.run.run == id);
    let stopped = of_run.find(|state| state.stop.is_some());
    let outcome = match stopped {
        Some(stopped) => local.stop_at(thread, stopped.seq, loaded).await?,
        None => None,
    };
    // A request that only changes the thread has no stop.
    Ok(outcome.unwrap_or(Outcome::Finished))
}

/// Returns how a run with this outcome ended; `None` if it did not.
fn run_end(outcome: &Outcome, at: Timestamp) -> Option<RunEnd> {
    Some(match outcome {
        Outcome::Finished => ended(RunStatus::Success, Json::Null, at),
        Outcome::Paused(_) | Outcome::Breakpoint(_) => {
            ended(RunStatus::Interrupted, Json::Null, at)
        }
        Outcome::Cancelled => cancelled_end(at),
        Outcome::StepLimit => failed(
            "step-limit",
            "the run reached its step limit; resume it to allow as many supersteps again",
            at,
        ),
        Outcome::Failed(failures) => {
            let first = failures.first();
            let code = first.map_or("failed", |first| {
                first.code.as_deref().unwrap_or(first.kind.code())
            });
            let message = first.map_or("", |first| first.message.as_str());
            failed(code, message, at)
        }
        Outcome::Drained => return None,
    })
}

fn cancelled_end(at: Timestamp) -> RunEnd {
    let error = json!({ "error": "cancelled", "message": "the run was cancelled" });
    ended(RunStatus::Interrupted, error, at)
}

fn failed(code: &str, message: &str, at: Timestamp) -> RunEnd {
    let error = json!({ "error": code, "message": message });
    ended(RunStatus::Error, error, at)
}

fn ended(status: RunStatus, error: Json, at: Timestamp) -> RunEnd {
    RunEnd { status, error, at }
}

/// How often the queue looks for runs that another process submitted, and for ends that nothing reported.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const SHORTEST_WAIT: Duration = Duration::from_millis(2);
/// How often a shared queue looks whether a run that another process waits for has ended.
const END_POLL: Duration = Duration::from_millis(100);
/// How often a process touches the runs that it waits for.
const TOUCH_EVERY: Duration = Duration::from_secs(2);
/// How often the only process of a queue looks for runs that are marked as running and that it does not execute.
const RELEASE_EVERY: Duration = Duration::from_secs(2);
/// How many entries back the stop of a run is looked for.
const LOOKED_BACK: u32 = 1_000;
/// How long a run goes untouched before another process takes it over. Longer than clocks of servers differ.
const IDLE: Duration = Duration::from_secs(15);
const CANCEL_AGAIN: Duration = Duration::from_millis(20);
/// Number of runs that are taken with one call to the registry.
const TAKEN_AT_ONCE: usize = 256;
