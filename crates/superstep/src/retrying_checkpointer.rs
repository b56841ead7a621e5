//! A checkpointer whose calls are retried while the store does not answer.
//!
//! Everything the driver does to threads goes through here. Commits, records, answers and imports are idempotent, so a retry
//! settles an unknown outcome; reads change nothing; requesting a cancel twice requests it once, and so do annotating, pruning and
//! deleting. A retried creation may find the thread that it created and say that it exists. Only errors that are transient are
//! retried; a refusal is final.

use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{
    Answer, Archive, CheckpointResult, Commit, ExpiredThread, Glance, History, InterruptQuery,
    InterruptRow, Loaded, NewThread, OverdueCursor, RecordWrite, Saved, SizeQuery, SizeRow,
    StoredBody, ThreadAnnotation, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::{Checkpointer, Epoch, Seq, TaskId, ThreadId, Timestamp};
use tokio::time::Instant;

/// A checkpointer, and how long to retry its calls.
#[derive(Clone)]
pub(crate) struct RetryingCheckpointer {
    pub(crate) store: Arc<dyn Checkpointer>,
    pub(crate) retry_deadline: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl RetryingCheckpointer {
    pub(crate) async fn create(
        &self,
        thread: &ThreadId,
        new: &NewThread,
    ) -> CheckpointResult<bool> {
        self.ask("create", || self.store.create(thread, new)).await
    }

    pub(crate) async fn annotate(
        &self,
        thread: &ThreadId,
        change: &ThreadAnnotation,
    ) -> CheckpointResult<bool> {
        self.ask("annotate", || self.store.annotate(thread, change))
            .await
    }

    pub(crate) async fn save(&self, commit: &Commit) -> CheckpointResult<Saved> {
        self.ask("save", || self.store.save(commit)).await
    }

    pub(crate) async fn record(&self, record: &RecordWrite) -> CheckpointResult<Vec<u8>> {
        self.ask("record", || self.store.record(record)).await
    }

    pub(crate) async fn answer(
        &self,
        thread: &ThreadId,
        answers: &[Answer],
    ) -> CheckpointResult<()> {
        self.ask("answer", || self.store.answer(thread, answers))
            .await
    }

    pub(crate) async fn answer_and_load(
        &self,
        thread: &ThreadId,
        answers: &[Answer],
    ) -> CheckpointResult<Option<Loaded>> {
        self.ask("answer", || self.store.answer_and_load(thread, answers))
            .await
    }

    pub(crate) async fn request_cancel(&self, thread: &ThreadId) -> CheckpointResult<()> {
        self.ask("cancel", || self.store.request_cancel(thread))
            .await
    }

    pub(crate) async fn load(&self, thread: &ThreadId) -> CheckpointResult<Option<Loaded>> {
        self.ask("load", || self.store.load(thread)).await
    }

    pub(crate) async fn glance(
        &self,
        thread: &ThreadId,
        task: Option<TaskId>,
    ) -> CheckpointResult<Option<Glance>> {
        self.ask("glance", || self.store.glance(thread, task)).await
    }

    /// Loads the history up to an entry; 0 is the beginning, where it is empty.
    pub(crate) async fn load_at(&self, thread: &ThreadId, seq: Seq) -> CheckpointResult<History> {
        match seq {
            Seq(0) => Ok(History::default()),
            seq => self.ask("load", || self.store.load_at(thread, seq)).await,
        }
    }

    pub(crate) async fn entries(
        &self,
        thread: &ThreadId,
        after: Seq,
        limit: u32,
    ) -> CheckpointResult<Vec<StoredBody>> {
        self.ask("entries", || self.store.entries(thread, after, limit))
            .await
    }

    pub(crate) async fn unfinished(
        &self,
        after: Option<&ThreadId>,
        limit: u32,
    ) -> CheckpointResult<Vec<UnfinishedThread>> {
        self.ask("unfinished", || self.store.unfinished(after, limit))
            .await
    }

    pub(crate) async fn renew(
        &self,
        owned: &[(ThreadId, Epoch)],
        lease: impl Fn() -> Timestamp,
    ) -> CheckpointResult<()> {
        self.ask("renew", || self.store.renew(owned, lease())).await
    }

    pub(crate) async fn threads(&self, query: &ThreadQuery) -> CheckpointResult<Vec<ThreadRow>> {
        self.ask("threads", || self.store.threads(query)).await
    }

    pub(crate) async fn count_threads(&self, query: &ThreadQuery) -> CheckpointResult<u64> {
        self.ask("count", || self.store.count_threads(query)).await
    }

    pub(crate) async fn sizes(&self, query: &SizeQuery) -> CheckpointResult<Vec<SizeRow>> {
        self.ask("sizes", || self.store.sizes(query)).await
    }

    pub(crate) async fn expired(
        &self,
        now: Timestamp,
        after: Option<&ExpiredThread>,
        limit: u32,
    ) -> CheckpointResult<Vec<ExpiredThread>> {
        self.ask("expired", || self.store.expired(now, after, limit))
            .await
    }

    pub(crate) async fn delete(&self, thread: &ThreadId) -> CheckpointResult<()> {
        self.ask("delete", || self.store.delete(thread)).await
    }

    pub(crate) async fn prune(&self, thread: &ThreadId, keep: u32) -> CheckpointResult<u64> {
        self.ask("prune", || self.store.prune(thread, keep)).await
    }

    pub(crate) async fn interrupts(
        &self,
        query: &InterruptQuery,
    ) -> CheckpointResult<Vec<InterruptRow>> {
        self.ask("interrupts", || self.store.interrupts(query))
            .await
    }

    pub(crate) async fn overdue(
        &self,
        now: Timestamp,
        after: Option<&OverdueCursor>,
        limit: u32,
    ) -> CheckpointResult<Vec<InterruptRow>> {
        self.ask("overdue", || self.store.overdue(now, after, limit))
            .await
    }

    pub(crate) async fn export(&self, thread: &ThreadId) -> CheckpointResult<Archive> {
        self.ask("export", || self.store.export(thread)).await
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
                            < self.retry_deadline =>
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
