//! `contend`: one of several processes that do to one thread whatever can be done, each thing with a mark of its own.
//!
//! What its caller was told of each mark is reported: `applied`, or `refused`. Of what was under way when the thread
//! was taken away nothing can be said, so nothing is.

use std::sync::Arc;
use std::time::Duration;

use harness::prng::mix;
use superstep::checkpoint::Status;
use superstep::error::{CheckpointError, OpenError};
use superstep::{DriveError, Runtime, Thread};

use super::contested::{Marks, MarksUpdate, contested, patient_with_takeovers};
use crate::AnyError;
use crate::ledger::{Ledger, Report};

/// Goes on until it is killed. `worker` is a number that no other process of the trial has.
pub(crate) async fn contend(
    runtime: &Runtime,
    ledger: &Arc<Ledger>,
    thread: &str,
    worker: u64,
) -> Result<(), AnyError> {
    let contender = Contender {
        runtime,
        ledger,
        thread: runtime
            .thread(&contested(ledger)?, thread)?
            .with_options(patient_with_takeovers()),
    };
    println!("contends");
    for operation in 0_u64.. {
        let name = format!("{worker}-{operation}");
        let entropy = mix(worker, &name) % 10;
        contender.act(&name, entropy).await?;
    }
    Ok(())
}

struct Contender<'a> {
    runtime: &'a Runtime,
    ledger: &'a Ledger,
    thread: Thread<Marks>,
}

impl Contender<'_> {
    /// One thing, chosen by how the thread stands and by dice with ten sides.
    async fn act(&self, name: &str, entropy: u64) -> Result<(), AnyError> {
        let loaded = self.runtime.checkpointer().load(self.thread.id()).await?;
        match (loaded.unwrap_or_default().head.status, entropy) {
            (Status::Running | Status::Paused, 0) => self.go_on().await,
            (Status::Running | Status::Paused, 3..) => self.answer(name).await,
            // A question that waits is dropped by it.
            (Status::Paused, 1) => self.start(name).await,
            (_, 0..=2) => self.update(name).await,
            (_, _) => self.start(name).await,
        }
    }

    async fn start(&self, name: &str) -> Result<(), AnyError> {
        let mark = format!("start:{name}");
        let started = self
            .thread
            .start(MarksUpdate::default().marks(mark.clone()))
            .await;
        match started {
            Ok(_) => self.tell("applied", &mark).await,
            Err(DriveError::Open(OpenError::Busy { .. })) => self.tell("refused", &mark).await,
            Err(error) => self.taken_away(error).await,
        }
    }

    async fn update(&self, name: &str) -> Result<(), AnyError> {
        let mark = format!("update:{name}");
        let update = MarksUpdate::default().marks(mark.clone());
        match self.thread.update_as("after", update).await {
            Ok(_) => self.tell("applied", &mark).await,
            Err(
                DriveError::Open(OpenError::Busy { .. })
                | DriveError::Checkpoint(CheckpointError::Fenced { .. }),
            ) => self.tell("refused", &mark).await,
            Err(error) => self.taken_away(error).await,
        }
    }

    async fn answer(&self, name: &str) -> Result<(), AnyError> {
        let mark = format!("answer:{name}");
        let open = match self.thread.interrupts().await {
            Ok(open) => open,
            Err(error) => return self.taken_away(error).await,
        };
        let Some(open) = open.first() else {
            tokio::time::sleep(NOTHING_TO_DO).await;
            return Ok(());
        };
        match self.thread.answer(open.interrupt.id, &mark).await {
            Ok(_) => self.tell("applied", &mark).await,
            Err(DriveError::Checkpoint(CheckpointError::NotOpen { .. })) => {
                self.tell("refused", &mark).await
            }
            Err(error) => self.taken_away(error).await,
        }
    }

    /// Takes the thread away from whoever has it.
    async fn go_on(&self) -> Result<(), AnyError> {
        match self.thread.recover().await {
            Ok(_) => Ok(()),
            Err(DriveError::Open(OpenError::Busy { .. } | OpenError::NothingToRun { .. })) => {
                Ok(())
            }
            Err(error) => self.taken_away(error).await,
        }
    }

    /// The one thing that may end a run of ours is another owner.
    async fn taken_away(&self, error: DriveError) -> Result<(), AnyError> {
        match error {
            DriveError::Checkpoint(CheckpointError::Fenced { .. }) => Ok(()),
            other => self.tell("unexpected", other.code()).await,
        }
    }

    async fn tell(&self, phase: &str, mark: &str) -> Result<(), AnyError> {
        let report = Report {
            thread: self.thread.id().name(),
            phase,
            key: mark,
            detail: 0,
        };
        self.ledger.report(report).await;
        Ok(())
    }
}

const NOTHING_TO_DO: Duration = Duration::from_millis(2);
