//! Threads, runs, assistants and long-term memory in PostgreSQL.
//!
//! [`Postgres`] is a [`Checkpointer`], a [`Store`], a [`NodeCache`] and a [`Registry`]: durable execution for several processes
//! on several machines. Fencing keeps their commits apart; there is no lease, no heartbeat and no lock that outlives a
//! transaction, so a process may die at any point. The one exception is the lock of a [`QueueOwner`], which ends with its
//! connection.
//!
//! This crate knows nothing about graphs: bodies are opaque bytes, and every decision depends only on the [`Commit`] it gets.
//!
//! # Encryption and passwords
//!
//! The address says how much a connection has to prove, in the words of libpq: `sslmode` (`disable` to `verify-full`),
//! `sslrootcert`, `sslcert` and `sslkey`, or `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT` and `PGSSLKEY`. Use `verify-full` for a
//! server on another machine: without a mode, connections to this machine are not encrypted, and others only if the server can.
//! The password is in the address, in `PGPASSWORD`, or in a file that `passfile` or `PGPASSFILE` names. Every new connection
//! reads certificates and passwords again.
//!
//! # How it works
//!
//! A commit is one statement and one round trip, whatever it contains: it updates the thread's row if that is where the
//! commit expects it, and writes the entry and everything else depending on that result. `commit.rs` explains why this needs
//! no stricter isolation than PostgreSQL's default. The process asks the server once where the rows of a thread are
//! (`place.rs`). Requests of many threads share a few connections and are pipelined. Only concurrent records of one run wait
//! for each other: the waiting ones share a statement (`records.rs`).
//!
//! When a connection breaks, requests in flight return [`CheckpointError::Store`]: it is unknown whether they were applied,
//! and the caller may retry the same commit. New requests wait for the database to come back, for up to
//! [`Options::patience`].
//!
//! The tables are in their own schema; the first process that connects creates and migrates them. For backups use `pg_dump
//! --schema superstep` or your usual tool: everything is in tables, and one transaction sees a consistent state.
//!
//! The futures need a tokio runtime with time and I/O enabled.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use superstep_core::ThreadId;
//! use superstep_core::checkpoint::Checkpointer;
//! use superstep_postgres::Postgres;
//!
//! let kept = Postgres::connect("postgres://superstep@127.0.0.1/superstep").await?;
//! assert!(kept.load(&ThreadId::new("inbox-1")?).await?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Deployment shapes](../../book/html/docs/deploy.html)
//! - [Move threads to another database](../../book/html/docs/howto/move-threads.html)
//! - [Scale](../../book/html/docs/scale.html)

mod address;
mod admin;
mod archive;
mod cache;
mod commit;
mod fault;
mod id;
mod lifetime;
mod list;
mod owner;
mod passfile;
mod place;
mod pool;
mod queue_owner;
mod read;
mod records;
mod registry;
mod request_queue;
mod schema;
mod sizes;
mod store;
mod terms;
mod thread_row;
mod tls;

pub use fault::PostgresError;
pub use queue_owner::QueueOwner;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::{
    Answer, Archive, BoxFuture, CheckpointResult, Checkpointer, Commit, ExpiredThread, Glance,
    History, InterruptQuery, InterruptRow, Loaded, NewThread, OverdueCursor, RecordWrite, Saved,
    SizeQuery, SizeRow, StoredBody, ThreadAnnotation, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::driver::{NodeCache, RequestQueue, RequestRow};
#[cfg(doc)]
use superstep_core::error::CheckpointError;
#[cfg(doc)]
use superstep_core::registry::Registry;
#[cfg(doc)]
use superstep_core::store::Store;
use superstep_core::{Epoch, RunId, Seq, TaskId, ThreadId, Timestamp};

use crate::address::Address;
use crate::fault::Fault;
use crate::place::Places;
use crate::pool::Pool;
use crate::records::Records;

/// A database of threads, runs, assistants and facts. Cheap to clone: one database can be the checkpointer, the store, the node
/// cache and the registry, and all of them share its connections.
#[doc(alias = "PostgresSaver")]
#[derive(Clone)]
pub struct Postgres {
    pool: Arc<Pool>,
    places: Arc<Places>,
    records: Arc<Records>,
    schema: Arc<str>,
}

/// Options for connecting to a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Schema that contains the tables: 1 to 63 of `a-z 0-9 _`, not starting with a digit. Default: `superstep`.
    pub schema: String,
    /// Number of connections that requests share; at least 1. Up to four more are opened for copies, deletions and long
    /// searches, and one for the owner of the queue. Default: 16.
    pub connections: usize,
    /// Number of partitions of the large tables. Only used when the schema is created, and fixed from then on. Default: 16.
    pub partitions: u32,
    /// How long to wait for a connection to be established. Default: 5 seconds.
    pub connect_timeout: Duration,
    /// How long to wait for the result of a request before its connection is dropped. Default: 30 seconds.
    pub request_timeout: Duration,
    /// How long to retry while the database is unreachable. Only retries what cannot have been applied. Default: 5 seconds.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "superstep".to_owned(),
            connections: 16,
            partitions: 16,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(5),
        }
    }
}

impl Postgres {
    /// Connects to a database, and creates or migrates its tables.
    pub async fn connect(url: &str) -> CheckpointResult<Self> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects to a database with options other than the defaults.
    pub async fn connect_with(url: &str, options: Options) -> CheckpointResult<Self> {
        let address = Address::parse(url)?;
        schema::check_name(&options.schema).map_err(Fault::from)?;
        let pool = Arc::new(Pool::new(address, &options));
        let partitions = schema::migrate(&pool, &options).await?;
        let places = Arc::new(Places::new(Arc::clone(&pool), partitions));
        Ok(Self {
            records: Arc::new(Records::new(Arc::clone(&places))),
            places,
            pool,
            schema: options.schema.into(),
        })
    }

    /// Returns the size of the tables and their indexes on disk, in bytes.
    pub async fn bytes(&self) -> CheckpointResult<u64> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1::text AND c.relkind = 'r'";
        let rows = self.pool.read(sql, &[&self.schema.as_ref()]).await?;
        Ok(rows.first().map_or(0, |row| read::count(row, 0)))
    }
}

impl fmt::Debug for Postgres {
    /// Omits the address, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl NodeCache for Postgres {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>> {
        Box::pin(async move { Ok(cache::get(&self.pool, key, now).await?) })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(cache::put(&self.pool, key, &bytes, expires).await?) })
    }

    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(cache::clear(&self.pool, prefix).await?) })
    }

    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(cache::clear_tenant(&self.pool, tenant).await?) })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(cache::sweep(&self.pool, now, limit).await?) })
    }
}

impl RequestQueue for Postgres {
    fn put<'a>(
        &'a self,
        id: RunId,
        thread: &'a ThreadId,
        request: &'a [u8],
        at: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move { Ok(request_queue::put(&self.pool, id, thread, request, at).await?) })
    }

    fn get(&self, id: RunId) -> BoxFuture<'_, CheckpointResult<Option<RequestRow>>> {
        Box::pin(async move { Ok(request_queue::get(&self.pool, id).await?) })
    }

    fn reply<'a>(&'a self, id: RunId, reply: &'a [u8]) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(request_queue::reply(&self.pool, id, reply).await?) })
    }

    fn sweep(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(request_queue::sweep(&self.pool, before, limit).await?) })
    }

    fn erase_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(request_queue::erase_tenant(&self.pool, tenant).await?) })
    }

    fn now(&self) -> BoxFuture<'_, CheckpointResult<Option<Timestamp>>> {
        Box::pin(async move { Ok(Some(request_queue::now(&self.pool).await?)) })
    }
}

impl Checkpointer for Postgres {
    fn create<'a>(
        &'a self,
        thread: &'a ThreadId,
        new: &'a NewThread,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(thread_row::create(&self.places, thread, new).await?) })
    }

    fn annotate<'a>(
        &'a self,
        thread: &'a ThreadId,
        change: &'a ThreadAnnotation,
    ) -> BoxFuture<'a, CheckpointResult<bool>> {
        Box::pin(async move { Ok(thread_row::annotate(&self.places, thread, change).await?) })
    }

    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(async move { Ok(commit::save(&self.places, commit).await?) })
    }

    fn record<'a>(&'a self, record: &'a RecordWrite) -> BoxFuture<'a, CheckpointResult<Vec<u8>>> {
        Box::pin(async move { Ok(self.records.record(record).await?) })
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(owner::answer(&self.places, thread, answers).await?) })
    }

    fn answer_and_load<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move { Ok(owner::answer_and_load(&self.places, thread, answers).await?) })
    }

    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Option<Loaded>>> {
        Box::pin(async move { Ok(read::load(&self.places, thread).await?) })
    }

    fn load_at<'a>(
        &'a self,
        thread: &'a ThreadId,
        seq: Seq,
    ) -> BoxFuture<'a, CheckpointResult<History>> {
        Box::pin(async move { Ok(read::load_at(&self.places, thread, seq).await?) })
    }

    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(async move { Ok(read::entries(&self.places, thread, after, limit).await?) })
    }

    fn glance<'a>(
        &'a self,
        thread: &'a ThreadId,
        task: Option<TaskId>,
    ) -> BoxFuture<'a, CheckpointResult<Option<Glance>>> {
        Box::pin(async move { Ok(read::glance(&self.places, thread, task).await?) })
    }

    fn request_cancel<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(owner::request_cancel(&self.pool, thread).await?) })
    }

    fn unfinished<'a>(
        &'a self,
        after: Option<&'a ThreadId>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<UnfinishedThread>>> {
        Box::pin(async move { Ok(list::unfinished(&self.pool, after, limit).await?) })
    }

    fn renew<'a>(
        &'a self,
        owned: &'a [(ThreadId, Epoch)],
        lease: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(owner::renew(&self.pool, owned, lease).await?) })
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        Box::pin(async move { Ok(list::threads(&self.pool, query).await?) })
    }

    fn count_threads<'a>(&'a self, query: &'a ThreadQuery) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(list::count_threads(&self.pool, query).await?) })
    }

    fn sizes<'a>(&'a self, query: &'a SizeQuery) -> BoxFuture<'a, CheckpointResult<Vec<SizeRow>>> {
        Box::pin(async move { Ok(sizes::report(&self.pool, query).await?) })
    }

    fn interrupts<'a>(
        &'a self,
        query: &'a InterruptQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move { Ok(list::interrupts(&self.places, query).await?) })
    }

    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move { Ok(list::overdue(&self.pool, now, after, limit).await?) })
    }

    /// Copies entries and snapshots up to `upto`, resealed for the new thread, and the row in the list of threads with its
    /// lifetime. The copy is idle at that entry, with no records and no interrupts. A checkpointer knows nothing about graphs,
    /// so the caller writes the entry that says where the copy comes from.
    fn copy<'a>(
        &'a self,
        from: &'a ThreadId,
        upto: Option<Seq>,
        to: &'a ThreadId,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(admin::copy(&self.pool, from, upto, to).await?) })
    }

    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(admin::delete(&self.pool, thread).await?) })
    }

    fn forget<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(thread_row::forget(&self.places, thread).await?) })
    }

    fn prune<'a>(
        &'a self,
        thread: &'a ThreadId,
        keep: u32,
    ) -> BoxFuture<'a, CheckpointResult<u64>> {
        Box::pin(async move { Ok(admin::prune(&self.places, thread, keep).await?) })
    }

    fn expire(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        Box::pin(async move { Ok(admin::expire(&self.pool, before, limit).await?) })
    }

    fn expired<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a ExpiredThread>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ExpiredThread>>> {
        Box::pin(async move { Ok(lifetime::expired(&self.pool, now, after, limit).await?) })
    }

    fn export<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<Archive>> {
        Box::pin(async move { Ok(archive::export(&self.pool, thread).await?) })
    }

    fn import<'a>(
        &'a self,
        thread: &'a ThreadId,
        archive: &'a Archive,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move { Ok(archive::import(&self.pool, thread, archive).await?) })
    }
}
