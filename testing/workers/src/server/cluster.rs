//! The server in front of a cluster, and the workers that execute its runs.

use std::sync::Arc;
use std::time::Duration;

use superstep::{Runtime, RuntimeBuilder, SegmentLimits};
use superstep_postgres::Postgres;
use superstep_restate::{Redis, Restate, Worker};

use super::{graphs, listen};
use crate::ledger::Ledger;
use crate::local::OpenStore;
use crate::local::watched::{Mutant, Watched};
use crate::{AnyError, Args};

/// A server. Others share its queue.
pub(super) async fn serve(args: &Args) -> Result<(), AnyError> {
    let (builder, store, ledger) = open(args).await?;
    let restate = Restate::new(args.ingress.clone(), store.clone())?;
    listen(builder.engine(restate).build(), store, &ledger, args).await
}

/// A worker.
pub(super) async fn work(args: &Args) -> Result<(), AnyError> {
    let (builder, store, ledger) = open(args).await?;
    let runtime = builder.build();
    for graph in graphs::definitions(&ledger)? {
        runtime.register_definition(&graph);
    }
    let listener = Worker::listen(args.listen.parse()?)?;
    println!("ready");
    Worker::new(runtime, store)
        .limits(limits())
        .serve(listener, std::future::pending())
        .await?;
    Ok(())
}

/// What servers and workers have in common.
async fn open(args: &Args) -> Result<(RuntimeBuilder, Postgres, Arc<Ledger>), AnyError> {
    let mutant: Mutant = args.mutant.parse()?;
    let OpenStore::Postgres(store) = OpenStore::open(&args.store, mutant).await? else {
        return Err("a cluster needs --store postgres:SCHEMA:URL".into());
    };
    let ledger = Arc::new(Ledger::connect(args).await?);
    let watched = Watched::new(Box::new(store.clone()), ledger.clone(), mutant);
    let builder = Runtime::builder(watched)
        .store(store.clone())
        .retry_deadline(mutant.patience())
        .lease(mutant.lease())
        .live_bus(Redis::connect(&args.redis).await?);
    Ok((builder, store, ledger))
}

/// Small ones, so that runs of a few nodes have boundaries, and a cancel finds them running.
fn limits() -> SegmentLimits {
    SegmentLimits {
        supersteps: 2,
        cancel_poll: Duration::from_millis(50),
        ..SegmentLimits::default()
    }
}
