//! A worker in this process, a Restate and a PostgreSQL outside of it.

use std::path::PathBuf;
use std::sync::Arc;

use superstep::checkpoint::BoxFuture;
use superstep::driver::Order;
use superstep::graph::Definition;
use superstep::{DriveError, Engine, Report, RunId, Runtime, RuntimeBuilder, ThreadId};
use superstep_postgres::{Options, Postgres};
use superstep_restate::{Restate, Worker};
use tokio::sync::oneshot;

/// The addresses of what these tests need.
pub(crate) struct Services {
    pub(crate) postgres: String,
    pub(crate) ingress: String,
    pub(crate) admin: String,
}

impl Services {
    pub(crate) fn find() -> Self {
        Self {
            postgres: address("postgres", "SUPERSTEP_POSTGRES_URL"),
            ingress: address("restate", "SUPERSTEP_RESTATE_INGRESS"),
            admin: address("restate-admin", "SUPERSTEP_RESTATE_ADMIN"),
        }
    }
}

fn address(service: &str, variable: &str) -> String {
    if let Ok(url) = std::env::var(variable) {
        return url;
    }
    let file = cache().map(|cache| cache.join(format!("services/{service}.url")));
    let url = file.and_then(|file| std::fs::read_to_string(file).ok());
    url.unwrap_or_else(|| {
        panic!("this test needs {service}: run `cargo xtask services up`, or set {variable}")
    })
}

fn cache() -> Option<PathBuf> {
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
    services: Services,
    stop: Option<oneshot::Sender<()>>,
    _turn: std::fs::File,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::start_with(|worker| worker).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(Worker) -> Worker) -> Self {
        let services = Services::find();
        let turn = turn();
        let store = store(&services).await;
        let worker = Runtime::new(store.clone());
        let listener = Worker::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = change(Worker::new(worker.clone(), store.clone()));
        tokio::spawn(async move {
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
            stop: Some(stop),
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

    /// What Restate says to a question about itself.
    pub(crate) async fn query(&self, sql: &str) -> serde_json::Value {
        let body = serde_json::json!({ "query": sql });
        post(&format!("{}/query", self.services.admin), &body)
            .await
            .1
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stop.take());
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

    fn carry_out<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        order: &'a Order,
    ) -> BoxFuture<'a, Result<Report, DriveError>> {
        self.restate.carry_out(thread, id, order)
    }

    fn send<'a>(
        &'a self,
        thread: &'a ThreadId,
        id: RunId,
        order: &'a Order,
    ) -> BoxFuture<'a, Result<(), DriveError>> {
        self.restate.send(thread, id, order)
    }
}

async fn store(services: &Services) -> Postgres {
    let schema = format!("restate_{}_{}", std::process::id(), rand());
    let mut options = Options::default();
    options.schema = schema;
    options.partitions = 1;
    Postgres::connect_with(&services.postgres, options)
        .await
        .unwrap()
}

fn rand() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as u32
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

pub(crate) async fn post(url: &str, body: &serde_json::Value) -> (u16, serde_json::Value) {
    use http_body_util::{BodyExt, Full};
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::TokioExecutor;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = hyper::Request::post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .body(Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let response = client.request(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer = serde_json::from_slice(&body)
        .unwrap_or_else(|_| serde_json::Value::from(String::from_utf8_lossy(&body)));
    (status, answer)
}
