//! `http` and `http-worker`: the server as people run it, over one store or in front of a cluster, and the cluster's workers,
//! until they are killed.

mod cluster;
pub(crate) mod graphs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use superstep::registry::Registry;
use superstep::store::Store;
use superstep::{Checkpointer, Runtime};
use superstep_postgres::Postgres;
use superstep_server::Server;
use tokio::net::TcpListener;

use crate::ledger::Ledger;
use crate::local::OpenStore;
use crate::local::watched::{Mutant, Watched};
use crate::{AnyError, Args, end_with_parent};

pub(crate) async fn perform(args: &Args) -> Result<(), AnyError> {
    end_with_parent();
    match args.mode.as_str() {
        "http-worker" => cluster::work(args).await,
        _ if !args.ingress.is_empty() => cluster::serve(args).await,
        _ => serve(args).await,
    }
}

/// Executes the runs in this process.
async fn serve(args: &Args) -> Result<(), AnyError> {
    let mutant: Mutant = args.mutant.parse()?;
    match OpenStore::open(&args.store, mutant).await? {
        OpenStore::Sqlite(store) => {
            // The system has released the lock of a predecessor that was killed.
            let owner = store.try_own_queue()?;
            let _owner = owner.ok_or(QUEUE_TAKEN)?;
            serve_on(store, args, mutant).await
        }
        OpenStore::Postgres(store) => {
            let _owner = own_queue(&store).await?;
            serve_on(store, args, mutant).await
        }
    }
}

/// Waits until PostgreSQL has noticed that a predecessor that was killed is gone.
async fn own_queue(store: &Postgres) -> Result<superstep_postgres::QueueOwner, AnyError> {
    let begun = Instant::now();
    loop {
        match store.try_own_queue().await? {
            Some(owner) => return Ok(owner),
            None if begun.elapsed() > OWN_MAX => return Err(QUEUE_TAKEN.into()),
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn serve_on<T>(store: T, args: &Args, mutant: Mutant) -> Result<(), AnyError>
where
    T: Checkpointer + Store + Registry + Clone,
{
    let ledger = Arc::new(Ledger::connect(args).await?);
    let watched = Watched::new(Box::new(store.clone()), ledger.clone(), mutant);
    let runtime = Runtime::builder(watched)
        .store(store.clone())
        .retry_deadline(mutant.patience())
        .lease(mutant.lease())
        .build();
    listen(runtime, store, &ledger, args).await
}

async fn listen(
    runtime: Runtime,
    store: impl Registry,
    ledger: &Arc<Ledger>,
    args: &Args,
) -> Result<(), AnyError> {
    let runs_max = usize::try_from(args.runs)?;
    let mut builder = Server::builder(runtime, Arc::new(store)).concurrent_runs(runs_max);
    for graph in graphs::definitions(ledger)? {
        builder = builder.graph(&graph);
    }
    let server = builder.start().await?;
    let listener = TcpListener::bind(&args.listen).await?;
    println!("ready");
    server.serve(listener, std::future::pending()).await?;
    Ok(())
}

const QUEUE_TAKEN: &str = "another process executes the runs of this store";
const OWN_MAX: Duration = Duration::from_secs(30);
