//! `serve`: the server with one set of graphs, over one database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use axum::serve::ListenerExt;
use serde_json::json;
use superstep::graph::Definition;
use superstep::registry::{AssistantQuery, Registry};
use superstep::store::Store;
use superstep::{Checkpointer, Runtime, Timestamp};
use superstep_postgres::{Options, Postgres};
use superstep_server::{Authentication, Server};
use superstep_sqlite::Sqlite;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cluster::Cluster;
use crate::graphs::GraphSet;
use crate::stored_log;
use crate::truncate::{self, ClearedStores};

/// What was typed after `serve`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServeArgs {
    pub(crate) address: String,
    /// Path of a SQLite file, or the address of a PostgreSQL database; after `restate:`, that of one whose threads run in a cluster.
    pub(crate) store: String,
    pub(crate) graphs: GraphSet,
    /// The policy file, if callers have to authenticate.
    pub(crate) policy: Option<PathBuf>,
}

/// Whether a store is a PostgreSQL database rather than a file.
pub(crate) fn is_postgres(store: &str) -> bool {
    let database = store.strip_prefix(CLUSTER).unwrap_or(store);
    database.starts_with("postgres://") || database.starts_with("postgresql://")
}

/// What the address of a database begins with whose threads run in a cluster.
const CLUSTER: &str = "restate:";

/// Serves until the process is asked to stop.
pub(crate) async fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let graphs = args.graphs.build()?;
    if let Some(database) = args.store.strip_prefix(CLUSTER) {
        let store = connect(database).await?;
        let cluster = Cluster::start(&store, &graphs).await?;
        return serve(cluster.runtime().await?, store, &graphs, args).await;
    }
    if is_postgres(&args.store) {
        let store = connect(&args.store).await?;
        let _owner = store.try_own_queue().await?.context(QUEUE_TAKEN)?;
        return serve(local_runtime(&store), store, &graphs, args).await;
    }
    let store = Sqlite::open(&args.store)?;
    let _owner = store.try_own_queue()?.context(QUEUE_TAKEN)?;
    serve(local_runtime(&store), store, &graphs, args).await
}

async fn connect(database: &str) -> anyhow::Result<Postgres> {
    let mut options = Options::default();
    options.schema = SCHEMA.to_owned();
    Ok(Postgres::connect_with(database, options).await?)
}

fn local_runtime<T: Checkpointer + Store + Clone>(store: &T) -> Runtime {
    Runtime::builder(store.clone()).store(store.clone()).build()
}

/// Not the default schema, which other programs on the same database use.
const SCHEMA: &str = "server_suites";

const QUEUE_TAKEN: &str = "another process executes the runs of this database; stop it first";

async fn serve<T>(
    runtime: Runtime,
    store: T,
    graphs: &[Arc<Definition>],
    args: &ServeArgs,
) -> anyhow::Result<()>
where
    T: Store + Registry + Clone,
{
    let registry: Arc<dyn Registry> = Arc::new(store.clone());
    let long_term: Arc<dyn Store> = Arc::new(store);
    let mut builder = Server::builder(runtime.clone(), registry.clone())
        .store(long_term.clone())
        .public_routes(superstep_studio::routes());
    for graph in graphs {
        builder = builder.graph(graph);
    }
    if let Some(file) = &args.policy {
        let policy = std::fs::read_to_string(file);
        let policy = policy.with_context(|| format!("cannot read `{}`", file.display()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        builder = builder.authentication(Authentication::from_json(&policy, folder)?);
    }
    let server = builder.start().await?;
    set_up_assistants(&*registry, args.graphs, runtime.now()).await?;
    let logs = stored_log::routes(runtime.clone());
    let stores = ClearedStores {
        runtime,
        registry,
        long_term,
    };
    let app = server.router().merge(truncate::routes(stores)).merge(logs);
    let listener = TcpListener::bind(&args.address).await;
    let listener = listener.with_context(|| format!("cannot listen on `{}`", args.address))?;
    let address = listener.local_addr()?;
    // As the server itself does: it fails for a connection that is gone already.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    // Before the line below: a program that has read it may ask this one to stop at once.
    let mut stop = StopSignals::listen()?;
    eprintln!("listening on {address}");
    let stopped = async {
        stop.wait().await;
        // Clients are served until the runs have stopped.
        server.drain().await;
    };
    tokio::select! {
        served = async { axum::serve(listener, app.into_make_service()).await } => Ok(served?),
        () = stopped => Ok(()),
    }
}

/// Gives the default assistants the settings that the suite expects of them, once.
async fn set_up_assistants(
    registry: &dyn Registry,
    graphs: GraphSet,
    now: Timestamp,
) -> anyhow::Result<()> {
    for (graph, change) in graphs.assistant_settings() {
        let query = AssistantQuery {
            graph: Some(graph.to_owned()),
            metadata: Some(json!({ "created_by": "system" })),
            ..AssistantQuery::default()
        };
        for assistant in registry.assistants(&query).await? {
            if change.context.as_ref() != Some(&assistant.context) {
                let (tenant, id) = (&assistant.tenant, assistant.id);
                registry.change_assistant(tenant, id, &change, now).await?;
            }
        }
    }
    Ok(())
}

/// The signals that ask a process to stop.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[test]
fn stores_are_told_apart_by_their_address() {
    assert!(is_postgres("postgres://superstep@127.0.0.1/superstep"));
    assert!(is_postgres(
        "restate:postgres://superstep@127.0.0.1/superstep"
    ));
    assert!(!is_postgres("postgres.db"));
}
