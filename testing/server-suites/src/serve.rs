//! `serve`: the server with one set of graphs, over one database.

use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use superstep::registry::{AssistantQuery, Registry};
use superstep::store::Store;
use superstep::{Checkpointer, Runtime, Timestamp};
use superstep_postgres::{Options, Postgres};
use superstep_server::Server;
use superstep_sqlite::Sqlite;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::graphs::GraphSet;
use crate::truncate::{self, ClearedStores};

/// What was typed after `serve`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServeArgs {
    pub(crate) address: String,
    /// Path of a SQLite file, or the address of a PostgreSQL database.
    pub(crate) store: String,
    pub(crate) graphs: GraphSet,
}

/// Whether a store is a PostgreSQL database rather than a file.
pub(crate) fn is_postgres(store: &str) -> bool {
    store.starts_with("postgres://") || store.starts_with("postgresql://")
}

/// Serves until the process is asked to stop.
pub(crate) async fn run(args: &ServeArgs) -> anyhow::Result<()> {
    if is_postgres(&args.store) {
        let mut options = Options::default();
        options.schema = SCHEMA.to_owned();
        let store = Postgres::connect_with(&args.store, options).await?;
        let _owner = store.try_own_queue().await?.context(QUEUE_TAKEN)?;
        serve(store, args).await
    } else {
        let store = Sqlite::open(&args.store)?;
        let _owner = store.try_own_queue()?.context(QUEUE_TAKEN)?;
        serve(store, args).await
    }
}

/// Not the default schema, which other programs on the same database use.
const SCHEMA: &str = "server_suites";

const QUEUE_TAKEN: &str = "another process executes the runs of this database; stop it first";

async fn serve<T>(store: T, args: &ServeArgs) -> anyhow::Result<()>
where
    T: Checkpointer + Store + Registry + Clone,
{
    let runtime = Runtime::builder(store.clone()).store(store.clone()).build();
    let registry: Arc<dyn Registry> = Arc::new(store.clone());
    let long_term: Arc<dyn Store> = Arc::new(store);
    let mut builder = Server::builder(runtime.clone(), registry.clone()).store(long_term.clone());
    for graph in args.graphs.build()? {
        builder = builder.graph(&graph);
    }
    let server = builder.start().await?;
    set_up_assistants(&*registry, args.graphs, runtime.now()).await?;
    let stores = ClearedStores {
        runtime,
        registry,
        long_term,
    };
    let app = server.router().merge(truncate::routes(stores));
    let listener = TcpListener::bind(&args.address).await;
    let listener = listener.with_context(|| format!("cannot listen on `{}`", args.address))?;
    // Before the line below: a program that has read it may ask this one to stop at once.
    let mut stop = StopSignals::listen()?;
    eprintln!("listening on {}", listener.local_addr()?);
    let stopped = async {
        stop.wait().await;
        // Clients are served until the runs have stopped.
        server.drain().await;
    };
    tokio::select! {
        served = async { axum::serve(listener, app).await } => Ok(served?),
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
    assert!(!is_postgres("postgres.db"));
}
