//! Serves graphs of Superstep over HTTP, with the API that the clients of LangGraph servers speak.
//!
//! The server parses requests, calls the runtime and converts the results. It executes nothing itself: a run is a row in a
//! [`Registry`] before its caller gets a reply, and a [`RunQueue`] executes it, so an accepted run survives a crash. Tokens,
//! updates and states are streamed from the thread's log, and a client that reconnects continues where it was.
//!
//! # What is served
//!
//! Assistants (a graph with a configuration), threads and their states, histories and forks, runs (in the background, awaited or
//! streamed), crons (runs that repeat on a schedule), webhooks that report the ends of runs, interrupts and their answers
//! (human-in-the-loop), files of threads, and the long-term store. The LangGraph SDKs for Python and JavaScript, `RemoteGraph`, Agent Inbox and Agent Chat UI work with it.
//!
//! # What callers may write
//!
//! A state is not an input form: it may hold folders, models and sandboxes. A graph declares the channels that callers may write
//! with `GraphBuilder::inputs`; the server refuses all others. By default callers can write nothing. The server also decides about
//! the labels of messages, which callers cannot set. The long-term store is open to callers, apart from the namespaces that
//! [`ServerBuilder::reserve_namespace`] hides.
//!
//! By default the server does not authenticate its callers, so serve it on a private address. With
//! [`ServerBuilder::authentication`] callers need an API key or a token, which says which tenant they reach and what they may do.
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
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [A first deploy in ten minutes](../../book/html/docs/start/first-deploy.html)
//! - [The server](../../book/html/docs/server.html)
//! - [Operate the server](../../book/html/docs/operate-server.html)
//! - [Compatibility](../../book/html/docs/compatibility.html)

mod a2a;
mod access_log;
mod ag_ui;
mod assistant;
mod audit;
mod auth;
mod background;
mod caller;
mod cors;
mod cron;
mod deadline;
mod erasure;
mod error;
mod feed;
mod files;
mod follow;
mod history;
mod idempotency;
mod inspect;
mod json_depth;
mod json_rpc;
mod mcp;
mod owner;
mod permission;
mod protocol;
mod quotas;
mod request_scope;
mod retention;
mod routes;
mod serving;
mod start;
mod stream;
mod test_case;
mod thread;
mod webhooks;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use http::StatusCode;
use superstep::graph::Definition;
use superstep::registry::Registry;
use superstep::store::Store;
use superstep::{DriveError, QueueOptions, RunEndHook, RunQueue, Runtime};
use superstep_http::NameResolver;
use tokio::sync::{Notify, Semaphore};

use crate::access_log::AccessLog;
use crate::audit::{AuditLog, EffectRecorder};
use crate::auth::Authenticator;
use crate::background::Background;
use crate::cors::AllowedOrigins;
use crate::error::ApiError;
use crate::feed::Feeds;
use crate::mcp::OpenCalls;
use crate::quotas::Quotas;
use crate::webhooks::{EndHook, WebhookSettings, Webhooks};

pub use crate::access_log::AccessRecord;
pub use crate::audit::{
    AuditKey, AuditProblem, AuditVerifier, PrunedAudit, prune_audit_log, verify_audit_log,
};
pub use crate::auth::{ApiKeyError, ApiKeyRequest, Authentication, IssuedApiKey, PolicyError};
pub use crate::erasure::{ErasedTenant, ErasureError, TenantData, erase_tenant};
pub use crate::files::{
    BadFilePath, FolderFiles, ThreadFile, ThreadFileError, ThreadFilePath, ThreadFileResult,
    ThreadFiles, delete_folder,
};
pub use crate::permission::{Permission, Permissions};
pub use crate::quotas::TenantLimits;
pub use crate::retention::{RetentionError, RetentionPolicy};
pub use crate::test_case::{
    CaseAct, CaseAnswer, CaseEnd, CaseFile, CaseInterrupt, CaseScript, TestCase,
};
pub use crate::webhooks::{BadWebhookSecret, WebhookAttempts, WebhookSecret};
pub use superstep_http::{AllowedHost, NotAHost};

/// An HTTP server of graphs. See the [crate's documentation](crate) for an example.
pub struct Server {
    app: App,
    /// Routes besides the API, without authentication.
    public_routes: Router,
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
    authentication: Option<Authentication>,
    webhooks: WebhookSettings,
    tenant_limits: TenantLimits,
    retention: RetentionPolicy,
    access_log: Option<AccessLog>,
    connections_max: usize,
    /// The key of the audit log, if there is one; `None` if there is no audit log.
    audit: Option<Option<AuditKey>>,
    end_hooks: Vec<Arc<dyn RunEndHook>>,
    public_routes: Router,
}

impl Server {
    /// Configures a server that runs threads with a runtime and keeps runs, assistants and crons in a registry.
    ///
    /// One process at a time may serve a registry: it executes the runs in it. The databases of `superstep-sqlite` and
    /// `superstep-postgres` have a lock for that. If the runtime has an [engine](superstep::RuntimeBuilder::engine), any number of
    /// servers may serve one registry, also with different graphs: each leaves the runs and crons of graphs that it does not serve to
    /// the others.
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
            authentication: None,
            webhooks: WebhookSettings::default(),
            tenant_limits: TenantLimits::default(),
            retention: RetentionPolicy::default(),
            access_log: None,
            connections_max: CONNECTIONS_MAX,
            audit: None,
            end_hooks: Vec::new(),
            public_routes: Router::new(),
        }
    }

    /// Returns the routes, to be served with `axum::serve` or nested into another router.
    pub fn router(&self) -> Router {
        // Every layer costs each request copies of all layers inside of it, so there are only those that have something to do.
        let app = &self.app;
        let mut router = Router::new()
            .merge(routes::routes())
            .merge(stream::routes())
            .merge(protocol::routes())
            .merge(audit::routes())
            .merge(mcp::routes())
            .merge(ag_ui::routes())
            .merge(a2a::routes())
            .fallback(not_found)
            .method_not_allowed_fallback(not_allowed);
        // Both inside of what authenticates: the tenant must be known. A request that is refused is not recorded.
        if app.audit.is_some() {
            router = router.layer(from_fn_with_state(app.clone(), audit::record_request));
        }
        if app.wants_callers() {
            router = router.layer(from_fn_with_state(app.clone(), quotas::check_quota));
        }
        router = router.layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
        if app.authenticator.is_some() {
            router = router.layer(from_fn_with_state(app.clone(), auth::check_caller));
        }
        router
            // Everyone who may reach the server at all gets these.
            .merge(self.public_routes.clone().with_state(()))
            // Outermost, so that every request is logged, refused or not.
            .layer(from_fn_with_state(app.clone(), request_scope::open_scope))
            .with_state(app.clone())
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
        let connections_max = self.app.connections_max;
        serving::serve(listener, self.router(), stop, LAST_REPLIES, connections_max).await;
        if let Some(audit) = &self.app.audit {
            audit.flush().await;
        }
        Ok(())
    }

    /// Takes no further runs, and returns when those in progress have stopped at the end of their supersteps. What is left is
    /// recovered by the next server over the same stores.
    pub async fn drain(&self) {
        drain(&self.app).await;
    }
}

#[cfg(feature = "testing")]
impl Server {
    /// Returns the routes as every caller of this tenant sees them, without authentication. For tests.
    #[doc(hidden)]
    pub fn router_of_tenant(&self, tenant: &str) -> Router {
        let caller = caller::Caller {
            tenant: tenant.to_owned(),
            ..caller::Caller::default()
        };
        self.router().layer(axum::Extension(caller))
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

    /// Lets only callers in who authenticate, to the tenant that is theirs, for what they may do. Default: everyone who reaches the
    /// server may do everything.
    #[must_use]
    pub fn authentication(mut self, authentication: Authentication) -> Self {
        self.authentication = Some(authentication);
        self
    }

    /// Lets webhooks be delivered to this host also if it is private. Default: none; an address of this machine, of a private network or
    /// of a cloud's metadata service is refused.
    #[must_use]
    pub fn allow_webhook_host(mut self, host: AllowedHost) -> Self {
        self.webhooks.hosts.push(host);
        self
    }

    /// Refuses webhooks whose addresses are not `https`, apart from those of [named hosts](Self::allow_webhook_host). Default: `http` is
    /// accepted, too.
    #[must_use]
    pub fn require_https_webhooks(mut self) -> Self {
        self.webhooks.is_https_required = true;
        self
    }

    /// Signs the deliveries to webhooks. With several secrets, each delivery has a signature of each, so that receivers can change from
    /// one to the next. Default: none, and deliveries are not signed.
    #[must_use]
    pub fn webhook_secret(mut self, secret: WebhookSecret) -> Self {
        self.webhooks.secrets.push(secret);
        self
    }

    /// Sets how often and how patiently deliveries to webhooks are attempted.
    #[must_use]
    pub fn webhook_attempts(mut self, attempts: WebhookAttempts) -> Self {
        self.webhooks.attempts = attempts;
        self
    }

    /// Resolves the names in the addresses of webhooks. Default: the resolver of this machine.
    #[must_use]
    pub fn webhook_names(mut self, names: Arc<dyn NameResolver>) -> Self {
        self.webhooks.names = names;
        self
    }

    /// Limits what each tenant may use. A request over a limit is refused with 429 and `Retry-After`. Default: no limits.
    #[must_use]
    pub fn tenant_limits(mut self, limits: TenantLimits) -> Self {
        self.tenant_limits = limits;
        self
    }

    /// Sets how long threads are kept that are created without a `ttl`. Default: until someone deletes them.
    #[must_use]
    pub fn retention(mut self, policy: RetentionPolicy) -> Self {
        self.retention = policy;
        self
    }

    /// Calls a function with each request that is over. It is called by the task of the request and must not block. Default: none.
    #[must_use]
    pub fn access_log(mut self, write: impl Fn(&AccessRecord) + Send + Sync + 'static) -> Self {
        self.access_log = Some(AccessLog::new(write));
        self
    }

    /// Records in an audit log who changed what, who answered which interrupt, and what tools did outside: a chain of hashes for each
    /// tenant, in the registry, under a key if one is given. A request that cannot be recorded is refused. Default: no audit log.
    #[must_use]
    pub fn audit(mut self, key: Option<AuditKey>) -> Self {
        self.audit = Some(key);
        self
    }

    /// Calls a hook before the end of each run is stored, for example to export the traces of its thread. Default: none.
    #[must_use]
    pub fn end_hook(mut self, hook: Arc<dyn RunEndHook>) -> Self {
        self.end_hooks.push(hook);
        self
    }

    /// Sets how many connections [`Server::serve`] has open at once; further ones wait to be accepted. At least 1. Default: 20,000.
    #[must_use]
    pub fn connections(mut self, connections_max: usize) -> Self {
        self.connections_max = connections_max.max(1);
        self
    }

    /// Serves further routes next to those of the API, to every caller without authentication: a page for people, for example. They must
    /// not have paths of the API. Default: none.
    #[must_use]
    pub fn public_routes(mut self, routes: Router) -> Self {
        self.public_routes = self.public_routes.merge(routes);
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
        let webhooks = Arc::new(Webhooks::new(self.webhooks));
        let hook = Arc::new(EndHook::new(webhooks.changed.clone()));
        let mut options = QueueOptions::new(self.runs_max).end_hook(hook.clone());
        if let Some(runs_max) = self.tenant_limits.concurrent_runs_max() {
            options = options.tenant_runs_max(runs_max);
        }
        let audit = self.audit.map(|key| {
            let log = AuditLog::start(self.registry.clone(), key);
            Arc::new(log)
        });
        if let Some(log) = &audit {
            options = options.end_hook(Arc::new(EffectRecorder {
                runtime: self.runtime.clone(),
                log: log.clone(),
            }));
        }
        for hook in self.end_hooks {
            options = options.end_hook(hook);
        }
        let queue = RunQueue::start_with(&self.runtime, self.registry, options).await?;
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
            known_tenants: Mutex::default(),
            authenticator: self.authentication.map(Authenticator::new),
            webhooks,
            quotas: Quotas::new(self.tenant_limits),
            retention: self.retention,
            access_log: self.access_log,
            connections_max: self.connections_max,
            audit,
            mcp: OpenCalls::default(),
            answer_turns: start::AnswerTurns::default(),
            size_reports: Semaphore::new(1),
        });
        hook.attach(&app);
        background::start_upkeep(&app);
        cron::start_timer(&app);
        deadline::start(&app);
        webhooks::start_sender(&app);
        Ok(Server {
            app,
            public_routes: self.public_routes,
        })
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
    /// Tenants whose default assistants exist, apart from the unnamed one.
    pub(crate) known_tenants: Mutex<BTreeSet<String>>,
    /// `None` if everyone may do everything.
    pub(crate) authenticator: Option<Authenticator>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) quotas: Quotas,
    pub(crate) retention: RetentionPolicy,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) connections_max: usize,
    pub(crate) audit: Option<Arc<AuditLog>>,
    /// Calls over MCP that clients can still speak to.
    pub(crate) mcp: OpenCalls,
    pub(crate) answer_turns: start::AnswerTurns,
    /// The turn to compute a report of sizes.
    pub(crate) size_reports: Semaphore,
}

impl Shared {
    pub(crate) fn registry(&self) -> &Arc<dyn Registry> {
        self.queue.registry()
    }

    /// Whether anything asks who sent a request, besides the handlers.
    fn wants_callers(&self) -> bool {
        self.audit.is_some() || self.access_log.is_some() || self.quotas.limits_requests()
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
    /// Requests that are not over, streams among them.
    pub(crate) open_requests: Arc<AtomicU64>,
    /// Requests and runs that were refused because their tenant had used up what it may.
    pub(crate) limited: AtomicU64,
}

async fn drain(app: &Shared) {
    app.queue.drain().await;
    // Streams are cut, not ended: clients reconnect after a broken connection only.
    app.feeds.drain();
    // After the last run has ended, so that its delivery may still be sent from here.
    app.webhooks.stop_sending().await;
    app.background.stop();
    if let Some(audit) = &app.audit {
        audit.flush().await;
    }
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
/// Default number of connections that are open at once.
const CONNECTIONS_MAX: usize = 20_000;
/// Largest body of a request: messages carry images and documents in base64.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Compiles the example of the page on the server as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/server.md")]
struct ServerPage;
