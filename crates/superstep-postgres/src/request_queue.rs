//! The queue of requests to the workers of a cluster: the table `inbox`.
//!
//! A row is written once, read by its id and deleted when it is old or its tenant is erased; no thread depends on it.

use superstep_core::driver::RequestRow;
use superstep_core::error::CheckpointError;
use superstep_core::{RunId, ThreadId, Timestamp};

use crate::fault::Fault;
use crate::id::Id;
use crate::list::is_tenant;
use crate::pool::Pool;
use crate::read::count;

/// Stores a request unless one exists under its id, and returns the stored one.
pub(crate) async fn put(
    pool: &Pool,
    id: RunId,
    thread: &ThreadId,
    request: &[u8],
    at: Timestamp,
) -> Result<Vec<u8>, Fault> {
    let sql = "INSERT INTO inbox (id, at, tenant, name, body) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING RETURNING 1";
    let (tenant, name) = (thread.tenant(), thread.name());
    let id = Id(id.to_bytes());
    let rows = pool
        .write(sql, &[&id, &at.0, &tenant, &name, &request])
        .await?;
    if !rows.is_empty() {
        return Ok(request.to_vec());
    }
    let rows = pool
        .read("SELECT body FROM inbox WHERE id = $1", &[&id])
        .await?;
    // Swept in between: a retry finds no row, and inserts one.
    let gone = || {
        Fault::from(CheckpointError::NoThread {
            thread: thread.clone(),
        })
    };
    rows.first().map(|row| row.get(0)).ok_or_else(gone)
}

/// Returns a request and its reply, if there is one yet.
pub(crate) async fn get(pool: &Pool, id: RunId) -> Result<Option<RequestRow>, Fault> {
    let sql = "SELECT tenant, name, body, reply FROM inbox WHERE id = $1";
    let rows = pool.read(sql, &[&Id(id.to_bytes())]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    Ok(Some(RequestRow {
        thread: ThreadId::of_tenant(row.get(0), row.get(1))?,
        request: row.get(2),
        reply: row.get(3),
    }))
}

/// Stores a reply. The first one wins.
pub(crate) async fn reply(pool: &Pool, id: RunId, reply: &[u8]) -> Result<(), Fault> {
    let sql = "UPDATE inbox SET reply = $2 WHERE id = $1 AND reply IS NULL";
    pool.write(sql, &[&Id(id.to_bytes()), &reply]).await?;
    Ok(())
}

/// Deletes requests that were due before this time, oldest first, but those to running threads. Returns how many there were.
pub(crate) async fn sweep(pool: &Pool, before: Timestamp, limit: u32) -> Result<u64, Fault> {
    // Every worker sweeps: one that meets the rows of another leaves them to it, instead of waiting for them in some other order.
    let sql = "WITH old AS (
             SELECT i.id FROM inbox i
             WHERE i.at < $1 AND NOT EXISTS (
                 SELECT FROM thread t WHERE t.tenant = i.tenant AND t.name = i.name AND t.status = 1)
             ORDER BY i.at LIMIT $2 FOR UPDATE OF i SKIP LOCKED),
         swept AS (DELETE FROM inbox WHERE id IN (SELECT id FROM old) RETURNING 1)
         SELECT count(*) FROM swept";
    let rows = pool.write(sql, &[&before.0, &i64::from(limit)]).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

/// Deletes every request to a thread of a tenant. Returns how many there were.
pub(crate) async fn erase_tenant(pool: &Pool, tenant: &str) -> Result<u64, Fault> {
    // PostgreSQL's texts have no NUL; such a tenant has no requests.
    if !is_tenant(tenant) {
        return Ok(0);
    }
    // Some at once: a statement has a time limit, and holds its locks to its end.
    let sql = "WITH part AS MATERIALIZED (SELECT id FROM inbox WHERE tenant = $1 LIMIT $2),
         erased AS (DELETE FROM inbox WHERE id IN (SELECT id FROM part) RETURNING 1)
         SELECT count(*) FROM erased";
    let mut erased = 0;
    for _ in 0..BATCHES_MAX {
        let rows = pool.write(sql, &[&tenant, &ROWS_AT_ONCE]).await?;
        let deleted = rows.first().map_or(0, |row| count(row, 0));
        if deleted == 0 {
            break;
        }
        erased += deleted;
    }
    Ok(erased)
}

/// Returns the server's current time, not that of the start of the transaction.
pub(crate) async fn now(pool: &Pool) -> Result<Timestamp, Fault> {
    let sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8";
    let rows = pool.read(sql, &[]).await?;
    Ok(Timestamp(rows.first().map_or(0, |row| row.get(0))))
}

const ROWS_AT_ONCE: i64 = 1_000;
/// So that an erasure ends also if a caller writes faster than it deletes.
const BATCHES_MAX: usize = 100_000;
