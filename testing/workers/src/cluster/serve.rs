//! `worker`: a worker of the cluster, until it is killed or told to stop.

use std::sync::Arc;
use std::time::Duration;

use superstep::{Runtime, SegmentLimits};
use superstep_restate::Worker;
use tokio::signal::unix::{SignalKind, signal};

use super::store::{Broken, Place};
use super::{graphs, work};
use crate::ledger::Ledger;
use crate::{AnyError, Args, end_with_parent};

pub(crate) async fn serve(args: &Args) -> Result<(), AnyError> {
    end_with_parent();
    let ledger = Arc::new(Ledger::connect(args).await?);
    let postgres = Place::of(args)?.open().await?;
    let (mutant, version) = (args.mutant.parse()?, args.version.parse()?);
    let runtime = Runtime::new(Broken::new(postgres.clone(), mutant));
    runtime.register(&work::graph(&ledger)?);
    runtime.register(&graphs::talk(&ledger)?);
    runtime.register(&graphs::wide(&ledger)?);
    runtime.register(&graphs::trip(&ledger, version, mutant)?);
    let listener = Worker::listen(args.listen.parse()?)?;
    println!("ready");
    let mut term = signal(SignalKind::terminate())?;
    let stop = async move {
        term.recv().await;
    };
    Worker::new(runtime, postgres)
        .limits(limits())
        .drain(Duration::from_secs(10))
        .serve(listener, stop)
        .await?;
    Ok(())
}

/// Small ones, so that a random program has boundaries of every kind.
fn limits() -> SegmentLimits {
    SegmentLimits {
        supersteps: 8,
        time: Duration::from_secs(2),
        longest_wait: Duration::from_millis(400),
        cancel_poll: Duration::from_millis(500),
        ..SegmentLimits::default()
    }
}
