//! The runtime: a checkpointer, a driver, and the graphs whose threads they hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{
    Answer, InterruptQuery, InterruptRow, Loaded, ThreadQuery, ThreadRow,
};
use superstep_core::driver::{NodeCache, ThreadRequest};
use superstep_core::error::CheckpointError;
use superstep_core::graph::Definition;
use superstep_core::run::{OpenQuestion, RunOptions, graph_name, open_questions};
use superstep_core::{Checkpointer, Graph, Outcome, State, ThreadId, Timestamp};

use crate::cache::MemoryCache;
use crate::clock::Clock;
use crate::drive::LocalDriver;
use crate::drive::RemoteDriver;
use crate::drive::{DriveError, Driver, RequestEnd};
use crate::engine::Engine;
use crate::notices::Notices;
use crate::patient::Patient;
use crate::thread::Thread;
use crate::wire::Wire;

/// Runs threads of graphs. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) local: LocalDriver,
    /// What executes requests: the local driver itself, or one that sends them to a cluster.
    driver: Arc<dyn Driver>,
}

/// Configures a [`Runtime`].
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
    /// How many tasks may run at once, over all threads. Default: 1,000.
    #[must_use]
    pub fn concurrent_tasks(mut self, tasks_max: usize) -> Self {
        self.tasks_max = tasks_max.max(1);
        self
    }

    /// How long calls of a checkpointer that does not answer are retried. Default: 30 seconds.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where results of cached nodes are stored. Default: in memory.
    #[must_use]
    pub fn cache(mut self, cache: impl NodeCache) -> Self {
        self.cache = Arc::new(cache);
        self
    }

    /// The cluster that executes runs. Its workers need the same graphs and the same checkpointer. Default: none, this process
    /// executes them.
    #[must_use]
    pub fn engine(mut self, engine: impl Engine) -> Self {
        self.engine = Some(Arc::new(engine));
        self
    }

    /// Carries live events to those who watch. Runtimes that run threads and runtimes that watch them, in whatever processes,
    /// need wires that are connected. Default: within this process.
    #[must_use]
    pub fn wire(mut self, wire: impl Wire) -> Self {
        self.wire = Arc::new(wire);
        self
    }

    /// Tells the time. Default: the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Creates the runtime.
    pub fn build(self) -> Runtime {
        let store = Patient {
            store: self.store,
            patience: self.patience,
        };
        let local = LocalDriver::new(store, self.clock, self.cache, self.tasks_max, self.wire);
        let driver: Arc<dyn Driver> = match self.engine {
            Some(engine) => Arc::new(RemoteDriver::new(engine, local.clone())),
            None => Arc::new(local.clone()),
        };
        Runtime { local, driver }
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
    /// Creates a runtime over a checkpointer, with defaults for everything else.
    pub fn new(store: impl Checkpointer) -> Self {
        Self::builder(store).build()
    }

    /// Configures a runtime over a checkpointer.
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

    /// Returns a thread of a graph. It need not exist yet; the first run creates it.
    pub fn thread<S: State>(
        &self,
        graph: &Graph<S>,
        thread: impl AsRef<str>,
    ) -> Result<Thread<S>, DriveError> {
        let id: ThreadId = thread.as_ref().parse()?;
        self.register(graph);
        Ok(Thread::new(self.clone(), graph.clone(), id))
    }

    /// Makes a graph known by its name, so that [`Runtime::recover`] can resume its threads.
    pub fn register<S: State>(&self, graph: &Graph<S>) {
        self.register_definition(graph.definition());
    }

    /// Makes a graph known whose type is not at hand.
    pub fn register_definition(&self, graph: &Arc<Definition>) {
        self.driver.register(graph);
    }

    /// What executes requests to this runtime's threads.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// The driver of this process, which a worker of a cluster calls in segments. Without an engine it is the
    /// [driver](Runtime::driver).
    pub fn local(&self) -> &LocalDriver {
        &self.local
    }

    /// The checkpointer itself. Unlike the runtime's own calls, calls of it are not retried.
    pub fn checkpointer(&self) -> &Arc<dyn Checkpointer> {
        &self.local.store().store
    }

    /// Where results of cached nodes are stored, for instance to clear them.
    pub fn cache(&self) -> &Arc<dyn NodeCache> {
        self.local.cache()
    }

    /// What carries live events to those who watch.
    pub fn wire(&self) -> &Arc<dyn Wire> {
        self.local.wire()
    }

    /// Lists threads.
    pub async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRow>, DriveError> {
        Ok(self.local.store().threads(query).await?)
    }

    /// Lists questions.
    pub async fn questions(&self, query: &InterruptQuery) -> Result<Vec<OpenQuestion>, DriveError> {
        let rows = self.local.store().interrupts(query).await?;
        read_questions(rows)
    }

    /// Recovers every thread whose run did not stop, because its process died or was drained. Their graphs must be
    /// registered. Returns each thread with its outcome.
    pub async fn recover(
        &self,
    ) -> Result<Vec<(ThreadId, Result<Outcome, DriveError>)>, DriveError> {
        let mut done = Vec::new();
        for thread in self.local.store().unfinished(BATCH).await? {
            if self.local.is_driving(&thread) {
                continue;
            }
            let outcome = self.recover_thread(&thread).await;
            done.push((thread, outcome));
        }
        Ok(done)
    }

    async fn recover_thread(&self, thread: &ThreadId) -> Result<Outcome, DriveError> {
        let graph = self.graph_of(thread).await?;
        let (request, options) = (ThreadRequest::Recover, RunOptions::default());
        let end = self.driver.execute(thread, &graph, request, &options).await;
        match end? {
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

    async fn graph_of(&self, thread: &ThreadId) -> Result<Arc<Definition>, DriveError> {
        let loaded = self.loaded(thread).await?;
        let name = graph_name(thread, &loaded.history).map_err(CheckpointError::from)?;
        self.local.graph(&name.unwrap_or_default(), thread)
    }

    pub(crate) async fn loaded(&self, thread: &ThreadId) -> Result<Loaded, DriveError> {
        let loaded = self.local.store().load(thread).await?;
        loaded.ok_or_else(|| {
            CheckpointError::NoThread {
                thread: thread.clone(),
            }
            .into()
        })
    }

    /// Answers every question whose deadline has passed with the answer it specifies, and resumes the threads. Returns how
    /// many there were.
    pub async fn expire_questions(&self) -> Result<usize, DriveError> {
        let now = self.now();
        let due = read_questions(self.local.store().overdue(now, BATCH).await?)?;
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
            let graph = self.graph_of(&row.thread).await?;
            let (request, options) = (ThreadRequest::Answer(vec![answer]), RunOptions::default());
            match self
                .driver
                .execute(&row.thread, &graph, request, &options)
                .await
            {
                Ok(_) => expired += 1,
                // A person was quicker.
                Err(DriveError::Checkpoint(CheckpointError::NotOpen { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(expired)
    }

    /// Cancels the run of a thread and returns when it has stopped. If another process runs it, that one is asked to.
    pub async fn cancel(&self, thread: &ThreadId) -> Result<(), DriveError> {
        self.driver.cancel(thread).await
    }

    /// Starts no further runs. A [segment](LocalDriver::segment) that is under way suspends before its next superstep; any
    /// other run continues.
    pub fn refuse_runs(&self) {
        self.local.refuse_runs();
    }

    /// Starts no further runs, lets every run of this process stop at the end of its superstep, and returns when all have. The
    /// next [`Runtime::recover`], here or elsewhere, resumes their threads.
    pub async fn drain(&self) {
        self.local.drain().await;
    }

    /// Returns what this runtime's [clock](RuntimeBuilder::clock) says.
    pub fn now(&self) -> Timestamp {
        self.local.now()
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

fn read_questions(rows: Vec<InterruptRow>) -> Result<Vec<OpenQuestion>, DriveError> {
    Ok(open_questions(rows).map_err(CheckpointError::from)?)
}

/// How many threads one call of [`Runtime::recover`] or [`Runtime::expire_questions`] handles.
const BATCH: u32 = 10_000;
