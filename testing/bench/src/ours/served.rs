//! Our server as a process of its own, and the driver below it when it is called without HTTP.

pub(crate) mod graphs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bench_rounds::{Round, Stopwatch, Task, serve_used};
use superstep::prelude::*;
use superstep::registry::Registry;
use superstep::store::Store;
use superstep::{Checkpointer, Runtime};
use superstep_postgres::Postgres;
use superstep_server::{
    ApiKeyRequest, Authentication, Permissions, Server, ServerBuilder, TenantLimits,
};
use superstep_sqlite::Sqlite;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{number, thread_name};
use graphs::{Chain, ChainUpdate};

/// Name of the SQLite file, in the folder of the side.
pub(crate) const FILE: &str = "server.db";
/// Name of the file with the API keys of tenants, next to it.
pub(crate) const KEYS_FILE: &str = "keys.txt";

/// Serves until nobody asks for more: `server STORE listen=ADDRESS`. What it is asked for is what it has used.
pub(super) fn serve(task: &Task, tokio: &tokio::runtime::Runtime) -> anyhow::Result<()> {
    let address = task.text("listen").map_err(anyhow::Error::from_boxed)?;
    let version = env!("CARGO_PKG_VERSION");
    let served = match task.store.as_str() {
        "sqlite" => {
            let folder = PathBuf::from(std::env::var("BENCH_FOLDER")?);
            let store = Sqlite::open(folder.join(FILE))?;
            let _owner = store.try_own_queue()?.context(QUEUE_TAKEN)?;
            let _serving = tokio.block_on(listen(store, address, tenants(task, &folder)?))?;
            serve_used(version)
        }
        "postgres" => {
            let url = std::env::var("BENCH_POSTGRES")?;
            let store = tokio.block_on(Postgres::connect(&url))?;
            let owner = tokio.block_on(store.try_own_queue())?;
            let _owner = owner.context(QUEUE_TAKEN)?;
            let _serving = tokio.block_on(listen(store, address, None))?;
            serve_used(version)
        }
        unknown => anyhow::bail!("a server has no store `{unknown}`"),
    };
    served.map_err(anyhow::Error::from_boxed)
}

const QUEUE_TAKEN: &str = "another process executes the runs of this database";

/// Tenants that share a server.
struct Tenants {
    count: usize,
    /// Requests per second that each may send.
    limit: u32,
    /// Gets their API keys, one per line.
    keys: PathBuf,
}

fn tenants(task: &Task, folder: &Path) -> anyhow::Result<Option<Tenants>> {
    if task.text("tenants").is_err() {
        return Ok(None);
    }
    Ok(Some(Tenants {
        count: number(task, "tenants")?,
        limit: u32::try_from(number(task, "limit")?)?,
        keys: folder.join(KEYS_FILE),
    }))
}

/// Lets only callers with API keys in, and creates a key for each tenant.
async fn authenticate(
    builder: ServerBuilder,
    registry: &dyn Registry,
    tenants: &Tenants,
) -> anyhow::Result<ServerBuilder> {
    let mut keys = String::new();
    for number in 0..tenants.count {
        let request = ApiKeyRequest {
            tenant: format!("tenant{number}"),
            principal: "bench".to_owned(),
            name: String::new(),
            permissions: Permissions::ALL,
            is_restricted: false,
            expires: None,
        };
        let issued = request.issue(superstep::Timestamp::default())?;
        registry.create_api_key(&issued.key).await?;
        keys += &format!("{}\n", issued.text);
    }
    std::fs::write(&tenants.keys, keys)?;
    let policy = Authentication::with_api_keys();
    let limits = TenantLimits::default();
    let limits = limits.requests_per_second(tenants.limit);
    let limits = limits.concurrent_runs(RUNS_OF_TENANT);
    Ok(builder.authentication(policy).tenant_limits(limits))
}

/// How many runs of a tenant the server executes at once.
const RUNS_OF_TENANT: u32 = 10;

/// Starts a server of all graphs, with its settings as they come.
async fn listen<T>(
    store: T,
    address: &str,
    tenants: Option<Tenants>,
) -> anyhow::Result<JoinSet<std::io::Result<()>>>
where
    T: Checkpointer + Store + Registry + Clone,
{
    let runtime = Runtime::builder(store.clone()).store(store.clone()).build();
    let registry: Arc<dyn Registry> = Arc::new(store.clone());
    let long_term: Arc<dyn Store> = Arc::new(store);
    let mut builder = Server::builder(runtime, registry.clone()).store(long_term);
    if let Some(tenants) = tenants {
        builder = authenticate(builder, &*registry, &tenants).await?;
    }
    for graph in graphs::all()? {
        builder = builder.graph(&graph);
    }
    let server = builder.start().await?;
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    let mut serving = JoinSet::new();
    serving.spawn(async move { server.serve(listener, std::future::pending()).await });
    Ok(serving)
}

/// So many callers at once, each running one chain after the other until the time is over: what the server does for its
/// clients, without the server.
pub(super) async fn round(task: &Task, runtime: &Runtime) -> anyhow::Result<Round> {
    let (graph, callers) = (graphs::chain()?, number(task, "at_once")?);
    let time = task.time().map_err(anyhow::Error::from_boxed)?;
    let watch = Stopwatch::start();
    let begun = Instant::now();
    let mut calling = JoinSet::new();
    for _ in 0..callers {
        let (runtime, graph) = (runtime.clone(), graph.clone());
        calling.spawn(async move {
            let mut times: Vec<Duration> = Vec::new();
            while times.is_empty() || begun.elapsed() < time {
                let called = Instant::now();
                one(&runtime, &graph).await?;
                times.push(called.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(caller) = calling.join_next().await {
        times.extend(caller??);
    }
    let round = watch.stop(times.len());
    Ok(Round { times, ..round })
}

async fn one(runtime: &Runtime, graph: &Graph<Chain>) -> anyhow::Result<()> {
    let thread = runtime.thread(graph, thread_name())?;
    let stopped = thread.start(ChainUpdate::default().n(0)).await?;
    anyhow::ensure!(stopped.state.n == graphs::NODES, "{stopped:?}");
    Ok(())
}
