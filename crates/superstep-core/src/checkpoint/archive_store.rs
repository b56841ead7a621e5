//! A checkpointer over a store that only keeps bytes: one [`Archive`](crate::checkpoint::Archive) per thread.
//!
//! The rules of [`Checkpointer`] are those of [`Memory`]: each call reads the threads that it concerns into one, lets it do the
//! work, and writes back the thread that changed, if nothing else did in between. So the store needs to know no rule but
//! compare-and-swap.

use std::collections::BTreeMap;
use std::fmt;
use std::slice;
use std::task::{Context, Poll, Waker};

use crate::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Checkpointer, Commit, ExpiredThread, Glance,
    History, InterruptQuery, InterruptRow, Loaded, Memory, NewThread, OverdueCursor, RecordWrite,
    Saved, SizeQuery, SizeRow, StoredBody, ThreadAnnotation, ThreadQuery, ThreadRow,
    UnfinishedThread,
};
use crate::error::CheckpointError;
use crate::ids::{Epoch, Seq, TaskId, ThreadId, Timestamp};

/// Result of a call to an [`ArchiveStore`]. Any error converts by `?`; the driver retries the call.
pub type ArchiveStoreResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Keeps the archives of threads: the smallest store that can become a [`Checkpointer`], with [`ArchiveCheckpointer`].
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use superstep_core::ThreadId;
/// use superstep_core::checkpoint::{ArchiveStore, ArchiveStoreResult};
///
/// /// Cannot keep what it promises: its only storage is the process.
/// #[derive(Default)]
/// struct Map(Mutex<HashMap<ThreadId, Vec<u8>>>);
///
/// impl ArchiveStore for Map {
///     async fn read(&self, thread: &ThreadId) -> ArchiveStoreResult<Option<Vec<u8>>> {
///         Ok(self.0.lock().unwrap().get(thread).cloned())
///     }
///
///     async fn replace(
///         &self,
///         thread: &ThreadId,
///         expected: Option<&[u8]>,
///         archive: &[u8],
///     ) -> ArchiveStoreResult<bool> {
///         let mut archives = self.0.lock().unwrap();
///         let is_expected = archives.get(thread).map(Vec::as_slice) == expected;
///         if is_expected {
///             archives.insert(thread.clone(), archive.to_vec());
///         }
///         Ok(is_expected)
///     }
///
///     async fn read_all(&self) -> ArchiveStoreResult<Vec<Vec<u8>>> {
///         Ok(self.0.lock().unwrap().values().cloned().collect())
///     }
/// }
/// ```
pub trait ArchiveStore: Send + Sync + 'static {
    /// Returns what is stored of a thread; `None` if nothing ever was. A deleted thread is stored too.
    fn read(
        &self,
        thread: &ThreadId,
    ) -> impl Future<Output = ArchiveStoreResult<Option<Vec<u8>>>> + Send;

    /// Stores an archive in place of the one that is `expected`; `None`: nothing was ever stored. Returns false, and stores
    /// nothing, if anything else is stored now. To compare a hash of the bytes is enough.
    ///
    /// Of two calls that expect the same, in any processes, one returns false. When this returns true, a power cut cannot take
    /// the archive back.
    ///
    /// An empty archive is what remains of a thread that was [forgotten](Checkpointer::forget). The store may keep the empty bytes,
    /// or nothing, as if nothing had ever been stored.
    fn replace(
        &self,
        thread: &ThreadId,
        expected: Option<&[u8]>,
        archive: &[u8],
    ) -> impl Future<Output = ArchiveStoreResult<bool>> + Send;

    /// Returns what is stored of every thread, in any order.
    fn read_all(&self) -> impl Future<Output = ArchiveStoreResult<Vec<Vec<u8>>>> + Send;
}

/// A [`Checkpointer`] over an [`ArchiveStore`]. It passes the conformance suite if the store keeps its promises.
///
/// Every call reads whole threads, every commit writes a whole thread, and a list reads them all. That is right for files, a
/// key-value store or object storage with few and short threads; write a [`Checkpointer`] for more. A long thread gets shorter
/// when it is [pruned](Checkpointer::prune).
#[doc(alias = "BaseCheckpointSaver")]
pub struct ArchiveCheckpointer<S> {
    store: S,
}

impl<S: ArchiveStore> ArchiveCheckpointer<S> {
    /// Makes a checkpointer of a store.
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// Reads a thread into memory. Returns its bytes.
    async fn read_into(
        &self,
        memory: &Memory,
        thread: &ThreadId,
    ) -> CheckpointResult<Option<Vec<u8>>> {
        let stored = self.store.read(thread).await;
        let stored = stored.map_err(CheckpointError::store)?;
        if let Some(bytes) = stored.as_ref().filter(|bytes| !bytes.is_empty()) {
            let found = memory.restore(bytes)?;
            if found != *thread {
                let thread = thread.clone();
                return Err(CheckpointError::OtherThread { thread, found });
            }
        }
        Ok(stored)
    }

    /// Answers a question about one thread.
    async fn of_thread<T>(
        &self,
        thread: &ThreadId,
        question: impl FnOnce(&Memory) -> CheckpointResult<T> + Send,
    ) -> CheckpointResult<T> {
        let memory = Memory::new();
        self.read_into(&memory, thread).await?;
        question(&memory)
    }

    /// Reads all threads into memory. Returns their bytes.
    async fn read_all(&self) -> CheckpointResult<(Memory, BTreeMap<ThreadId, Vec<u8>>)> {
        let (memory, mut archives) = (Memory::new(), BTreeMap::new());
        let all = self.store.read_all().await;
        let all = all.map_err(CheckpointError::store)?;
        for bytes in all.into_iter().filter(|bytes| !bytes.is_empty()) {
            archives.insert(memory.restore(&bytes)?, bytes);
        }
        Ok((memory, archives))
    }

    /// Answers a question about all threads.
    async fn of_all<T>(
        &self,
        question: impl FnOnce(&Memory) -> CheckpointResult<T> + Send,
    ) -> CheckpointResult<T> {
        let (memory, _) = self.read_all().await?;
        question(&memory)
    }

    /// Changes one thread, and nothing if the work is refused. The work may also read `source`.
    async fn change<T: Send>(
        &self,
        thread: &ThreadId,
        source: Option<&ThreadId>,
        work: impl Fn(&Memory) -> CheckpointResult<T> + Send + Sync,
    ) -> CheckpointResult<T> {
        // Again whenever another writer was faster, which has then made progress: the rules decide about the new state.
        loop {
            let memory = Memory::new();
            if let Some(source) = source {
                self.read_into(&memory, source).await?;
            }
            let before = self.read_into(&memory, thread).await?;
            let done = work(&memory)?;
            if self.replace(thread, before.as_deref(), &memory).await? {
                return Ok(done);
            }
        }
    }

    /// Writes a thread as it is in memory. Returns false if the store has something else than was read before.
    async fn replace(
        &self,
        thread: &ThreadId,
        before: Option<&[u8]>,
        memory: &Memory,
    ) -> CheckpointResult<bool> {
        // A forgotten thread is no longer in memory: nothing remains of it.
        let after = memory.stored(thread).unwrap_or_default();
        if after == before.unwrap_or_default() {
            return Ok(true);
        }
        let replaced = self.store.replace(thread, before, &after).await;
        replaced.map_err(CheckpointError::store)
    }
}

/// Returns what a call to a [`Memory`] gives, which never waits.
fn at_once<T>(mut call: BoxFuture<'_, T>) -> T {
    match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("memory does not wait"),
    }
}

impl<S> fmt::Debug for ArchiveCheckpointer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveCheckpointer")
            .finish_non_exhaustive()
    }
}

impl<S: ArchiveStore> Checkpointer for ArchiveCheckpointer<S> {
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.change(thread, None, |memory| at_once(memory.create(thread, new))))
    }

    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(self.change(thread, None, |memory| {
            at_once(memory.annotate(thread, change))
        }))
    }

    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(self.change(&commit.thread, None, |memory| at_once(memory.save(commit))))
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(self.change(&record.thread, None, |memory| {
            at_once(memory.record(record))
        }))
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.change(thread, None, |memory| {
            at_once(memory.answer(thread, answers))
        }))
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(self.of_thread(thread, |memory| at_once(memory.load(thread))))
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        Box::pin(self.of_thread(thread, move |memory| at_once(memory.load_at(thread, seq))))
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(self.of_thread(thread, move |memory| {
            at_once(memory.entries(thread, after, limit))
        }))
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        Box::pin(self.of_thread(thread, move |memory| at_once(memory.glance(thread, task))))
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.change(thread, None, |memory| {
            at_once(memory.request_cancel(thread))
        }))
    }

    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>> {
        Box::pin(self.of_all(move |memory| at_once(memory.unfinished(after, limit))))
    }

    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let mut renewed = Ok(());
            for one in owned {
                let renew = |memory: &Memory| at_once(memory.renew(slice::from_ref(one), lease));
                // A thread that cannot be written must not cost the others their leases.
                renewed = renewed.and(self.change(&one.0, None, renew).await);
            }
            renewed
        })
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        Box::pin(self.of_all(|memory| at_once(memory.threads(query))))
    }

    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(self.of_all(|memory| at_once(memory.count_threads(query))))
    }

    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>> {
        match &query.thread {
            Some(thread) => Box::pin(self.of_thread(thread, |memory| at_once(memory.sizes(query)))),
            None => Box::pin(self.of_all(|memory| at_once(memory.sizes(query)))),
        }
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        match &query.thread {
            Some(thread) => {
                Box::pin(self.of_thread(thread, |memory| at_once(memory.interrupts(query))))
            }
            None => Box::pin(self.of_all(|memory| at_once(memory.interrupts(query)))),
        }
    }

    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(self.of_all(move |memory| at_once(memory.overdue(now, after, limit))))
    }

    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.change(to, Some(from), move |memory| {
            at_once(memory.copy(from, upto, to))
        }))
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.change(thread, None, |memory| at_once(memory.delete(thread))))
    }

    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.change(thread, None, |memory| at_once(memory.forget(thread))))
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(self.change(thread, None, move |memory| {
            at_once(memory.prune(thread, keep))
        }))
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            let (memory, archives) = self.read_all().await?;
            at_once(memory.expire(before, limit))?;
            let mut expired = 0;
            for (thread, archive) in &archives {
                let is_expired = memory.stored(thread).as_deref() != Some(archive.as_slice());
                // A thread that changed in between is not an old one any more.
                if is_expired && self.replace(thread, Some(archive), &memory).await? {
                    expired += 1;
                }
            }
            Ok(expired)
        })
    }

    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>> {
        Box::pin(self.of_all(move |memory| at_once(memory.expired(now, after, limit))))
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        Box::pin(self.of_thread(thread, |memory| at_once(memory.export(thread))))
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(self.change(thread, None, |memory| {
            at_once(memory.import(thread, archive))
        }))
    }
}
