//! Threads, long-term memory, and the runs, assistants and crons of a server in one SQLite file.
//!
//! [`Sqlite`] is a [`Checkpointer`], a [`Store`] and a [`Registry`]: durable execution for programs on one machine, which
//! survives `kill -9` and a power cut without running a service. Several processes may open the same file; fencing keeps their
//! commits apart, and [`Sqlite::try_own_queue`] lets one of them execute the queued runs.
//!
//! This crate knows nothing about graphs: bodies are opaque bytes, and every decision depends only on the [`Commit`] it gets.
//!
//! # How it works
//!
//! A single connection writes. Requests that arrive while it waits for the disk share the next transaction, and a request
//! that fails rolls back only its own writes, so a hundred concurrent runs cost the disk hardly more than one. If the disk is
//! fast, the caller serves small groups itself; a dedicated thread serves everything else, so no executor blocks for long. A
//! write returns only after its transaction is on disk (`synchronous = FULL`). A few threads with read-only connections serve
//! reads; in WAL mode they neither wait for the writer nor block it, and each read sees one consistent snapshot. The futures
//! need no async runtime: any executor can poll them.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use superstep_core::ThreadId;
//! use superstep_core::checkpoint::Checkpointer;
//! use superstep_sqlite::Sqlite;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("threads.db");
//! let kept = Sqlite::open(path)?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! assert!(kept.load(&ThreadId::new("inbox-1")?).await?.is_none());
//! # Ok(()) })
//! # }
//! ```
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Deployment shapes](../../book/html/docs/deploy.html)
//! - [Back up and restore](../../book/html/docs/howto/back-up-and-restore.html)
//! - [Scale](../../book/html/docs/scale.html)

mod admin;
mod archive;
mod cache;
mod commit;
mod fault;
mod interrupt;
mod list;
mod numbers;
mod queue_owner;
mod read;
mod reader_pool;
mod registry;
mod row;
mod schema;
mod search;
mod sizes;
mod store;
mod terms;
mod work;
mod writer;

pub use fault::SqliteError;
pub use queue_owner::QueueOwner;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use superstep_core::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Checkpointer, Commit, ExpiredThread, Glance,
    History, InterruptQuery, InterruptRow, Loaded, NewThread, OverdueCursor, RecordWrite, Saved,
    SizeQuery, SizeRow, StoredBody, ThreadAnnotation, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::driver::NodeCache;
#[cfg(doc)]
use superstep_core::registry::Registry;
#[cfg(doc)]
use superstep_core::store::Store;
use superstep_core::{Epoch, Seq, TaskId, ThreadId, Timestamp};

use crate::fault::Fault;
use crate::numbers::Numbers;
use crate::reader_pool::ReaderPool;
use crate::work::Setting;
use crate::writer::Writer;

/// A database of threads, facts, runs, assistants and crons. Cheap to clone: one database can be the checkpointer, the store, the
/// registry and the node cache. Dropping the last handle finishes pending work and closes the file.
#[doc(alias = "SqliteSaver")]
#[derive(Clone)]
pub struct Sqlite {
    // Declared before the writer, so the last connection to close is one that can checkpoint the write-ahead log.
    readers: Option<Arc<ReaderPool>>,
    writer: Arc<Writer>,
    numbers: Arc<Numbers>,
    path: Option<PathBuf>,
    /// Whether the file was checked for damage since it was opened.
    is_checked: Arc<AtomicBool>,
    /// Whether the queue of a database in memory is owned.
    is_queue_owned: Arc<AtomicBool>,
}

/// Options for opening a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Maximum number of concurrent reads; at least 1. Default: 2.
    pub readers: usize,
    /// Page cache of each connection, in KiB. Default: 16,384.
    pub cache_kib: u32,
    /// Number of pages in the write-ahead log after which SQLite moves it into the file. Default: 2,000.
    pub wal_pages: u32,
    /// How long to wait while another process writes. Default: 5 seconds.
    pub busy_timeout: Duration,
    /// Longest transaction after which a caller still writes on its own executor, which saves a round trip to a thread. After a
    /// longer one the disk counts as slow, and the thread writes until a transaction is short again. Default: 500 microseconds.
    pub caller_write_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 2,
            cache_kib: 16 * 1024,
            wal_pages: 2_000,
            busy_timeout: Duration::from_secs(5),
            caller_write_max: Duration::from_micros(500),
        }
    }
}

impl Sqlite {
    /// Opens a database, and creates it if it does not exist. Only the owner can read a new file.
    pub fn open(path: impl AsRef<Path>) -> CheckpointResult<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens a database with options other than the defaults.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> CheckpointResult<Self> {
        let path = path.as_ref();
        Ok(Self::open_file(path, &options).map_err(|fault| fault.at(Some(path)))?)
    }

    /// Opens a database in memory, which is lost when it is dropped. Reads wait for writes here.
    pub fn in_memory() -> CheckpointResult<Self> {
        Ok(Self::open_memory()?)
    }

    fn open_memory() -> Result<Self, Fault> {
        let connection = schema::open_in_memory()?;
        Ok(Self {
            readers: None,
            writer: Arc::new(Writer::new(connection, &Options::default())?),
            numbers: Arc::default(),
            path: None,
            is_checked: Arc::new(AtomicBool::new(true)),
            is_queue_owned: Arc::default(),
        })
    }

    fn open_file(path: &Path, options: &Options) -> Result<Self, Fault> {
        let writer = schema::open_writer(path, options)?;
        let readers: Vec<Connection> = (0..options.readers.max(1))
            .map(|_| schema::open_reader(path, options))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            readers: Some(Arc::new(ReaderPool::new(readers)?)),
            writer: Arc::new(Writer::new(writer, options)?),
            numbers: Arc::default(),
            path: Some(path.to_owned()),
            is_checked: Arc::default(),
            is_queue_owned: Arc::default(),
        })
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.ask(None, Setting::Transaction, work).await
    }

    /// Runs work on the writing connection, and names the file if it turns out to be damaged.
    async fn ask<T: Send + 'static>(
        &self,
        who: Option<ThreadId>,
        setting: Setting,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let done = self.writer.ask(who, setting, work).await;
        done.map_err(|fault| fault.at(self.path.as_deref()))
    }

    /// Reads a list, after checking the file once for damage. If damage removed a row from an index, or a page lost count of
    /// its rows, SQLite reports no error: the list is just shorter.
    async fn list<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let is_checked = self.is_checked.clone();
        self.read(move |connection| {
            if !is_checked.load(Ordering::Relaxed) {
                admin::check_small(connection)?;
                is_checked.store(true, Ordering::Relaxed);
            }
            work(connection)
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.read_in(Setting::Transaction, work).await
    }

    async fn read_in<T: Send + 'static>(
        &self,
        setting: Setting,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let done = match &self.readers {
            Some(readers) => readers.ask(setting, work).await,
            None => self.writer.ask(None, setting, work).await,
        };
        done.map_err(|fault| fault.at(self.path.as_deref()))
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl NodeCache for Sqlite {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>> {
        let key = key.to_owned();
        Box::pin(async move { Ok(self.read(move |db| cache::get(db, &key, now)).await?) })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let key = key.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| cache::put(db, &key, &bytes, expires))
                .await?)
        })
    }

    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>> {
        let prefix = prefix.to_owned();
        Box::pin(async move { Ok(self.write(move |db| cache::clear(db, &prefix)).await?) })
    }

    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(cache::clear_tenant(self, tenant).await?) })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(self.write(move |db| cache::sweep(db, now, limit)).await?) })
    }
}

impl Checkpointer for Sqlite {
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let (thread, new) = (thread.clone(), new.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| admin::create(db, &thread, &new))
                .await?)
        })
    }

    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        let (thread, change) = (thread.clone(), change.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| admin::annotate(db, &thread, &change))
                .await?)
        })
    }

    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        let (who, commit) = (Some(commit.thread.clone()), commit.clone());
        let numbers = self.numbers.clone();
        let save = move |db: &_| commit::save(db, &numbers, &commit);
        Box::pin(async move { Ok(self.ask(who, Setting::Transaction, save).await?) })
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        let (record, numbers) = (record.clone(), self.numbers.clone());
        let store = move |db: &_| commit::record(db, &numbers, record);
        Box::pin(async move { Ok(self.ask(None, Setting::Statement, store).await?) })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let (thread, answers) = (thread.clone(), answers.to_owned());
        Box::pin(async move {
            Ok(self
                .write(move |db| commit::answer(db, &thread, &answers))
                .await?)
        })
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.read(move |db| read::load(db, &thread)).await?) })
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.read(move |db| read::load_at(db, &thread, seq)).await?) })
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        let thread = thread.clone();
        Box::pin(async move {
            Ok(self
                .read(move |db| read::entries(db, &thread, after, limit))
                .await?)
        })
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.read(move |db| read::glance(db, &thread, task)).await?) })
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        let thread = thread.clone();
        Box::pin(async move {
            Ok(self
                .write(move |db| commit::request_cancel(db, &thread))
                .await?)
        })
    }

    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>> {
        let after = after.cloned();
        let list = move |db: &_| list::unfinished(db, after.as_ref(), limit);
        Box::pin(async move { Ok(self.list(list).await?) })
    }

    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let owned = owned.to_owned();
        Box::pin(async move {
            Ok(self
                .write(move |db| commit::renew(db, &owned, lease))
                .await?)
        })
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        let query = query.clone();
        Box::pin(async move { Ok(self.list(move |db| search::threads(db, &query)).await?) })
    }

    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        let query = query.clone();
        Box::pin(async move { Ok(self.list(move |db| search::count(db, &query)).await?) })
    }

    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>> {
        let query = query.clone();
        Box::pin(async move {
            // Dropped with this future, also if its caller stops polling it.
            let (_caller, read) = interrupt::interruptible();
            let report = move |db: &Connection| read.run(db, |db| sizes::report(db, &query));
            Ok(self.list(report).await?)
        })
    }

    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        let after = after.cloned();
        let list = move |db: &_| list::overdue(db, now, after.as_ref(), limit);
        Box::pin(async move { Ok(self.list(list).await?) })
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        let query = query.clone();
        Box::pin(async move { Ok(self.list(move |db| list::interrupts(db, &query)).await?) })
    }

    /// Copies entries and snapshots up to `upto`, resealed for the new thread, and the row in the list of threads. The copy
    /// is idle at that entry, with no records and no interrupts. A checkpointer knows nothing about graphs, so the caller
    /// writes the entry that says where the copy comes from.
    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let (from, to) = (from.clone(), to.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| admin::copy(db, &from, upto, &to))
                .await?)
        })
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.write(move |db| admin::delete(db, &thread)).await?) })
    }

    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.write(move |db| admin::forget(db, &thread)).await?) })
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        let thread = thread.clone();
        Box::pin(async move {
            Ok(self
                .write(move |db| admin::prune(db, &thread, keep))
                .await?)
        })
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move {
            Ok(self
                .write(move |db| admin::expire(db, before, limit))
                .await?)
        })
    }

    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>> {
        let after = after.cloned();
        let list = move |db: &_| list::expired(db, now, after.as_ref(), limit);
        Box::pin(async move { Ok(self.list(list).await?) })
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        let thread = thread.clone();
        Box::pin(async move { Ok(self.read(move |db| archive::export(db, &thread)).await?) })
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        let (thread, archive) = (thread.clone(), archive.clone());
        Box::pin(async move {
            Ok(self
                .write(move |db| archive::import(db, &thread, &archive))
                .await?)
        })
    }
}
