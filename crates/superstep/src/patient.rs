//! A checkpointer that is asked again while it does not answer.
//!
//! Commits, records and imports are idempotent, so an unknown outcome is settled by asking again. Only errors
//! that say so are tried again; a refusal is final.

use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{Archive, CheckpointResult, Commit, RecordWrite, Saved};
use superstep_core::{Checkpointer, ThreadId};
use tokio::time::Instant;

/// A checkpointer, and how long it is waited for.
#[derive(Clone)]
pub(crate) struct Patient {
    pub(crate) store: Arc<dyn Checkpointer>,
    pub(crate) patience: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Patient {
    pub(crate) async fn save(&self, commit: &Commit) -> CheckpointResult<Saved> {
        self.ask("save", || self.store.save(commit)).await
    }

    pub(crate) async fn record(&self, record: &RecordWrite) -> CheckpointResult<Vec<u8>> {
        self.ask("record", || self.store.record(record)).await
    }

    pub(crate) async fn import(
        &self,
        thread: &ThreadId,
        archive: &Archive,
    ) -> CheckpointResult<()> {
        self.ask("import", || self.store.import(thread, archive))
            .await
    }

    async fn ask<T, F, Fut>(&self, what: &str, mut ask: F) -> CheckpointResult<T>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = CheckpointResult<T>>,
    {
        let mut refused = None;
        let mut wait = FIRST_WAIT;
        loop {
            match ask().await {
                Err(error)
                    if error.is_transient()
                        && refused.get_or_insert_with(Instant::now).elapsed() + wait
                            < self.patience =>
                {
                    tracing::warn!(what, %error, wait_ms = wait.as_millis(), "the store did not answer, asking again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                answer => return answer,
            }
        }
    }
}
