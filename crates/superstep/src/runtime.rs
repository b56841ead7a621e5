//! The local driver: one process, tokio, any checkpointer.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use superstep_core::checkpoint::{
    Answer, Commit, InterruptQuery, Loaded, Status, ThreadQuery, ThreadRow,
};
use superstep_core::driver::NodeCache;
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::graph::Definition;
use superstep_core::run::{
    OpenQuestion, RunCommand, RunOptions, Segment, Suspension, graph_name, open_questions,
};
use superstep_core::{
    Checkpointer, Graph, Moment, Outcome, Run, RunId, Seq, State, Step, ThreadId,
};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tracing::Instrument;

use crate::cache::MemoryCache;
use crate::clock::Clock;
use crate::drive_error::DriveError;
use crate::engine::Engine;
use crate::notices::Notices;
use crate::patient::Patient;
use crate::running::{Running, Surroundings, lost};
use crate::segment::Desk;
use crate::spans;
use crate::thread::Thread;
use crate::wire::{Notice, Wire};

/// Drives threads in this process. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Patient,
    pub(crate) clock: Clock,
    cache: Arc<dyn NodeCache>,
    permits: Arc<Semaphore>,
    /// Graphs by name, for threads that are taken up without their type at hand.
    graphs: Mutex<BTreeMap<String, Arc<Definition>>>,
    /// Runs under way in this process.
    runs: Mutex<BTreeMap<ThreadId, watch::Sender<Wish>>>,
    pub(crate) wire: Arc<dyn Wire>,
    /// Where runs are made, if not here.
    pub(crate) engine: Option<Arc<dyn Engine>>,
    pub(crate) desk: Desk,
    draining: AtomicBool,
}

/// What is wished of a run from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    GoOn,
    Drain,
    Cancel,
}

/// How a runtime is made.
pub struct RuntimeBuilder {
    store: Arc<dyn Checkpointer>,
    clock: Clock,
    cache: Arc<dyn NodeCache>,
    tasks_max: usize,
    patience: Duration,
    engine: Option<Arc<dyn Engine>>,
    wire: Arc<dyn Wire>,
}

impl RuntimeBuilder {
    /// How many tasks may run at once, over all threads. 1,000 unless said.
    #[must_use]
    pub fn concurrent_tasks(mut self, tasks_max: usize) -> Self {
        self.tasks_max = tasks_max.max(1);
        self
    }

    /// How long a checkpointer that does not answer is asked again. 30 seconds unless said.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where results of cached nodes are kept. In memory unless said.
    #[must_use]
    pub fn cache(mut self, cache: impl NodeCache) -> Self {
        self.cache = Arc::new(cache);
        self
    }

    /// Where runs are made. In this process unless said; with an engine, by its workers, which need the same graphs and
    /// the same checkpointer.
    #[must_use]
    pub fn engine(mut self, engine: impl Engine) -> Self {
        self.engine = Some(Arc::new(engine));
        self
    }

    /// How those who watch are told what happens. In this process unless said. Runtimes that run threads and runtimes that
    /// watch them, in whatever processes, need wires that meet.
    #[must_use]
    pub fn wire(mut self, wire: impl Wire) -> Self {
        self.wire = Arc::new(wire);
        self
    }

    /// What tells the time. The system's clock unless said.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The runtime.
    pub fn build(self) -> Runtime {
        let inner = Inner {
            store: Patient {
                store: self.store,
                patience: self.patience,
            },
            clock: self.clock,
            cache: self.cache,
            permits: Arc::new(Semaphore::new(self.tasks_max.min(Semaphore::MAX_PERMITS))),
            graphs: Mutex::default(),
            runs: Mutex::default(),
            wire: self.wire,
            engine: self.engine,
            desk: Desk::default(),
            draining: AtomicBool::new(false),
        };
        Runtime {
            inner: Arc::new(inner),
        }
    }
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("tasks_max", &self.tasks_max)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime over a checkpointer, with defaults for everything else.
    pub fn new(store: impl Checkpointer) -> Self {
        Self::builder(store).build()
    }

    /// Begins a runtime.
    pub fn builder(store: impl Checkpointer) -> RuntimeBuilder {
        RuntimeBuilder {
            store: Arc::new(store),
            clock: Clock::default(),
            cache: Arc::new(MemoryCache::default()),
            tasks_max: 1_000,
            patience: Duration::from_secs(30),
            engine: None,
            wire: Arc::new(Notices::default()),
        }
    }

    /// A thread of a graph. It need not exist yet; the first run makes it.
    pub fn thread<S: State>(
        &self,
        graph: &Graph<S>,
        thread: impl AsRef<str>,
    ) -> Result<Thread<S>, DriveError> {
        let id: ThreadId = thread.as_ref().parse()?;
        self.register(graph);
        Ok(Thread::new(self.clone(), graph.clone(), id))
    }

    /// Makes a graph known by its name, so that its threads can be taken up by [`Runtime::recover`].
    pub fn register<S: State>(&self, graph: &Graph<S>) {
        self.register_definition(graph.definition());
    }

    /// Makes a graph known whose type is not at hand.
    pub fn register_definition(&self, graph: &Arc<Definition>) {
        if let Some(engine) = &self.inner.engine {
            engine.register(graph);
        }
        lock(&self.inner.graphs).insert(graph.name().to_owned(), graph.clone());
    }

    /// The checkpointer itself, which is asked once: what the driver does with it, it asks again.
    pub fn checkpointer(&self) -> &Arc<dyn Checkpointer> {
        &self.inner.store.store
    }

    /// Where results of cached nodes are kept, for instance to clear them.
    pub fn cache(&self) -> &Arc<dyn NodeCache> {
        &self.inner.cache
    }

    /// How those who watch are told what happens.
    pub fn wire(&self) -> &Arc<dyn Wire> {
        &self.inner.wire
    }

    /// Lists threads.
    pub async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRow>, DriveError> {
        Ok(self.inner.store.threads(query).await?)
    }

    /// Lists questions.
    pub async fn questions(&self, query: &InterruptQuery) -> Result<Vec<OpenQuestion>, DriveError> {
        let rows = self.inner.store.interrupts(query).await?;
        Ok(open_questions(rows).map_err(CheckpointError::from)?)
    }

    /// Takes up every thread whose run did not stop, because its process died or was drained. Their graphs must
    /// be registered. Gives each thread with how it went.
    pub async fn recover(
        &self,
    ) -> Result<Vec<(ThreadId, Result<Outcome, DriveError>)>, DriveError> {
        let mut done = Vec::new();
        for thread in self.inner.store.unfinished(RECOVERED_AT_ONCE).await? {
            if lock(&self.inner.runs).contains_key(&thread) {
                continue;
            }
            let outcome = self.recover_thread(&thread).await;
            done.push((thread, outcome));
        }
        Ok(done)
    }

    async fn recover_thread(&self, thread: &ThreadId) -> Result<Outcome, DriveError> {
        let graph = |loaded: Option<&Loaded>| self.graph_of(thread, loaded);
        let recovered = self.take_over(thread, graph, &RunOptions::default()).await;
        Ok(recovered?.0)
    }

    /// Takes a thread over from the owner of its run, and drives the run until it stops.
    ///
    /// Between the load and the claim the owner may commit once more: it is alive, or it died with a commit on its way into
    /// the database. Its commit fences the claim, but does not make the thread another's, so it is loaded again. Only a
    /// process that claims the thread first keeps it: then the epoch has changed, and the thread is busy.
    pub(crate) async fn take_over(
        &self,
        thread: &ThreadId,
        graph: impl Fn(Option<&Loaded>) -> Result<Arc<Definition>, DriveError>,
        options: &RunOptions,
    ) -> Result<(Outcome, Run), DriveError> {
        let mut attempts = 1;
        loop {
            let loaded = self.inner.store.load(thread).await?;
            let owner = loaded.as_ref().map(|loaded| loaded.head.epoch);
            let run = Run::open(
                &graph(loaded.as_ref())?,
                thread,
                loaded,
                RunCommand::Recover,
                options.clone(),
                self.moment(),
            )?;
            let busy = match self.drive(run).await {
                Err(error @ DriveError::Open(OpenError::Busy { .. })) => error,
                driven => return driven,
            };
            let glance = self.inner.store.glance(thread, None).await?;
            if glance.map(|glance| glance.epoch) != owner || attempts == TAKEOVER_ATTEMPTS_MAX {
                return Err(busy);
            }
            attempts += 1;
        }
    }

    fn graph_of(
        &self,
        thread: &ThreadId,
        loaded: Option<&Loaded>,
    ) -> Result<Arc<Definition>, DriveError> {
        let name = match loaded {
            Some(loaded) => graph_name(thread, &loaded.history)
                .map_err(CheckpointError::from)?
                .unwrap_or_default(),
            None => {
                return Err(CheckpointError::NoThread {
                    thread: thread.clone(),
                }
                .into());
            }
        };
        self.graph_named(&name, thread)
    }

    pub(crate) fn graph_named(
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

    /// Answers every question whose deadline has passed as it says itself, and goes on with the threads.
    /// Gives how many there were.
    pub async fn expire_questions(&self) -> Result<usize, DriveError> {
        let now = self.now();
        let due = self.inner.store.overdue(now, RECOVERED_AT_ONCE).await?;
        let due = open_questions(due).map_err(CheckpointError::from)?;
        let mut expired = 0;
        for OpenQuestion { question, row } in due {
            let Some(body) = question.answer_at_deadline() else {
                continue;
            };
            let answer = Answer {
                interrupt: question.id,
                body,
                by: "deadline".to_owned(),
                at: now,
            };
            match self.inner.store.answer(&row.thread, &[answer]).await {
                Ok(()) => expired += 1,
                // A person was quicker.
                Err(CheckpointError::NotOpen { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            self.go_on_after_answer(&row.thread, RunOptions::default())
                .await?;
        }
        Ok(expired)
    }

    /// An answer is stored: goes on with its thread, unless it is running and its owner will find the answer.
    pub(crate) async fn go_on_after_answer(
        &self,
        thread: &ThreadId,
        options: RunOptions,
    ) -> Result<Option<(Outcome, Run)>, DriveError> {
        let loaded = self.inner.store.load(thread).await?;
        let graph = self.graph_of(thread, loaded.as_ref())?;
        let run = match Run::open(
            &graph,
            thread,
            loaded,
            RunCommand::Resume,
            options,
            self.moment(),
        ) {
            Ok(run) => run,
            Err(OpenError::Busy { .. } | OpenError::NothingToRun { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match self.drive(run).await {
            Ok(driven) => Ok(Some(driven)),
            // Somebody else goes on with it, and has seen the answer.
            Err(DriveError::Open(OpenError::Busy { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Cancels the run of a thread and returns when it has stopped. If another process runs it, that one is asked to.
    pub async fn cancel(&self, thread: &ThreadId) -> Result<(), DriveError> {
        if self.inner.engine.is_some() {
            return self.cancel_elsewhere(thread).await;
        }
        let wish = lock(&self.inner.runs).get(thread).cloned();
        match wish {
            Some(wish) => {
                wish.send_if_modified(|is| std::mem::replace(is, Wish::Cancel) != Wish::Cancel);
                wish.closed().await;
            }
            None => self.inner.store.request_cancel(thread).await?,
        }
        Ok(())
    }

    /// A worker looks for the wish while it runs the thread; one that takes it up puts the wish aside, so it is made again.
    async fn cancel_elsewhere(&self, thread: &ThreadId) -> Result<(), DriveError> {
        let store = &self.inner.store;
        loop {
            match store.glance(thread, None).await? {
                Some(glance) if glance.status == Status::Running => {
                    if !glance.cancel {
                        store.request_cancel(thread).await?;
                    }
                    tokio::time::sleep(CANCEL_POLL).await;
                }
                _ => return Ok(()),
            }
        }
    }

    /// The id of a run that is to be made: no other has it.
    pub(crate) fn new_run(&self) -> RunId {
        RunId::from_bytes((u128::from(dice()) << 64 | u128::from(dice())).to_be_bytes())
    }

    /// Begins no further runs. A [segment](Runtime::segment) that is under way is put down before its next superstep; any other
    /// run goes on.
    pub fn refuse_runs(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
    }

    /// Begins no further runs, lets every run stop at the end of its superstep, and returns when all have. Their
    /// threads are taken up by the next [`Runtime::recover`], here or elsewhere.
    pub async fn drain(&self) {
        self.refuse_runs();
        let wishes: Vec<_> = lock(&self.inner.runs).values().cloned().collect();
        for wish in wishes {
            wish.send_if_modified(|is| {
                *is < Wish::Drain && std::mem::replace(is, Wish::Drain) != Wish::Drain
            });
            wish.closed().await;
        }
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            dice: dice(),
        }
    }

    /// Returns what this runtime's [clock](RuntimeBuilder::clock) says.
    pub fn now(&self) -> superstep_core::Timestamp {
        self.inner.clock.now()
    }

    /// Drives a run until it stops.
    pub(crate) async fn drive(&self, run: Run) -> Result<(Outcome, Run), DriveError> {
        match self.drive_segment(Segment::whole(run), None).await? {
            (SegmentOutcome::Stopped(outcome), run) => Ok((outcome, run)),
            (SegmentOutcome::Suspended(_), _) => {
                unreachable!("a segment without limits never suspends")
            }
        }
    }

    /// Drives a segment until its run stops or suspends. With a `cancel_poll`, it checks that often whether another process
    /// requested a cancel.
    pub(crate) async fn drive_segment(
        &self,
        segment: Segment,
        cancel_poll: Option<Duration>,
    ) -> Result<(SegmentOutcome, Run), DriveError> {
        if !spans::are_wanted() {
            return self.drive_untraced(segment, cancel_poll).await;
        }
        let span = spans::of_run(segment.run());
        Box::pin(self.drive_untraced(segment, cancel_poll))
            .instrument(span)
            .await
    }

    /// The whole driver: if it grows a rule of its own, the rule belongs in core.
    async fn drive_untraced(
        &self,
        mut segment: Segment,
        cancel_poll: Option<Duration>,
    ) -> Result<(SegmentOutcome, Run), DriveError> {
        let (registered, mut wish) = Registered::new(&self.inner, segment.run().thread());
        // Looked at after the run is known, so that none slips past whoever drains.
        if self.inner.draining.load(Ordering::SeqCst) {
            return Err(DriveError::Draining);
        }
        let surroundings = Arc::new(self.surroundings(segment.run().thread()));
        let mut is_lost = surroundings.lost.subscribe();
        let mut running = Running::new(surroundings);
        let mut cancel_checks = CancelChecks::every(cancel_poll);
        let outcome = loop {
            match segment.next_step() {
                Step::Start(tasks) => running.start(tasks),
                Step::Drop(tasks) => running.drop_tasks(&tasks),
                Step::Save(commit) => {
                    let saved = match self.inner.store.save(&commit).await {
                        // Another process claimed the thread first, and nothing of this run has begun.
                        Err(CheckpointError::Fenced { thread, .. }) if commit.is_claim() => {
                            return Err(OpenError::Busy { thread }.into());
                        }
                        saved => saved?,
                    };
                    registered.tell(commit.head.seq);
                    segment.saved(saved, self.now())?;
                    if self.inner.draining.load(Ordering::SeqCst) {
                        segment.suspend_soon();
                    }
                }
                Step::Record(record) => {
                    self.inner.store.record(&record).await?;
                    segment.recorded()?;
                }
                // A task has ended already: only a signal comes before it.
                Step::Wait { .. } if running.has_ended() && !is_wished(&wish) => {
                    if let Some((task, end)) = running.next_ended_already().await {
                        segment.task_ended(task, end, self.now())?;
                    }
                }
                Step::Wait { until } => tokio::select! {
                    // Signals first: a chain of tasks that never wait must not outrun them.
                    biased;
                    wish = changed(&mut wish) => match wish {
                        Wish::GoOn => {}
                        Wish::Drain => segment.drain(),
                        Wish::Cancel => segment.cancel(),
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
        Ok((outcome, segment.into_run()))
    }

    /// Makes a change durable that is not part of a run.
    pub(crate) async fn save_change(&self, commit: &Commit) -> Result<(), DriveError> {
        self.inner.store.save(commit).await?;
        let notice = Notice::Entry(commit.head.seq);
        self.inner.wire.publish(&commit.thread, notice);
        Ok(())
    }

    pub(crate) fn surroundings(&self, thread: &ThreadId) -> Surroundings {
        Surroundings {
            store: self.inner.store.clone(),
            cache: self.inner.cache.clone(),
            clock: self.inner.clock.clone(),
            permits: self.inner.permits.clone(),
            wire: self.inner.wire.clone(),
            thread: thread.clone(),
            lost: watch::Sender::new(None),
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("runs", &lock(&self.inner.runs).len())
            .finish_non_exhaustive()
    }
}

/// How many threads one call of [`Runtime::recover`] or [`Runtime::expire_questions`] takes up.
const RECOVERED_AT_ONCE: u32 = 10_000;
/// How often a takeover is tried while the owner goes on committing. Each attempt costs a load; a dead owner commits at most once.
const TAKEOVER_ATTEMPTS_MAX: u32 = 8;
/// How often it is looked whether a run elsewhere has stopped.
const CANCEL_POLL: Duration = Duration::from_millis(200);
/// A number that no other process has: the standard library seeds its hashers with the system's randomness.
fn dice() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// How the driver left a run.
pub(crate) enum SegmentOutcome {
    Stopped(Outcome),
    Suspended(Suspension),
}

/// Says when to check for a cancel request of another process.
struct CancelChecks {
    interval: Option<Duration>,
    next: Instant,
}

impl CancelChecks {
    fn every(interval: Option<Duration>) -> Self {
        let next = Instant::now() + interval.unwrap_or_default();
        Self { interval, next }
    }

    /// Returns when it is time for the next check; never without an interval.
    async fn next(&mut self) {
        let Some(interval) = self.interval else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(self.next).await;
        self.next = Instant::now() + interval;
    }
}

fn is_wished(wish: &watch::Receiver<Wish>) -> bool {
    wish.has_changed().unwrap_or(false)
}

async fn changed(wish: &mut watch::Receiver<Wish>) -> Wish {
    match wish.changed().await {
        Ok(()) => *wish.borrow_and_update(),
        Err(_) => std::future::pending().await,
    }
}

/// A run that can be wished things of, as long as this lives.
struct Registered<'a> {
    inner: &'a Inner,
    thread: ThreadId,
    wish: watch::Sender<Wish>,
}

impl<'a> Registered<'a> {
    fn new(inner: &'a Inner, thread: &ThreadId) -> (Self, watch::Receiver<Wish>) {
        let (sender, receiver) = watch::channel(Wish::GoOn);
        lock(&inner.runs).insert(thread.clone(), sender.clone());
        (
            Self {
                inner,
                thread: thread.clone(),
                wish: sender,
            },
            receiver,
        )
    }

    fn tell(&self, seq: Seq) {
        self.inner.wire.publish(&self.thread, Notice::Entry(seq));
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut runs = lock(&self.inner.runs);
        // Another run may have taken the thread over, and the place with it.
        if runs
            .get(&self.thread)
            .is_some_and(|wish| wish.same_channel(&self.wish))
        {
            runs.remove(&self.thread);
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is changed by single calls, so a panic cannot have left it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
