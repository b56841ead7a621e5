//! The runtime: a checkpointer, a driver, and the graphs whose threads they run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{
    Answer, InterruptQuery, InterruptRow, Loaded, ThreadQuery, ThreadRow,
};
use superstep_core::driver::{NodeCache, ThreadRequest};
use superstep_core::error::CheckpointError;
use superstep_core::graph::Definition;
use superstep_core::run::{OpenInterrupt, RunOptions, graph_name, open_interrupts};
use superstep_core::{Checkpointer, Graph, Outcome, State, ThreadId, Timestamp};

use crate::cache::MemoryCache;
use crate::clock::Clock;
use crate::drive::LocalDriver;
use crate::drive::RemoteDriver;
use crate::drive::{DriveError, Driver, RequestEnd};
use crate::engine::Engine;
use crate::live_bus::LiveBus;
use crate::live_messages::LocalBus;
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::thread::Thread;

/// Runs threads of graphs. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) local: LocalDriver,
    /// What executes requests: the local driver itself, or one that sends them to a cluster.
    driver: Arc<dyn Driver>,
}

/// Configures a [`Runtime`] over a checkpointer. See [`Runtime::builder`].
pub struct RuntimeBuilder {
    store: Arc<dyn Checkpointer>,
    clock: Clock,
    cache: Arc<dyn NodeCache>,
    tasks_max: usize,
    retry_deadline: Duration,
    engine: Option<Arc<dyn Engine>>,
    live_bus: Arc<dyn LiveBus>,
}

impl RuntimeBuilder {
    /// Sets how many tasks may run at once, over all threads. At least 1. Default: 1,000.
    #[must_use]
    pub fn concurrent_tasks(mut self, tasks_max: usize) -> Self {
        self.tasks_max = tasks_max.max(1);
        self
    }

    /// Sets how long the runtime retries calls to a checkpointer that does not answer. Default: 30 seconds.
    #[must_use]
    pub fn retry_deadline(mut self, retry_deadline: Duration) -> Self {
        self.retry_deadline = retry_deadline;
        self
    }

    /// Sets where the results of cached nodes are stored. Default: in memory.
    #[must_use]
    pub fn cache(mut self, cache: impl NodeCache) -> Self {
        self.cache = Arc::new(cache);
        self
    }

    /// Sets the cluster that executes runs. Its workers need the same graphs and the same checkpointer. Default: none, this
    /// process executes them.
    #[must_use]
    pub fn engine(mut self, engine: impl Engine) -> Self {
        self.engine = Some(Arc::new(engine));
        self
    }

    /// Sets the bus that carries live events to watchers. Runtimes that run threads and runtimes that watch them, in any
    /// process, need connected buses. Default: a bus within this process.
    #[must_use]
    pub fn live_bus(mut self, live_bus: impl LiveBus) -> Self {
        self.live_bus = Arc::new(live_bus);
        self
    }

    /// Sets the clock. Default: the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Creates the runtime with these settings.
    pub fn build(self) -> Runtime {
        let store = RetryingCheckpointer {
            store: self.store,
            retry_deadline: self.retry_deadline,
        };
        let local = LocalDriver::new(store, self.clock, self.cache, self.tasks_max, self.live_bus);
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
            retry_deadline: Duration::from_secs(30),
            engine: None,
            live_bus: Arc::new(LocalBus::default()),
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

    /// Makes a graph known by its definition, for callers that do not have its state type.
    pub fn register_definition(&self, graph: &Arc<Definition>) {
        self.driver.register(graph);
    }

    /// Returns the driver that executes requests to this runtime's threads.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// Returns the driver of this process, which a worker of a cluster calls in segments. Without an engine it is the
    /// [driver](Runtime::driver).
    pub fn local(&self) -> &LocalDriver {
        &self.local
    }

    /// Returns the checkpointer itself. The runtime retries its own calls to a store that does not answer; calls through this
    /// handle are not retried.
    pub fn checkpointer(&self) -> &Arc<dyn Checkpointer> {
        &self.local.store().store
    }

    /// Returns the cache of node results, for example to clear it.
    pub fn cache(&self) -> &Arc<dyn NodeCache> {
        self.local.cache()
    }

    /// Returns the bus that carries live events to watchers.
    pub fn live_bus(&self) -> &Arc<dyn LiveBus> {
        self.local.live_bus()
    }

    /// Lists the threads that match a query, most recently changed first.
    pub async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRow>, DriveError> {
        Ok(self.local.store().threads(query).await?)
    }

    /// Lists the interrupts that match a query, oldest first.
    pub async fn interrupts(
        &self,
        query: &InterruptQuery,
    ) -> Result<Vec<OpenInterrupt>, DriveError> {
        let rows = self.local.store().interrupts(query).await?;
        read_interrupts(rows)
    }

    /// Recovers every unfinished thread, one after another: those whose process died or was drained during a run, and paused
    /// ones with answers that no owner has seen. Their graphs must be registered. Returns each thread with its outcome; threads
    /// that this process already drives are left out.
    ///
    /// Without an engine the store cannot tell a dead process from a busy one: a thread that another process still runs is taken
    /// from it, and the node that it was in runs again here. Call this when no other process runs threads on the same store, for
    /// example at the start of a single server.
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

    /// Answers every interrupt whose deadline has passed with the answer it specifies, and resumes the threads. Returns how
    /// many it answered.
    pub async fn expire_interrupts(&self) -> Result<usize, DriveError> {
        let now = self.now();
        let due = read_interrupts(self.local.store().overdue(now, BATCH).await?)?;
        let mut expired = 0;
        for OpenInterrupt { interrupt, row } in due {
            let Some(body) = interrupt.answer_at_deadline() else {
                continue;
            };
            let answer = Answer {
                interrupt: interrupt.id,
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
                // A person answered first.
                Err(DriveError::Checkpoint(CheckpointError::NotOpen { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(expired)
    }

    /// Cancels the run of a thread and returns when it has stopped. If another process runs the thread, that process is asked
    /// to cancel.
    pub async fn cancel(&self, thread: &ThreadId) -> Result<(), DriveError> {
        self.driver.cancel(thread).await
    }

    /// Refuses to start further runs. A [segment](LocalDriver::segment) in progress suspends before its next superstep; any
    /// other run continues.
    pub fn refuse_runs(&self) {
        self.local.refuse_runs();
    }

    /// Refuses to start further runs, stops every run of this process at the end of its superstep, and returns when all have
    /// stopped. The next [`Runtime::recover`], here or in another process, resumes their threads.
    pub async fn drain(&self) {
        self.local.drain().await;
    }

    /// Returns the time of this runtime's [clock](RuntimeBuilder::clock).
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

fn read_interrupts(rows: Vec<InterruptRow>) -> Result<Vec<OpenInterrupt>, DriveError> {
    Ok(open_interrupts(rows).map_err(CheckpointError::from)?)
}

/// Number of threads or interrupts that one call of [`Runtime::recover`] or [`Runtime::expire_interrupts`] handles at most.
const BATCH: u32 = 10_000;
