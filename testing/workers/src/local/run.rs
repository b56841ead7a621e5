//! `run`: one thread, started or recovered, until it stops or is taken away.

use std::sync::Arc;

use superstep::error::OpenError;
use superstep::{DriveError, Outcome, RunId, RunOptions, Runtime};

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
    options.recoveries_max = 1_000;
    // Whoever comes later continues this run, and never starts another: between a look at the thread's status and a start, a
    // process that was thought dead may finish it.
    options.run = Some(RunId::from_bytes([7; 16]));
    let thread = runtime
        .thread(&effects(ledger, seed)?, thread)?
        .with_options(options);
    match thread.start(WorkUpdate::default()).await {
        Ok(stopped) if stopped.outcome == Outcome::Finished => {
            println!("finished {}", serde_json::to_string(&stopped.state)?);
        }
        Ok(stopped) => println!("stopped {:?}", stopped.outcome),
        // The last process was killed between its last commit and saying so.
        Err(DriveError::Open(OpenError::Taken { .. })) => {
            let result = thread.result().await?.ok_or("its last run stopped")?;
            match result.outcome {
                Outcome::Finished => println!("finished {}", serde_json::to_string(&result.state)?),
                other => println!("stopped {other:?}"),
            }
        }
        Err(error) => println!("stopped {} {error}", error.code()),
    }
    Ok(())
}
