//! `run`: one thread, started or recovered, until it stops or is taken away.

use std::sync::Arc;

use superstep::checkpoint::Status;
use superstep::{Outcome, RunOptions, Runtime};

use super::graphs::{WorkUpdate, effects};
use crate::AnyError;
use crate::ledger::Ledger;

/// Prints `finished STATE`, or `stopped CODE` if the thread was lost.
pub(crate) async fn run(
    runtime: &Runtime,
    ledger: &Arc<Ledger>,
    thread: &str,
    seed: u64,
) -> Result<(), AnyError> {
    let mut options = RunOptions::default();
    // A trial may kill often within one superstep; that is no poison.
    options.recoveries_max = 1_000;
    let thread = runtime
        .thread(&effects(ledger, seed)?, thread)?
        .with_options(options);
    let head = runtime.checkpointer().load(thread.id()).await?;
    let status = head.map(|loaded| loaded.head.status);
    if status == Some(Status::Idle) {
        // The last process was killed between its last commit and saying so.
        let state = thread.state().await?.ok_or("an idle thread has a state")?;
        println!("finished {}", state.values.decode::<serde_json::Value>()?);
        return Ok(());
    }
    match thread.start_or_recover(WorkUpdate::default()).await {
        Ok(stopped) if stopped.outcome == Outcome::Finished => {
            println!("finished {}", serde_json::to_string(&stopped.state)?);
        }
        Ok(stopped) => println!("stopped {:?}", stopped.outcome),
        Err(error) => println!("stopped {} {error}", error.code()),
    }
    Ok(())
}
