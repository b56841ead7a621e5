//! A process that dies at a chosen point: at the k-th time that it is about to do something outside, or has just done it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use superstep::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Checkpointer, Commit, Glance, History,
    InterruptQuery, InterruptRow, Loaded, RecordWrite, Saved, StoredBody, ThreadQuery, ThreadRow,
};
use superstep::{Seq, TaskId, ThreadId, Timestamp};
use tokio::sync::Notify;

/// When a process dies. Each has its own: what is left of a dead one does nothing more.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    dies_at: Option<u64>,
    points: AtomicU64,
    died: Notify,
}

impl Fate {
    pub(crate) fn never() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn at(point: u64) -> Arc<Self> {
        Arc::new(Self {
            dies_at: Some(point),
            ..Self::default()
        })
    }

    /// How many points there were.
    pub(crate) fn points(&self) -> u64 {
        self.points.load(Ordering::SeqCst)
    }

    /// Comes to a point at which it may die; then nothing after it happens.
    pub(crate) async fn point(&self) {
        let point = self.points.fetch_add(1, Ordering::SeqCst) + 1;
        if self.dies_at.is_some_and(|at| point >= at) {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// What the process does before it dies; none if it died.
    pub(crate) async fn lives<T>(&self, life: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.died.notified() => None,
            done = life => Some(done),
        }
    }
}

/// A store as a mortal process sees it: each write is two points, before and after.
pub(crate) struct Mortal {
    pub(crate) inner: Arc<dyn Checkpointer>,
    pub(crate) fate: Arc<Fate>,
    /// A mutant: records whose key ends so are not stored, and nobody is told.
    pub(crate) forgets: Option<&'static str>,
}

impl Mortal {
    fn doing<'a, T: Send + 'a>(
        &'a self,
        work: BoxFuture<'a, CheckpointResult<T>>,
    ) -> BoxFuture<'a, CheckpointResult<T>> {
        Box::pin(async move {
            self.fate.point().await;
            let done = work.await;
            self.fate.point().await;
            done
        })
    }
}

impl Checkpointer for Mortal {
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        self.doing(self.inner.save(commit))
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        if self.forgets.is_some_and(|end| record.key.ends_with(end)) {
            return self.doing(Box::pin(async { Ok(record.body.clone()) }));
        }
        self.doing(self.inner.record(record))
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.doing(self.inner.answer(thread, answers))
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        self.inner.load(thread)
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        self.inner.load_at(thread, seq)
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        self.inner.entries(thread, after, limit)
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        self.inner.glance(thread, task)
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.request_cancel(thread)
    }

    fn unfinished(&self, limit: u32) -> BoxFuture<'_, CheckpointResult<Vec<ThreadId>>> {
        self.inner.unfinished(limit)
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        self.inner.threads(query)
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        self.inner.interrupts(query)
    }

    fn overdue(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> BoxFuture<'_, CheckpointResult<Vec<InterruptRow>>> {
        self.inner.overdue(now, limit)
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        self.inner.export(thread)
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.import(thread, archive)
    }

    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.copy(from, upto, to)
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.delete(thread)
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        self.inner.prune(thread, keep)
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        self.inner.expire(before, limit)
    }
}
