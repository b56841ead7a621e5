//! The node cache: reusable results of nodes, shared across processes.

use superstep_core::Timestamp;
use superstep_core::store::item_checksum;
use xxhash_rust::xxh3::xxh3_64;

use crate::fault::Fault;
use crate::list::is_tenant;
use crate::pool::Pool;
use crate::read::count;

/// Returns the bytes under a key, unless they have expired.
pub(crate) async fn get(pool: &Pool, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Fault> {
    let sql = "SELECT body, checksum FROM cache
         WHERE hash = $1 AND key = $2 AND (expires IS NULL OR expires > $3)";
    let rows = pool
        .read(sql, &[&hash(key), &key.as_bytes(), &now.0])
        .await?;
    // A result that is damaged, or predates checksums, counts as missing: the node runs again.
    let found = rows
        .first()
        .map(|row| (row.get::<_, Vec<u8>>(0), row.get::<_, Option<i32>>(1)));
    Ok(found
        .filter(|(body, stored)| *stored == Some(checksum(key, body)))
        .map(|(body, _)| body))
}

/// Stores bytes under a key, replacing earlier ones.
pub(crate) async fn put(
    pool: &Pool,
    key: &str,
    body: &[u8],
    expires: Option<Timestamp>,
) -> Result<(), Fault> {
    let sql = "INSERT INTO cache (hash, key, expires, body, checksum) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (hash) DO UPDATE
             SET key = excluded.key, expires = excluded.expires, body = excluded.body,
                 checksum = excluded.checksum";
    let expires = expires.map(|expires| expires.0);
    let checksum = checksum(key, body);
    pool.write(
        sql,
        &[&hash(key), &key.as_bytes(), &expires, &body, &checksum],
    )
    .await?;
    Ok(())
}

/// Deletes every key with this prefix, compared byte by byte.
pub(crate) async fn clear(pool: &Pool, prefix: &str) -> Result<(), Fault> {
    let sql = "DELETE FROM cache WHERE substring(key FROM 1 FOR length($1::bytea)) = $1::bytea";
    pool.write(sql, &[&prefix.as_bytes()]).await?;
    Ok(())
}

/// Deletes the results of a tenant. Returns how many there were. Reads all results, so it does that in several statements, which have a
/// time limit.
pub(crate) async fn clear_tenant(pool: &Pool, tenant: &str) -> Result<u64, Fault> {
    if !is_tenant(tenant) {
        return Ok(0);
    }
    // As `CacheKey::tenant_of` reads a key. Its bytes need not be a text of PostgreSQL, which has no NUL.
    let sql = "WITH part AS MATERIALIZED (
             SELECT hash, encode(key, 'escape') AS key FROM cache
             WHERE hash >= $2 ORDER BY hash LIMIT $3),
         cleared AS (
             DELETE FROM cache WHERE hash IN (
                 SELECT hash FROM part
                 WHERE key ~ '^([^/]*/){3}[0-9a-f]{32}[^/]*/'
                   AND substring(split_part(key, '/', 4) FROM 33) = $1)
             RETURNING 1)
         SELECT (SELECT count(*) FROM cleared), (SELECT max(hash) FROM part)";
    let suffix = match tenant {
        "" => String::new(),
        tenant => format!("@{tenant}"),
    };
    let mut cleared = 0;
    let mut from = Some(i64::MIN);
    while let Some(first) = from {
        let rows = pool.write(sql, &[&suffix, &first, &ROWS_AT_ONCE]).await?;
        cleared += rows.first().map_or(0, |row| count(row, 0));
        let last = rows.first().and_then(|row| row.get::<_, Option<i64>>(1));
        from = last.and_then(|last| last.checked_add(1));
    }
    Ok(cleared)
}

/// Deletes expired results. Returns how many there were.
pub(crate) async fn sweep(pool: &Pool, now: Timestamp, limit: u32) -> Result<u64, Fault> {
    // Several processes sweep: one that meets the rows of another leaves them to it.
    let sql = "WITH old AS (
             SELECT hash FROM cache WHERE expires <= $1 ORDER BY expires LIMIT $2
             FOR UPDATE SKIP LOCKED),
         swept AS (DELETE FROM cache WHERE hash IN (SELECT hash FROM old) RETURNING 1)
         SELECT count(*) FROM swept";
    let rows = pool.write(sql, &[&now.0, &i64::from(limit)]).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

fn checksum(key: &str, body: &[u8]) -> i32 {
    item_checksum(&[], key.as_bytes(), body).cast_signed()
}

fn hash(key: &str) -> i64 {
    xxh3_64(key.as_bytes()).cast_signed()
}

/// How many results a statement reads that looks for those of a tenant.
const ROWS_AT_ONCE: i64 = 1_000;
