//! The runtime: a checkpointer, a driver, and the graphs whose threads they run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{InterruptQuery, InterruptRow, Loaded, ThreadQuery, ThreadRow};
use superstep_core::driver::NodeCache;
use superstep_core::error::CheckpointError;
use superstep_core::graph::Definition;
use superstep_core::run::{OpenInterrupt, RunOptions, graph_name, open_interrupts};
use superstep_core::store::Store;
use superstep_core::{Checkpointer, Graph, State, ThreadId, Timestamp};

use crate::cache::MemoryCache;
use crate::clock::Clock;
use crate::deadlines::ExpiringThreads;
use crate::drive::LocalDriver;
use crate::drive::RemoteDriver;
use crate::drive::{DriveError, Driver};
use crate::engine::Engine;
use crate::live_bus::LiveBus;
use crate::live_messages::LocalBus;
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::thread::Thread;

/// Runs threads of graphs. Cheap to clone.
///
/// ```
/// # use superstep::prelude::*;
/// # use superstep::{DriveError, RunOptions, Seq};
/// # #[derive(Clone, Debug, Default, State)]
/// # struct Refund { order: String, cents: u64, receipt: Option<String> }
/// # async fn example(graph: Graph<Refund>) -> Result<(), DriveError> {
/// use superstep::checkpoint::ThreadQuery;
///
/// let runtime = Runtime::new(Memory::default());
/// runtime.register(&graph);
///
/// // After a crash or a deploy: continues what was running.
/// for (thread, outcome) in runtime.recover().await? {
///     println!("{thread}: {outcome:?}");
/// }
///
/// let thread = runtime.thread(&graph, "order-17")?;
/// thread.start(RefundUpdate::default().cents(900)).await?;
/// for row in runtime.threads(&ThreadQuery::default()).await? {
///     println!("{}: {:?}", row.thread, row.head.status);
/// }
///
/// // On SIGTERM: lets running supersteps end, and leaves the rest to the next process.
/// runtime.drain().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Runtime {
    pub(crate) local: LocalDriver,
    /// What executes requests: the local driver itself, or one that sends them to a cluster.
    pub(crate) driver: Arc<dyn Driver>,
    /// Options of runs that are not given their own.
    pub(crate) options: Arc<RunOptions>,
    pub(crate) expiring: ExpiringThreads,
}

/// Configures a [`Runtime`] over a checkpointer. See [`Runtime::builder`].
///
/// ```
/// use std::time::Duration;
/// use superstep::{Memory, MemoryCache, RunOptions, Runtime};
///
/// let runtime = Runtime::builder(Memory::default())
///     .concurrent_tasks(32)
///     .retry_deadline(Duration::from_secs(60))
///     .run_options(RunOptions::default().step_limit(500))
///     .cache(MemoryCache::default())
///     .build();
/// ```
pub struct RuntimeBuilder {
    store: Arc<dyn Checkpointer>,
    clock: Clock,
    cache: Arc<dyn NodeCache>,
    tasks_max: usize,
    retry_deadline: Duration,
    engine: Option<Arc<dyn Engine>>,
    live_bus: Arc<dyn LiveBus>,
    long_term: Option<Arc<dyn Store>>,
    lease: Duration,
    options: RunOptions,
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

    /// Sets how long this process holds a thread that it runs before it must renew its hold. A process that dies stops renewing,
    /// and [`Runtime::recover`] of another one resumes its threads when this time is over. With an [engine](Self::engine), it is
    /// how long the runs of a [`RunQueue`](crate::RunQueue) wait for a process that died. Runtimes on the same store need
    /// the same setting, or one with a shorter time takes living threads, and clocks that differ by less than a third of it.
    /// At most a day. With zero, this runtime neither holds threads nor
    /// waits for those that others hold. Default: 15 seconds.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.min(LEASE_MAX);
        self
    }

    /// Sets the options of runs that are not given their own with [`Thread::with_options`], those of [`Runtime::recover`] and
    /// [`Runtime::expire_interrupts`] included. An id of a run is left out, because it names one run. Default:
    /// [`RunOptions::default`].
    #[must_use]
    pub fn run_options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self.options.run = None;
        self
    }

    /// Sets where the results of cached nodes are stored. Default: in memory.
    #[must_use]
    pub fn cache(mut self, cache: impl NodeCache) -> Self {
        self.cache = Arc::new(cache);
        self
    }

    /// Sets the long-term store, which nodes reach by [`NodeCx::store`](crate::NodeCx::store): facts that outlive a thread.
    /// Databases that implement both traits can be the checkpointer and the store. Default: none.
    #[must_use]
    pub fn store(mut self, store: impl Store) -> Self {
        self.long_term = Some(Arc::new(store));
        self
    }

    /// Sets the cluster that executes runs. Its workers need the same graphs, checkpointer and long-term store. Default: none, this
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

    /// Puts a checkpointer in front of this one, and replaces the clock, for a test with a single process.
    pub(crate) fn observed(
        mut self,
        clock: Clock,
        observe: impl FnOnce(Arc<dyn Checkpointer>) -> Arc<dyn Checkpointer>,
    ) -> Self {
        self.store = observe(self.store);
        self.lease = Duration::ZERO;
        self.clock(clock)
    }

    /// Creates the runtime with these settings.
    pub fn build(self) -> Runtime {
        let store = RetryingCheckpointer {
            store: self.store,
            retry_deadline: self.retry_deadline,
        };
        let local = LocalDriver::new(
            store,
            self.clock,
            self.cache,
            self.tasks_max,
            self.live_bus,
            self.long_term,
            self.lease,
        );
        let driver: Arc<dyn Driver> = match self.engine {
            Some(engine) => Arc::new(RemoteDriver::new(engine, local.clone())),
            None => Arc::new(local.clone()),
        };
        Runtime {
            local,
            driver,
            options: Arc::new(self.options),
            expiring: ExpiringThreads::default(),
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

/// A graph in a runtime: opens threads of that graph, for example for the handlers of a web service. Cheap to clone.
pub struct RegisteredGraph<S: State> {
    runtime: Runtime,
    graph: Graph<S>,
}

impl<S: State> RegisteredGraph<S> {
    /// Returns a thread of the graph, as [`Runtime::thread`] does.
    pub fn thread(&self, thread: impl AsRef<str>) -> Result<Thread<S>, DriveError> {
        self.runtime.thread(&self.graph, thread)
    }
}

impl<S: State> Clone for RegisteredGraph<S> {
    fn clone(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            graph: self.graph.clone(),
        }
    }
}

impl<S: State> fmt::Debug for RegisteredGraph<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredGraph")
            .field("graph", &self.graph.name())
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
            long_term: None,
            lease: Duration::from_secs(15),
            options: RunOptions::default(),
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

    /// Makes a graph known by its name, so that [`Runtime::recover`] can resume its threads. Returns a handle to open them.
    pub fn register<S: State>(&self, graph: &Graph<S>) -> RegisteredGraph<S> {
        self.register_definition(graph.definition());
        RegisteredGraph {
            runtime: self.clone(),
            graph: graph.clone(),
        }
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

    /// Returns the [options](RuntimeBuilder::run_options) of runs that are not given their own.
    pub fn run_options(&self) -> &RunOptions {
        &self.options
    }

    /// Returns the bus that carries live events to watchers.
    pub fn live_bus(&self) -> &Arc<dyn LiveBus> {
        self.local.live_bus()
    }

    /// Lists the threads that match a query, in its order. Default: most recently changed first.
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

    pub(crate) async fn graph_of(&self, thread: &ThreadId) -> Result<Arc<Definition>, DriveError> {
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

pub(crate) fn read_interrupts(rows: Vec<InterruptRow>) -> Result<Vec<OpenInterrupt>, DriveError> {
    Ok(open_interrupts(rows).map_err(CheckpointError::from)?)
}

/// Longest lease: sums with it do not overflow.
const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
