//! A worker in this process, a Restate and a PostgreSQL outside of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use free_ports::free_port;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use superstep::checkpoint::BoxFuture;
use superstep::driver::QueuedRequest;
use superstep::graph::Definition;
use superstep::{
    Clock, DriveError, Engine, LiveBus, RunId, RunReport, Runtime, RuntimeBuilder, ThreadId,
};
use superstep_conformance::services;
use superstep_postgres::{Options, Postgres};
use superstep_restate::{Restate, Worker};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// The addresses of what these tests need.
pub(crate) struct Services {
    pub(crate) postgres: String,
    pub(crate) ingress: String,
    pub(crate) admin: String,
}

impl Services {
    pub(crate) fn find() -> Self {
        Self {
            postgres: services::url("postgres"),
            ingress: services::address("restate", "ingress"),
            admin: services::address("restate", "admin"),
        }
    }

    /// The Redis that tests share.
    pub(crate) fn redis() -> String {
        services::address("redis", "url")
    }
}

pub(crate) fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))?;
    Some(cache.join("superstep"))
}

/// A worker, and the engine that gives it orders. Restate has one worker at a time under a service's name, so tests of
/// several processes take turns.
pub(crate) struct Cluster {
    pub(crate) store: Postgres,
    pub(crate) restate: Restate,
    pub(crate) worker: Runtime,
    pub(crate) services: Services,
    schema: String,
    pub(crate) address: SocketAddr,
    stop: Mutex<Option<(oneshot::Sender<()>, JoinSet<()>)>>,
    _turn: std::fs::File,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::start_with(|worker| worker).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(Worker) -> Worker) -> Self {
        Self::start_from(|runtime| runtime, change).await
    }

    /// Its worker tells those who watch over this wire.
    pub(crate) async fn start_wired(live_bus: impl LiveBus) -> Self {
        Self::start_from(|runtime| runtime.live_bus(live_bus), |worker| worker).await
    }

    /// Its worker has this clock.
    pub(crate) async fn start_at(clock: Clock) -> Self {
        Self::start_from(|runtime| runtime.clock(clock), |worker| worker).await
    }

    async fn start_from(
        build: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
        change: impl FnOnce(Worker) -> Worker,
    ) -> Self {
        let services = Services::find();
        let turn = turn();
        let schema = new_schema();
        let store = connect(&services, &schema).await;
        let worker = build(Runtime::builder(store.clone())).build();
        let listener = Worker::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = change(Worker::new(worker.clone(), store.clone()));
        let mut served = JoinSet::new();
        served.spawn(async move {
            let stopped = async { drop(stopped.await) };
            serving.serve(listener, stopped).await.unwrap();
        });
        register(&services.admin, &format!("http://{address}")).await;
        let restate = Restate::new([services.ingress.clone()], store.clone()).unwrap();
        Self {
            store,
            restate,
            worker,
            services,
            schema,
            address,
            stop: Mutex::new(Some((stop, served))),
            _turn: turn,
        }
    }

    /// A runtime whose threads are run by the worker.
    pub(crate) fn runtime(&self) -> Runtime {
        self.builder().build()
    }

    pub(crate) fn builder(&self) -> RuntimeBuilder {
        Runtime::builder(self.store.clone()).engine(Here {
            restate: self.restate.clone(),
            worker: self.worker.clone(),
        })
    }

    /// Where another process finds the cluster.
    pub(crate) fn place(&self) -> ClusterPlace {
        ClusterPlace {
            services: Services::find(),
            schema: self.schema.clone(),
        }
    }

    /// Stops the worker as a signal would, and returns when it has stopped.
    pub(crate) async fn stop_worker(&self) {
        let (stop, mut served) = self.stop.lock().unwrap().take().unwrap();
        drop(stop);
        served.join_next().await.unwrap().unwrap();
    }
}

/// Where a process finds a cluster.
pub(crate) struct ClusterPlace {
    services: Services,
    schema: String,
}

impl ClusterPlace {
    /// Connects as a process of its own does: with connections of its own.
    pub(crate) async fn connect(&self) -> (Postgres, Runtime) {
        let store = connect(&self.services, &self.schema).await;
        let restate = Restate::new([self.services.ingress.clone()], store.clone()).unwrap();
        let runtime = Runtime::builder(store.clone()).engine(restate).build();
        (store, runtime)
    }
}

/// The engine, which also tells the worker of graphs, because that one is in the same process.
struct Here {
    restate: Restate,
    worker: Runtime,
}

impl Engine for Here {
    fn register(&self, graph: &Arc<Definition>) {
        self.worker.register_definition(graph);
    }

    fn execute<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<RunReport, DriveError>> {
        self.restate.execute(thread, id, request)
    }

    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        request: &'a QueuedRequest,
    ) -> BoxFuture<'a, Result<(), DriveError>> {
        self.restate.send(thread, id, request)
    }
}

pub(crate) async fn store(services: &Services) -> Postgres {
    connect(services, &new_schema()).await
}

fn new_schema() -> String {
    format!("restate_{}_{}", std::process::id(), number())
}

async fn connect(services: &Services, schema: &str) -> Postgres {
    let mut options = Options::default();
    options.schema = schema.to_owned();
    options.partitions = 1;
    Postgres::connect_with(&services.postgres, options)
        .await
        .unwrap()
}

/// An id that no other test run has: Restate remembers them for a day.
pub(crate) fn new_id() -> RunId {
    RunId::from_bytes(u128::from(number()).to_be_bytes())
}

/// A thread that no other process has, the same for the same name: Restate keeps what is left of a thread when a test ends, and
/// a call whose worker is gone would hold up whoever comes next.
pub(crate) fn named(name: &str) -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(number);
    format!("acme/{name}-{:x}", *PROCESS)
}

/// A number that no other test has.
pub(crate) fn number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

fn turn() -> std::fs::File {
    let path = std::env::temp_dir().join("superstep-restate-tests.lock");
    let file = std::fs::File::create(path).unwrap();
    file.lock().unwrap();
    file
}

pub(crate) async fn register(admin: &str, worker: &str) {
    let body = serde_json::json!({ "uri": worker, "force": true });
    let (status, answer) = post(&format!("{admin}/deployments"), &body).await;
    assert!((200..300).contains(&status), "{status}: {answer}");
}

pub(crate) async fn post(url: &str, body: &serde_json::Value) -> (u16, String) {
    let request = hyper::Request::post(url)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())));
    send(request.unwrap()).await
}

pub(crate) async fn get(url: &str) -> (u16, String) {
    send(hyper::Request::get(url).body(Full::default()).unwrap()).await
}

async fn send(request: hyper::Request<Full<Bytes>>) -> (u16, String) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// A Redis of a test's own, to be killed.
pub(crate) struct Server {
    port: u16,
    child: Child,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let port = free_port();
        let child = Self::run(port).await;
        Self { port, child }
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    pub(crate) async fn start_again(&mut self) {
        self.child = Self::run(self.port).await;
    }

    /// Returns when it answers.
    async fn run(port: u16) -> Child {
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--port"])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("`cargo xtask services up` installs redis-server");
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        child
    }
}
