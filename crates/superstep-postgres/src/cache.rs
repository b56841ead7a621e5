//! The node cache: reusable results of nodes, shared across processes.

use superstep_core::Timestamp;
use superstep_core::store::item_checksum;
use xxhash_rust::xxh3::xxh3_64;

use crate::fault::Fault;
use crate::pool::Pool;

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

/// Deletes expired results. Returns how many there were.
pub(crate) async fn sweep(pool: &Pool, now: Timestamp) -> Result<u64, Fault> {
    let sql = "WITH swept AS (DELETE FROM cache WHERE expires <= $1 RETURNING 1)
         SELECT count(*) FROM swept";
    let rows = pool.write(sql, &[&now.0]).await?;
    Ok(rows
        .first()
        .map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

fn checksum(key: &str, body: &[u8]) -> i32 {
    item_checksum(&[], key.as_bytes(), body).cast_signed()
}

fn hash(key: &str) -> i64 {
    xxh3_64(key.as_bytes()).cast_signed()
}
