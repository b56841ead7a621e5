//! `recover`: recovers whatever is unfinished, again and again, until it is killed. Prints `left N` after each time: how many
//! threads are still unfinished.

use std::sync::Arc;
use std::time::Duration;

use superstep::{Outcome, Runtime};

use super::hold::{Gate, held};
use crate::ledger::Ledger;
use crate::server::graphs;
use crate::{AnyError, Args};

pub(super) async fn recover(
    runtime: &Runtime,
    ledger: &Arc<Ledger>,
    args: &Args,
) -> Result<(), AnyError> {
    runtime.register(&held(ledger, args.seed, Gate::new(true))?);
    for graph in graphs::definitions(ledger)? {
        runtime.register_definition(&graph);
    }
    loop {
        for (thread, outcome) in runtime.recover().await? {
            match outcome {
                Ok(Outcome::Finished) => {}
                Ok(other) => return Err(format!("{thread} did not finish: {other:?}").into()),
                // Another process thought this one dead and took the thread. The ledger tells whether it was.
                Err(error) => println!("lost {thread} {}", error.code()),
            }
        }
        let left = runtime
            .checkpointer()
            .unfinished(None, u32::MAX)
            .await?
            .len();
        println!("left {left}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
