//! Serves graphs of Superstep over HTTP, with the API that the clients of LangGraph servers speak.
//!
//! The server parses requests, calls the runtime and converts the results. It executes nothing itself: a run is a row in a
//! [`Registry`] before its caller gets a reply, and a [`RunQueue`] executes it, so an accepted run survives a crash. Tokens,
//! updates and states are streamed from the thread's log, and a client that reconnects continues where it was.
//!
//! # What is served
//!
//! Assistants (a graph with a configuration), threads and their states, histories and forks, runs (in the background, awaited or
//! streamed), crons (runs that repeat on a schedule), interrupts and their answers (human-in-the-loop), files of threads, and the
//! long-term store. The LangGraph SDKs for Python and JavaScript, `RemoteGraph`, Agent Inbox and Agent Chat UI work with it.
//!
//! # What callers may write
//!
//! A state is not an input form: it may hold folders, models and sandboxes. A graph declares the channels that callers may write
//! with `GraphBuilder::inputs`; the server refuses all others. By default callers can write nothing. The server also decides about
//! the labels of messages, which callers cannot set. The long-term store is open to callers, apart from the namespaces that
//! [`ServerBuilder::reserve_namespace`] hides.
//!
//! The server has no authentication yet. Serve it on a private address, or behind a proxy that authenticates.
//!
//! # A first server
//!
//! ```
//! use std::sync::Arc;
//!
//! use superstep::prelude::*;
//! use superstep::registry::MemoryRegistry;
//! use superstep::store::MemoryStore;
//! use superstep_server::Server;
//!
//! #[derive(Clone, Debug, Default, State)]
//! struct Greeting {
//!     name: String,
//!     #[state(append)]
//!     lines: Vec<String>,
//! }
//!
//! async fn greet(state: View<Greeting>, _cx: NodeCx) -> Result<GreetingUpdate, NodeError> {
//!     Ok(GreetingUpdate::default().lines(format!("Hello, {}.", state.name)))
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let graph = Graph::builder("greeting")
//!         .node("greet", greet)
//!         .edge(START, "greet")
//!         .edge("greet", END)
//!         .inputs(["name"])
//!         .build()?;
//!     let runtime = Runtime::new(Memory::default());
//!     let server = Server::builder(runtime, Arc::new(MemoryRegistry::new()))
//!         .graph(graph.definition())
//!         .store(Arc::new(MemoryStore::default()))
//!         .start()
//!         .await?;
//!     let router: axum::Router = server.router();
//!     // axum::serve(tokio::net::TcpListener::bind("127.0.0.1:2024").await?, router).await?;
//!     # drop(router);
//!     server.drain().await;
//!     Ok(())
//! }
//! ```
//!
//! # In reading order
//!
//! [`Server`] and [`ServerBuilder`] are the public interface, with [`ThreadFiles`] for the files of threads. Inside: `routes` has a file for each resource, `start` is the one
//! way to submit a run, `history` turns the log into checkpoints, `wire` has the JSON forms.

mod assistant;
mod background;
mod caller;
mod cors;
mod cron;
mod error;
mod feed;
mod files;
mod history;
mod protocol;
mod routes;
mod serving;
mod start;
mod stream;
mod thread;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::StatusCode;
use superstep::graph::Definition;
use superstep::registry::Registry;
use superstep::store::Store;
use superstep::{DriveError, RunQueue, Runtime};
use tokio::sync::Notify;

use crate::background::Background;
use crate::cors::AllowedOrigins;
use crate::error::ApiError;
use crate::feed::Feeds;

pub use crate::files::{
    BadFilePath, FolderFiles, ThreadFile, ThreadFileError, ThreadFilePath, ThreadFileResult,
    ThreadFiles,
};

/// An HTTP server of graphs. See the [crate's documentation](crate) for an example.
pub struct Server {
    app: App,
}

/// Configures a [`Server`]. See [`Server::builder`].
pub struct ServerBuilder {
    runtime: Runtime,
    registry: Arc<dyn Registry>,
    store: Option<Arc<dyn Store>>,
    files: Option<Arc<dyn ThreadFiles>>,
    graphs: BTreeMap<String, Arc<Definition>>,
    reserved: BTreeSet<String>,
    runs_max: usize,
    origins: AllowedOrigins,
}

impl Server {
    /// Configures a server that runs threads with a runtime and keeps runs, assistants and crons in a registry.
    ///
    /// One process at a time may serve a registry: it executes the runs in it. The databases of `superstep-sqlite` and
    /// `superstep-postgres` have a lock for that. If the runtime has an [engine](superstep::RuntimeBuilder::engine), any number of
    /// servers may serve one registry.
    pub fn builder(runtime: Runtime, registry: Arc<dyn Registry>) -> ServerBuilder {
        ServerBuilder {
            runtime,
            registry,
            store: None,
            files: None,
            graphs: BTreeMap::new(),
            reserved: BTreeSet::new(),
            runs_max: RUNS_MAX,
            origins: AllowedOrigins::default(),
        }
    }

    /// Returns the routes, to be served with `axum::serve` or nested into another router.
    pub fn router(&self) -> Router {
        Router::new()
            .merge(routes::routes())
            .merge(stream::routes())
            .merge(protocol::routes())
            .fallback(not_found)
            .method_not_allowed_fallback(not_allowed)
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .layer(from_fn_with_state(self.app.clone(), count_request))
            // Outermost, so that errors can be read by scripts of other origins too.
            .layer(from_fn_with_state(self.app.clone(), cors::check_origin))
            .with_state(self.app.clone())
    }

    /// Serves requests until `stop` resolves, then drains. Connections that are still open 10 seconds after that are cut.
    pub async fn serve(
        &self,
        listener: tokio::net::TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        let app = self.app.clone();
        let stop = async move {
            stop.await;
            drain(&app).await;
        };
        serving::serve(listener, self.router(), stop, LAST_REPLIES).await;
        Ok(())
    }

    /// Takes no further runs, and returns when those in progress have stopped at the end of their supersteps. What is left is
    /// recovered by the next server over the same stores.
    pub async fn drain(&self) {
        drain(&self.app).await;
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("graphs", &self.app.graphs.keys())
            .finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Serves a graph under its name. Threads of graphs that are not served can be listed but not run.
    #[must_use]
    pub fn graph(mut self, graph: &Arc<Definition>) -> Self {
        self.graphs.insert(graph.name().to_owned(), graph.clone());
        self
    }

    /// Serves a long-term store, normally the one of the runtime. Default: none.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Stores the files of threads, which callers upload and fetch. [`FolderFiles`] stores them in a folder. Default: none.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn ThreadFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Hides the namespaces of the store that begin with this segment: callers can neither read nor write them. Reserve what your
    /// program trusts: a caller who could write its settings could change what it does. Default: only `superstep`.
    #[must_use]
    pub fn reserve_namespace(mut self, first_segment: &str) -> Self {
        self.reserved.insert(first_segment.to_owned());
        self
    }

    /// Sets how many runs are executed at once. At least 1. Default: 100.
    #[must_use]
    pub fn concurrent_runs(mut self, runs_max: usize) -> Self {
        self.runs_max = runs_max.max(1);
        self
    }

    /// Lets the pages of an origin, such as `https://chat.example.com`, use the server; `*` for those of every origin. Default: the
    /// pages of this machine only (`localhost` and addresses such as `127.0.0.1`, at any port).
    #[must_use]
    pub fn allow_origin(mut self, origin: &str) -> Self {
        self.origins.allow_origin(origin);
        self
    }

    /// Lets clients reach the server by this name. Default: `localhost` and addresses. A proxy that passes its own name on needs it.
    #[must_use]
    pub fn allow_host(mut self, host: &str) -> Self {
        self.origins.allow_host(host);
        self
    }

    /// Starts to execute runs, those of an earlier process included, and to fire crons, and creates the default assistant of every
    /// graph.
    pub async fn start(self) -> Result<Server, DriveError> {
        for graph in self.graphs.values() {
            self.runtime.register_definition(graph);
        }
        let now = self.runtime.now();
        for graph in self.graphs.keys() {
            let new = assistant::default_of(graph, "", now);
            self.registry.create_assistant(&new).await?;
        }
        let queue = RunQueue::start(&self.runtime, self.registry, self.runs_max).await?;
        let app = Arc::new(Shared {
            runtime: self.runtime,
            queue,
            store: self.store,
            files: self.files,
            graphs: self.graphs,
            reserved: self.reserved,
            feeds: Feeds::default(),
            started: Instant::now(),
            background: Background::default(),
            cron_changed: Arc::default(),
            counters: Counters::default(),
            origins: self.origins,
        });
        background::start_upkeep(&app);
        cron::start_timer(&app);
        Ok(Server { app })
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("graphs", &self.graphs.keys())
            .field("runs_max", &self.runs_max)
            .finish_non_exhaustive()
    }
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) queue: RunQueue,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) files: Option<Arc<dyn ThreadFiles>>,
    /// The served graphs by name.
    pub(crate) graphs: BTreeMap<String, Arc<Definition>>,
    /// First segments of the store's namespaces that callers cannot reach, besides Superstep's own.
    pub(crate) reserved: BTreeSet<String>,
    pub(crate) feeds: Feeds,
    pub(crate) started: Instant,
    /// Work that no request waits for.
    pub(crate) background: Background,
    /// Notified when a cron was created or changed, which may be due before all others.
    pub(crate) cron_changed: Arc<Notify>,
    pub(crate) counters: Counters,
    pub(crate) origins: AllowedOrigins,
}

impl Shared {
    pub(crate) fn registry(&self) -> &Arc<dyn Registry> {
        self.queue.registry()
    }
}

/// The state of the router.
pub(crate) type App = Arc<Shared>;

/// What the server has done since its start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    /// Requests that failed because of the server.
    pub(crate) failures: AtomicU64,
    /// Runs that were submitted.
    pub(crate) runs: AtomicU64,
    /// Entries of logs that were read for streams: each once, however many clients see it.
    pub(crate) streamed_entries: Arc<AtomicU64>,
}

async fn drain(app: &Shared) {
    app.queue.drain().await;
    // Streams are cut, not ended: clients reconnect after a broken connection only.
    app.feeds.drain();
    app.background.stop();
}

async fn count_request(State(app): State<App>, request: Request, next: Next) -> Response {
    app.counters.requests.fetch_add(1, Ordering::Relaxed);
    let response = next.run(request).await;
    if response.status().is_server_error() {
        app.counters.failures.fetch_add(1, Ordering::Relaxed);
    }
    response
}

async fn not_found() -> ApiError {
    ApiError::not_found("Not Found")
}

async fn not_allowed() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
}

/// How long open connections may take to end after a drain.
const LAST_REPLIES: Duration = Duration::from_secs(10);
/// Default number of runs that are executed at once.
const RUNS_MAX: usize = 100;
/// Largest body of a request: messages carry images and documents in base64.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Compiles the example of the page on the server as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/server.md")]
struct ServerPage;
