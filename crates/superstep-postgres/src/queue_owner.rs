//! Ownership of the queue of runs: of all processes that share a schema, one executes its runs.
//!
//! The owner holds an advisory lock of its session. The server releases it when the session ends, however the process died, so
//! nothing has to be renewed or cleaned up.

use std::fmt;
use std::time::{Duration, Instant};

use superstep_core::checkpoint::CheckpointResult;
use xxhash_rust::xxh3::xxh3_64;

use crate::Postgres;
use crate::fault::Fault;
use crate::pool::{Link, Pool};

impl Postgres {
    /// Makes the caller the only owner of the queue of runs in this schema, on a connection of its own, until the returned value
    /// is dropped or the connection ends. Returns `None` if the queue has an owner, in this process or another.
    ///
    /// Ownership keeps nothing else out: any process may still store, list and cancel runs. Take it before you execute runs,
    /// and before [`release_runs`](superstep_core::registry::Registry::release_runs).
    pub async fn try_own_queue(&self) -> CheckpointResult<Option<QueueOwner>> {
        Ok(try_own(&self.pool, &self.schema).await?)
    }

    /// Keeps the ownership of the queue, and returns when another process has it: then stop to execute runs.
    ///
    /// If the connection ends, because the database restarts for example, this owns the queue again. The server may need some
    /// seconds to notice that the former connection is gone.
    pub async fn keep_queue(&self, mut owner: QueueOwner) {
        loop {
            while !owner.is_lost() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            tracing::warn!("the connection that owned the queue of runs ended; owning it again");
            match self.own_again().await {
                Some(again) => owner = again,
                None => return,
            }
        }
    }

    /// Returns `None` if the queue has another owner.
    async fn own_again(&self) -> Option<QueueOwner> {
        let mut refused_since = None;
        loop {
            match self.try_own_queue().await {
                Ok(Some(owner)) => return Some(owner),
                Ok(None) => {
                    let since = *refused_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= FORMER_CONNECTION_MAX {
                        return None;
                    }
                }
                // While the database does not answer, no other process can own the queue either, and runs wait for it anyway.
                Err(error) => {
                    tracing::warn!(%error, "the queue of runs cannot be owned yet");
                    refused_since = None;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Ownership of the queue of runs. Dropping it closes its connection, and the server then lets another process own the queue.
///
/// It is not a fence: if the network breaks, the server may release the lock some seconds before this process notices. Until it
/// does, two processes may believe that they own the queue, and what keeps them apart is the fencing of each thread.
#[must_use = "the queue is released when this is dropped"]
pub struct QueueOwner {
    link: Link,
}

impl QueueOwner {
    /// Whether the connection ended, and the ownership with it. It does not come back; try to own the queue again.
    pub fn is_lost(&self) -> bool {
        !self.link.is_live()
    }
}

impl fmt::Debug for QueueOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOwner")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

async fn try_own(pool: &Pool, schema: &str) -> Result<Option<QueueOwner>, Fault> {
    let link = pool.dedicated().await?;
    let (high, low) = lock_key(schema);
    let sql = "SELECT pg_try_advisory_lock($1::int4, $2::int4)";
    let rows = pool.query_on(&link, sql, &[&high, &low]).await?;
    let is_owner = rows.first().is_some_and(|row| row.get::<_, bool>(0));
    Ok(is_owner.then_some(QueueOwner { link }))
}

/// Returns the key of the lock in two halves. Advisory locks belong to the whole database, so the key contains the schema. Locks
/// with two numbers never meet those with one, which transactions use: this lock is held for long, and a collision would block
/// the creation of runs of some thread for as long.
fn lock_key(schema: &str) -> (i32, i32) {
    let key = xxh3_64(format!("superstep queue owner/{schema}").as_bytes());
    let [high, low] = [key >> 32, key & u64::from(u32::MAX)];
    ((high as u32).cast_signed(), (low as u32).cast_signed())
}

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the server may hold the lock for a connection that has ended.
const FORMER_CONNECTION_MAX: Duration = Duration::from_secs(5);

#[test]
fn each_schema_has_a_key_of_its_own() {
    assert_ne!(lock_key("superstep"), lock_key("superstep_2"));
}
