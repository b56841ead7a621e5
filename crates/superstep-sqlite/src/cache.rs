//! The node cache: reusable results of nodes, shared across processes.

use rusqlite::{Connection, OptionalExtension, params};
use superstep_core::Timestamp;
use superstep_core::graph::CacheKey;
use superstep_core::store::item_checksum;

use crate::Sqlite;
use crate::fault::Fault;

/// Returns the bytes under a key, unless they have expired.
pub(crate) fn get(
    connection: &Connection,
    key: &str,
    now: Timestamp,
) -> Result<Option<Vec<u8>>, Fault> {
    let found: Option<(Vec<u8>, Option<i64>)> = connection
        .prepare_cached(
            "SELECT body, checksum FROM cache WHERE key = ?1 AND (expires IS NULL OR expires > ?2)",
        )?
        .query_row(params![key, now.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    // A result that is damaged, or predates checksums, counts as missing: the node runs again.
    Ok(found
        .filter(|(body, stored)| *stored == Some(checksum(key, body)))
        .map(|(body, _)| body))
}

/// Stores bytes under a key, replacing earlier ones.
pub(crate) fn put(
    connection: &Connection,
    key: &str,
    body: &[u8],
    expires: Option<Timestamp>,
) -> Result<(), Fault> {
    let expires = expires.map(|expires| expires.0);
    connection
        .prepare_cached(
            "INSERT INTO cache (key, expires, body, checksum) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (key) DO UPDATE SET expires = excluded.expires, body = excluded.body,
                 checksum = excluded.checksum",
        )?
        .execute(params![key, expires, body, checksum(key, body)])?;
    Ok(())
}

fn checksum(key: &str, body: &[u8]) -> i64 {
    i64::from(item_checksum(&[], key.as_bytes(), body).cast_signed())
}

/// Deletes every key with this prefix, compared byte by byte.
pub(crate) fn clear(connection: &Connection, prefix: &str) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM cache WHERE substr(key, 1, length(?1)) = ?1")?
        .execute([prefix])?;
    Ok(())
}

/// Deletes the results of a tenant. Returns how many there were. Reads all results, so it does that in several transactions.
pub(crate) async fn clear_tenant(sqlite: &Sqlite, tenant: &str) -> Result<u64, Fault> {
    let mut cleared = 0;
    let mut after = Some(i64::MIN);
    while let Some(place) = after {
        let tenant = tenant.to_owned();
        let part = sqlite
            .write(move |db| clear_part(db, &tenant, place))
            .await?;
        cleared += part.cleared;
        after = part.last;
    }
    Ok(cleared)
}

/// Some of all results.
struct ClearedPart {
    /// Number of those that were of the tenant.
    cleared: u64,
    /// Number of the last row; `None` if there were no rows.
    last: Option<i64>,
}

fn clear_part(connection: &Connection, tenant: &str, after: i64) -> Result<ClearedPart, Fault> {
    let mut select = connection
        .prepare_cached("SELECT rowid, key FROM cache WHERE rowid > ?1 ORDER BY rowid LIMIT ?2")?;
    let mut rows = select.query(params![after, ROWS_AT_ONCE])?;
    let mut found: Vec<i64> = Vec::new();
    let mut last = None;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        last = Some(number);
        if CacheKey::tenant_of(row.get_ref(1)?.as_str()?) == Some(tenant) {
            found.push(number);
        }
    }
    let mut delete = connection.prepare_cached("DELETE FROM cache WHERE rowid = ?1")?;
    for row in &found {
        delete.execute([row])?;
    }
    let cleared = found.len() as u64;
    Ok(ClearedPart { cleared, last })
}

/// Deletes expired results. Returns how many there were.
pub(crate) fn sweep(connection: &Connection, now: Timestamp, limit: u32) -> Result<u64, Fault> {
    let swept = connection
        .prepare_cached(
            "DELETE FROM cache WHERE rowid IN (SELECT rowid FROM cache WHERE expires <= ?1 LIMIT ?2)",
        )?
        .execute(params![now.0, limit])?;
    Ok(swept as u64)
}

/// How many results are read before others may write.
const ROWS_AT_ONCE: u32 = 1_000;
