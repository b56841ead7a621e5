//! The local driver: one process, tokio, any checkpointer.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep_core::__private::lock;
use superstep_core::checkpoint::{Answer, BoxFuture, Commit, Loaded};
use superstep_core::driver::{NodeCache, ThreadRequest};
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::graph::Definition;
use superstep_core::run::{RunOptions, RunReport, Segment, Suspension};
use superstep_core::store::Store;
use superstep_core::{Epoch, Moment, Outcome, Run, RunId, Seq, Step, ThreadId, Timestamp};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use crate::clock::Clock;
use crate::drive::leases::{LeaseGuard, Leases};
use crate::drive::segment::DispatchedTasks;
use crate::drive::{DriveError, Driver, RequestEnd};
use crate::live_bus::{LiveBus, LiveMessage};
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::running::{Running, Surroundings, lost};
use crate::spans;

/// Drives threads in this process: whole runs, or [segments](LocalDriver::segment) of them for a cluster. Cheap to clone.
#[derive(Clone)]
pub struct LocalDriver {
    inner: Arc<Inner>,
}

struct Inner {
    store: RetryingCheckpointer,
    clock: Clock,
    cache: Arc<dyn NodeCache>,
    permits: Arc<Semaphore>,
    /// Graphs by name, for resuming threads whose state type the caller does not have.
    graphs: Mutex<BTreeMap<String, Arc<Definition>>>,
    /// How to signal each run that this process drives. Several of one thread race for it, and all but one end at their claim.
    runs: Mutex<BTreeMap<ThreadId, Vec<watch::Sender<Signal>>>>,
    live_bus: Arc<dyn LiveBus>,
    long_term: Option<Arc<dyn Store>>,
    dispatched: DispatchedTasks,
    draining: AtomicBool,
    leases: Arc<Leases>,
    /// Runs that nobody waits for.
    background: Mutex<JoinSet<()>>,
}

/// Who makes sure that a run in progress is not forgotten.
#[derive(Clone, Copy)]
pub(crate) enum Keeper {
    /// This process: it holds a lease of the thread.
    Process,
    /// A cluster, whose other processes may request a cancel. The driver checks for that at this interval.
    Cluster { cancel_poll: Duration },
}

/// What the outside asks of a run. A later signal replaces earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    Continue,
    Drain,
    Cancel,
}

impl LocalDriver {
    pub(crate) fn new(
        store: RetryingCheckpointer,
        clock: Clock,
        cache: Arc<dyn NodeCache>,
        tasks_max: usize,
        live_bus: Arc<dyn LiveBus>,
        long_term: Option<Arc<dyn Store>>,
        lease: Duration,
    ) -> Self {
        let inner = Inner {
            leases: Leases::new(lease, store.clone(), clock.clone()),
            store,
            clock,
            cache,
            permits: Arc::new(Semaphore::new(tasks_max.min(Semaphore::MAX_PERMITS))),
            graphs: Mutex::default(),
            runs: Mutex::default(),
            live_bus,
            long_term,
            dispatched: DispatchedTasks::default(),
            draining: AtomicBool::new(false),
            background: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn store(&self) -> &RetryingCheckpointer {
        &self.inner.store
    }

    pub(crate) fn cache(&self) -> &Arc<dyn NodeCache> {
        &self.inner.cache
    }

    pub(crate) fn live_bus(&self) -> &Arc<dyn LiveBus> {
        &self.inner.live_bus
    }

    pub(crate) fn dispatched(&self) -> &DispatchedTasks {
        &self.inner.dispatched
    }

    /// Returns the graph with this name. The error for an unknown one names the thread.
    pub(crate) fn graph(
        &self,
        name: &str,
        thread: &ThreadId,
    ) -> Result<Arc<Definition>, DriveError> {
        let graph = lock(&self.inner.graphs).get(name).cloned();
        graph.ok_or_else(|| DriveError::UnknownGraph {
            thread: thread.clone(),
            graph: name.to_owned(),
        })
    }

    /// Whether this process drives a run of the thread.
    pub(crate) fn is_driving(&self, thread: &ThreadId) -> bool {
        lock(&self.inner.runs).contains_key(thread)
    }

    pub(crate) fn refuse_runs(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
    }

    pub(crate) async fn drain(&self) {
        self.refuse_runs();
        let signals: Vec<_> = lock(&self.inner.runs).values().flatten().cloned().collect();
        for signal in signals {
            signal.send_if_modified(|is| {
                *is < Signal::Drain && std::mem::replace(is, Signal::Drain) != Signal::Drain
            });
            signal.closed().await;
        }
        self.inner.leases.end_given_up_or_warn().await;
    }

    /// Drives something in the background.
    pub(crate) fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut background = lock(&self.inner.background);
        while background.try_join_next().is_some() {}
        background.spawn(work);
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.inner.leases
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            entropy: entropy(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    async fn execute(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: ThreadRequest,
        options: &RunOptions,
    ) -> Result<Option<RequestEnd>, DriveError> {
        match request {
            ThreadRequest::Answer(_) => self.answer(thread, graph, &request, options).await,
            ThreadRequest::ResumeWith { .. } | ThreadRequest::GoTo { .. } => {
                self.resume_with(thread, graph, request, options).await
            }
            ThreadRequest::Update { .. } | ThreadRequest::Fork { .. } | ThreadRequest::Edit(_) => {
                let loaded = self.store().load(thread).await?;
                let seq = self.change_once(thread, graph, &request, loaded).await?;
                let run = options.run.unwrap_or_else(new_run_id);
                let due = Vec::new();
                Ok(Some(RunReport { run, seq, due }.into()))
            }
            // With an id, the request may be a repeated one, whose run is in progress.
            ThreadRequest::Start { .. } | ThreadRequest::Resume if options.run.is_none() => {
                self.run(thread, graph, request, options).await.map(Some)
            }
            ThreadRequest::Start { .. } | ThreadRequest::Resume | ThreadRequest::Recover => {
                let end = self.take_over(thread, graph, request, options, None);
                end.await.map(Some)
            }
        }
    }

    async fn run(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: ThreadRequest,
        options: &RunOptions,
    ) -> Result<RequestEnd, DriveError> {
        let loaded = self.store().load(thread).await?;
        self.run_from(thread, graph, loaded, request, options).await
    }

    /// Runs a thread from what was loaded.
    async fn run_from(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        loaded: Option<Loaded>,
        request: ThreadRequest,
        options: &RunOptions,
    ) -> Result<RequestEnd, DriveError> {
        let (options, moment) = (options.clone(), self.moment());
        let run = Run::open(graph, thread, loaded, request, options, moment)?;
        let (outcome, run) = self.drive(Segment::whole(run)).await?;
        Ok(RequestEnd::driven(outcome, run))
    }

    /// Claims a thread from the owner of its run, and drives the run until it stops.
    ///
    /// Between the load and the claim, the owner may commit once more: it is alive, or it died with a commit in flight to the
    /// database. That commit fences the claim but does not change the owner, so the claim is retried from a new load. If
    /// another process claims the thread first, the epoch has changed, and the thread is busy. The same if `owner` is given,
    /// and the thread has another one already.
    async fn take_over(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: ThreadRequest,
        options: &RunOptions,
        mut owner: Option<Epoch>,
    ) -> Result<RequestEnd, DriveError> {
        let mut attempts = 1;
        loop {
            let loaded = self.store().load(thread).await?;
            let epoch = loaded.as_ref().map(|loaded| loaded.head.epoch);
            if owner.is_some() && owner != epoch {
                let thread = thread.clone();
                return Err(OpenError::Busy { thread }.into());
            }
            owner = epoch;
            let (request, moment) = (request.clone(), self.moment());
            let run = Run::open(graph, thread, loaded, request, options.clone(), moment)?;
            let busy = match self.drive(Segment::whole(run)).await {
                Err(error @ DriveError::Open(OpenError::Busy { .. })) => error,
                driven => return driven.map(|(outcome, run)| RequestEnd::driven(outcome, run)),
            };
            let glance = self.store().glance(thread, None).await?;
            if glance.map(|glance| glance.epoch) != owner || attempts == TAKEOVER_ATTEMPTS_MAX {
                return Err(busy);
            }
            attempts += 1;
        }
    }

    /// Stores answers and resumes their thread, unless it is running: then its owner finds the answers.
    async fn answer(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: &ThreadRequest,
        options: &RunOptions,
    ) -> Result<Option<RequestEnd>, DriveError> {
        // A draining process could not act on the answer. The caller keeps it and sends it to another process.
        if self.inner.draining.load(Ordering::SeqCst) {
            return Err(DriveError::Draining);
        }
        let mut options = options.clone();
        if self
            .check_resumable(thread, graph, request, &options)
            .await?
        {
            // The answer continues the run that asks, under its id; it is no new request under an id that was used.
            options.run = None;
        }
        let answers = request.answers();
        let loaded = self.store().answer_and_load(thread, answers).await?;
        match self
            .run_from(thread, graph, loaded, ThreadRequest::Resume, &options)
            .await
        {
            // The thread's owner has seen the answers or will, or the thread has finished and needs none.
            Err(DriveError::Open(OpenError::Busy { .. } | OpenError::NothingToRun { .. })) => {
                Ok(None)
            }
            end => end.map(Some),
        }
    }

    /// Stores the answers of a resume, then resumes the thread with what its caller writes.
    ///
    /// The answers are stored first and cannot be taken back, so everything that could refuse the rest is checked before. If
    /// this is repeated under the id of a run, its answers and its write are in the store already, and the run is recovered or
    /// was taken.
    async fn resume_with(
        &self,
        thread: &ThreadId,
        graph: &Arc<Definition>,
        request: ThreadRequest,
        options: &RunOptions,
    ) -> Result<Option<RequestEnd>, DriveError> {
        if self.inner.draining.load(Ordering::SeqCst) {
            return Err(DriveError::Draining);
        }
        let is_repeated = self
            .check_resumable(thread, graph, &request, options)
            .await?;
        let is_answer = request.is_answer();
        let answers: &[Answer] = match is_repeated {
            true => &[],
            false => request.answers(),
        };
        let end = match options.run {
            None if answers.is_empty() => self.run(thread, graph, request, options).await,
            None => {
                let loaded = self.store().answer_and_load(thread, answers).await?;
                self.run_from(thread, graph, loaded, request, options).await
            }
            // A takeover loads the thread itself, as often as it has to.
            Some(_) => {
                if !answers.is_empty() {
                    self.store().answer(thread, answers).await?;
                }
                self.take_over(thread, graph, request, options, None).await
            }
        };
        match end {
            // As for any answer: the thread's owner has seen it or will, or the thread needs none.
            Err(DriveError::Open(OpenError::Busy { .. } | OpenError::NothingToRun { .. }))
                if is_answer =>
            {
                Ok(None)
            }
            end => end.map(Some),
        }
    }

    async fn cancel(&self, thread: &ThreadId) -> Result<(), DriveError> {
        let signals = lock(&self.inner.runs).get(thread).cloned();
        let Some(signals) = signals else {
            return Ok(self.store().request_cancel(thread).await?);
        };
        for signal in signals {
            signal.send_if_modified(|is| std::mem::replace(is, Signal::Cancel) != Signal::Cancel);
            signal.closed().await;
        }
        Ok(())
    }

    /// Drives a whole run until it stops.
    pub(crate) async fn drive(&self, segment: Segment) -> Result<(Outcome, Box<Run>), DriveError> {
        match self.drive_segment(segment, Keeper::Process).await? {
            (SegmentOutcome::Stopped(outcome), run) => Ok((outcome, run)),
            (SegmentOutcome::Suspended(_), _) => {
                unreachable!("a segment without limits never suspends")
            }
        }
    }

    /// Drives a segment until its run stops or suspends.
    pub(crate) async fn drive_segment(
        &self,
        segment: Segment,
        keeper: Keeper,
    ) -> Result<(SegmentOutcome, Box<Run>), DriveError> {
        if !spans::are_wanted() {
            return self.drive_untraced(segment, keeper).await;
        }
        let span = spans::of_run(segment.run());
        Box::pin(self.drive_untraced(segment, keeper))
            .instrument(span)
            .await
    }

    /// The whole driver loop. A rule that would be added here belongs in core.
    async fn drive_untraced(
        &self,
        mut segment: Segment,
        keeper: Keeper,
    ) -> Result<(SegmentOutcome, Box<Run>), DriveError> {
        let (registration, mut signals) = RunRegistration::new(&self.inner, segment.run().thread());
        // Checked after the run is registered, so that no run slips past a drain.
        if self.inner.draining.load(Ordering::SeqCst) {
            return Err(DriveError::Draining);
        }
        let surroundings = Arc::new(self.surroundings(segment.run().thread()));
        let mut is_lost = surroundings.lost.subscribe();
        let mut running = Running::new(surroundings);
        let mut cancel_checks = CancelChecks::for_run(keeper);
        let mut lease = None;
        let outcome = loop {
            match segment.next_step() {
                Step::Start(tasks) => running.start(tasks),
                Step::Drop(tasks) => running.drop_tasks(&tasks),
                Step::Save(mut commit) => {
                    if let (Keeper::Process, true) = (keeper, commit.is_claim())
                        && let Some(end) = self.inner.leases.starting_now()
                    {
                        commit.lease = Some(end.until);
                        // Held before it is stored, so that it is ended whatever becomes of the reply.
                        let leases = &self.inner.leases;
                        lease = Some(leases.hold(&commit.thread, commit.head.epoch, end));
                    }
                    let saved = match self.inner.store.save(&commit).await {
                        // Another process claimed the thread first, and nothing of this run has started.
                        Err(CheckpointError::Fenced { thread, .. }) if commit.is_claim() => {
                            lease.into_iter().for_each(LeaseGuard::stopped);
                            return Err(OpenError::Busy { thread }.into());
                        }
                        saved => saved?,
                    };
                    registration.notify(commit.head.seq);
                    segment.saved(saved, self.now())?;
                    if self.inner.draining.load(Ordering::SeqCst) {
                        segment.suspend_soon();
                    }
                }
                Step::Record(record) => {
                    self.inner.store.record(&record).await?;
                    segment.recorded()?;
                }
                // A task has already ended; only a signal takes precedence.
                Step::Wait { .. } if running.has_ended() && !is_signaled(&signals) => {
                    if let Some((task, end)) = running.next_ended_already().await {
                        segment.task_ended(task, end, self.now())?;
                    }
                }
                Step::Wait { until } => tokio::select! {
                    // Signals first: a chain of tasks that never wait must not outrun them.
                    biased;
                    signal = next_signal(&mut signals) => match signal {
                        Signal::Continue => {}
                        Signal::Drain => segment.drain(),
                        Signal::Cancel => segment.cancel(),
                    },
                    epoch = lost(&mut is_lost) => {
                        running.stop().await;
                        let thread = segment.run().thread().clone();
                        return Err(CheckpointError::Fenced { thread, epoch }.into());
                    }
                    news = running.next_until(until) => match news {
                        Some((task, end)) => segment.task_ended(task, end, self.now())?,
                        None => segment.time_passed(self.now()),
                    },
                    () = cancel_checks.next() => {
                        let glance = self.inner.store.glance(segment.run().thread(), None).await?;
                        if glance.is_some_and(|glance| glance.cancel) {
                            segment.cancel();
                        }
                    }
                },
                Step::Suspend(suspension) => break SegmentOutcome::Suspended(suspension),
                Step::Stop(outcome) => break SegmentOutcome::Stopped(outcome),
            }
        };
        running.stop().await;
        // The lease of a drained run is given up instead, so that another process can resume it at once.
        if let (Some(lease), false) = (lease, outcome.is_drained()) {
            lease.stopped();
        }
        Ok((outcome, segment.into_run()))
    }

    /// Persists a change that is not part of a run.
    pub(crate) async fn save_change(&self, commit: &Commit) -> Result<(), DriveError> {
        self.inner.store.save(commit).await?;
        let notice = LiveMessage::Entry(commit.head.seq);
        self.inner.live_bus.publish(&commit.thread, notice);
        Ok(())
    }

    pub(crate) fn surroundings(&self, thread: &ThreadId) -> Surroundings {
        Surroundings {
            store: self.inner.store.clone(),
            cache: self.inner.cache.clone(),
            clock: self.inner.clock.clone(),
            permits: self.inner.permits.clone(),
            live_bus: self.inner.live_bus.clone(),
            long_term: self.inner.long_term.clone(),
            thread: thread.clone(),
            lost: watch::Sender::new(None),
        }
    }
}

impl Driver for LocalDriver {
    fn register(&self, graph: &Arc<Definition>) {
        lock(&self.inner.graphs).insert(graph.name().to_owned(), graph.clone());
    }

    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        graph: &'a Arc<Definition>,
        request: ThreadRequest,
        options: &'a RunOptions,
    ) -> BoxFuture<'a, Result<Option<RequestEnd>, DriveError>> {
        Box::pin(self.execute(thread, graph, request, options))
    }

    fn recover<'a>(
        &'a self,
        thread: &'a ThreadId,
        graph: &'a Arc<Definition>,
        owner: Epoch,
        options: &'a RunOptions,
    ) -> BoxFuture<'a, Result<Option<RequestEnd>, DriveError>> {
        Box::pin(async move {
            let end = self.take_over(thread, graph, ThreadRequest::Recover, options, Some(owner));
            end.await.map(Some)
        })
    }

    fn cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(), DriveError>> {
        Box::pin(self.cancel(thread))
    }
}

impl fmt::Debug for LocalDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalDriver")
            .field("runs", &lock(&self.inner.runs).len())
            .finish_non_exhaustive()
    }
}

/// How often a takeover is tried while the owner keeps committing. Each attempt costs a load; a dead owner commits at most
/// once.
const TAKEOVER_ATTEMPTS_MAX: u32 = 8;

/// Returns an id that no other run has.
pub(crate) fn new_run_id() -> RunId {
    RunId::from_bytes((u128::from(entropy()) << 64 | u128::from(entropy())).to_be_bytes())
}

/// Returns a random number: the standard library seeds its hashers with the system's randomness.
fn entropy() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// How the driver left a run: stopped or suspended.
pub(crate) enum SegmentOutcome {
    Stopped(Outcome),
    Suspended(Suspension),
}

impl SegmentOutcome {
    fn is_drained(&self) -> bool {
        matches!(self, SegmentOutcome::Stopped(Outcome::Drained))
    }
}

/// Decides when to check for cancel requests of other processes.
struct CancelChecks {
    interval: Option<Duration>,
    next: Instant,
}

impl CancelChecks {
    fn for_run(keeper: Keeper) -> Self {
        let interval = match keeper {
            Keeper::Process => None,
            Keeper::Cluster { cancel_poll } => Some(cancel_poll),
        };
        let next = Instant::now() + interval.unwrap_or_default();
        Self { interval, next }
    }

    /// Returns when the next check is due; never, without an interval.
    async fn next(&mut self) {
        let Some(interval) = self.interval else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(self.next).await;
        self.next = Instant::now() + interval;
    }
}

fn is_signaled(signals: &watch::Receiver<Signal>) -> bool {
    signals.has_changed().unwrap_or(false)
}

async fn next_signal(signals: &mut watch::Receiver<Signal>) -> Signal {
    match signals.changed().await {
        Ok(()) => *signals.borrow_and_update(),
        Err(_) => std::future::pending().await,
    }
}

/// Registration of a run, which can be signaled as long as this lives.
struct RunRegistration<'a> {
    inner: &'a Inner,
    thread: ThreadId,
    signal: watch::Sender<Signal>,
}

impl<'a> RunRegistration<'a> {
    fn new(inner: &'a Inner, thread: &ThreadId) -> (Self, watch::Receiver<Signal>) {
        let (sender, receiver) = watch::channel(Signal::Continue);
        let mut runs = lock(&inner.runs);
        runs.entry(thread.clone()).or_default().push(sender.clone());
        (
            Self {
                inner,
                thread: thread.clone(),
                signal: sender,
            },
            receiver,
        )
    }

    fn notify(&self, seq: Seq) {
        self.inner
            .live_bus
            .publish(&self.thread, LiveMessage::Entry(seq));
    }
}

impl Drop for RunRegistration<'_> {
    fn drop(&mut self) {
        let mut runs = lock(&self.inner.runs);
        let Some(signals) = runs.get_mut(&self.thread) else {
            return;
        };
        signals.retain(|signal| !signal.same_channel(&self.signal));
        if signals.is_empty() {
            runs.remove(&self.thread);
        }
    }
}
