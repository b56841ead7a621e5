//! The long-term store: facts kept across threads.
//!
//! A namespace is stored as its segments, each followed by a separator that no segment can contain. So everything below a
//! prefix is one index range, in whole segments and byte by byte, and the order of the bytes is the order of the namespaces.
//!
//! The bytes of a named tenant's namespace begin with a mark, the tenant and a separator. No segment contains a mark either, so a
//! key is unique within its tenant, the items of a tenant are one range as well, and the unnamed tenant's are after all marks.

use serde_json::Value as Json;
use superstep_core::Timestamp;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{
    Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreError, StoreResult, item_checksum,
};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use crate::Postgres;
use crate::fault::{Fault, PostgresError};
use crate::list::{limits, rows_max};
use crate::pool::{Pool, walk};
use crate::read::{number, text};

impl Store for Postgres {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(async move { Ok(get(&self.pool, namespace, key, now).await?) })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            put.check()?;
            Ok(self::put(&self.pool, put, now).await?)
        })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            put.check()?;
            Ok(put_if(&self.pool, seen, put, now).await?)
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let sql = "DELETE FROM item WHERE namespace = $1 AND key = $2 RETURNING 1";
        Box::pin(async move {
            let namespace = encode(namespace);
            let rows = self.pool.write(sql, &[&namespace, &key.as_bytes()]).await?;
            Ok(!rows.is_empty())
        })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(async move { Ok(self::search(&self.pool, search, now).await?) })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        Box::pin(async move { Ok(namespaces(&self.pool, query, now).await?) })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        let sql = "WITH swept AS (DELETE FROM item WHERE row IN (
                 SELECT row FROM item WHERE expires <= $1 ORDER BY expires LIMIT $2) RETURNING 1)
             SELECT count(*) FROM swept";
        Box::pin(async move {
            let rows = self.pool.write(sql, &[&now.0, &i64::from(limit)]).await?;
            Ok(rows
                .first()
                .map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
        })
    }
}

async fn get(
    pool: &Pool,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> Result<Option<Item>, Fault> {
    let namespace = encode(namespace);
    let sql = "SELECT namespace, key, value, created, updated, expires, checksum, refresh FROM item
         WHERE namespace = $1 AND key = $2 AND (expires IS NULL OR expires > $3)";
    let rows = pool
        .read(sql, &[&namespace, &key.as_bytes(), &now.0])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    if !row.get::<_, bool>(7) {
        return item(row).map(Some);
    }
    // A clock that went backwards must not shorten a lifetime. Returns the item again, because it may have changed since it
    // was found.
    let sql = "UPDATE item SET expires = CASE WHEN refresh THEN greatest(expires, $3 + ttl_ms) ELSE expires END
         WHERE namespace = $1 AND key = $2 AND (expires IS NULL OR expires > $3)
         RETURNING namespace, key, value, created, updated, expires, checksum";
    let rows = pool
        .write(sql, &[&namespace, &key.as_bytes(), &now.0])
        .await?;
    rows.first().map(item).transpose()
}

async fn put(pool: &Pool, put: &PutItem, now: Timestamp) -> Result<(), Fault> {
    let row = Columns::of(put, now)?;
    // An expired item no longer exists, so its replacement counts as newly created.
    let sql = "INSERT INTO item AS i (namespace, key, value, created, updated, expires, ttl_ms, refresh, checksum)
         VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8)
         ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value,
             created = CASE WHEN i.expires <= excluded.created THEN excluded.created ELSE i.created END,
             updated = excluded.updated, expires = excluded.expires, ttl_ms = excluded.ttl_ms,
             refresh = excluded.refresh, checksum = excluded.checksum";
    pool.write(sql, &row.params()).await?;
    Ok(())
}

/// A single statement: under READ COMMITTED PostgreSQL compares again with the current version of a row that another
/// statement changed meanwhile, so of several writers that saw the same value one succeeds. Both sides of the comparison come
/// from the same encoder, which encodes equal values to equal bytes.
async fn put_if(
    pool: &Pool,
    seen: Option<&Json>,
    put: &PutItem,
    now: Timestamp,
) -> Result<bool, Fault> {
    let row = Columns::of(put, now)?;
    let stored = match seen {
        None => {
            let sql = "INSERT INTO item AS i (namespace, key, value, created, updated, expires, ttl_ms, refresh, checksum)
                 VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8)
                 ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value,
                     created = excluded.created, updated = excluded.updated,
                     expires = excluded.expires, ttl_ms = excluded.ttl_ms, refresh = excluded.refresh,
                     checksum = excluded.checksum
                     WHERE i.expires <= excluded.created
                 RETURNING 1";
            pool.write(sql, &row.params()).await?
        }
        Some(seen) => {
            let seen = serde_json::to_vec(seen)?;
            let sql = "UPDATE item SET value = $3, updated = $4, expires = $5, ttl_ms = $6, refresh = $7, checksum = $8
                 WHERE namespace = $1 AND key = $2 AND (expires IS NULL OR expires > $4) AND value = $9
                 RETURNING 1";
            let [a, b, c, d, e, f, g, h] = row.params();
            pool.write(sql, &[a, b, c, d, e, f, g, h, &seen]).await?
        }
    };
    Ok(!stored.is_empty())
}

/// An item as parameters of a statement.
struct Columns<'a> {
    namespace: Vec<u8>,
    key: &'a [u8],
    value: Vec<u8>,
    now: i64,
    expires: Option<i64>,
    ttl_ms: Option<i64>,
    refresh: bool,
    checksum: i32,
}

impl<'a> Columns<'a> {
    fn of(put: &'a PutItem, now: Timestamp) -> Result<Self, Fault> {
        let namespace = encode(&put.namespace);
        let key = put.key.as_bytes();
        let value = serde_json::to_vec(&put.value)?;
        Ok(Self {
            checksum: checksum(&namespace, key, &value),
            namespace,
            key,
            value,
            now: now.0,
            expires: put.ttl.map(|ttl| now.plus_ms(ttl.ms).0),
            // PostgreSQL adds this to a time, which must not overflow.
            ttl_ms: put.ttl.map(|ttl| number(ttl.ms).min(TTL_MS_MAX)),
            refresh: put.ttl.is_some_and(|ttl| ttl.refresh_on_read),
        })
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 8] {
        [
            &self.namespace,
            &self.key,
            &self.value,
            &self.now,
            &self.expires,
            &self.ttl_ms,
            &self.refresh,
            &self.checksum,
        ]
    }
}

/// Without filters the database selects the page; with filters items are compared here, from the newest on.
async fn search(pool: &Pool, search: &Search, now: Timestamp) -> Result<Vec<Item>, Fault> {
    let Some((low, high)) = range(&search.tenant, &search.prefix) else {
        return Ok(Vec::new());
    };
    if search.filters.is_empty() {
        let (limit, offset) = limits(search.page);
        let rows = pool
            .read(PAGE, &[&low, &high, &now.0, &limit, &offset])
            .await?;
        return rows.iter().map(item).collect();
    }
    let limit = rows_max(search.page);
    let mut found = Vec::new();
    let mut passed_over = 0;
    walk(pool, ALL, &[&low, &high, &now.0], |row| {
        let item = item(row)?;
        let mut filters = search.filters.iter();
        if filters.all(|filter| filter.matches(&item.value)) {
            if passed_over < search.page.offset {
                passed_over += 1;
            } else if found.len() < limit {
                found.push(item);
            }
        }
        Ok(found.len() < limit)
    })
    .await?;
    Ok(found)
}

macro_rules! items {
    ($rest:literal) => {
        concat!(
            "SELECT namespace, key, value, created, updated, expires, checksum FROM item
             WHERE namespace >= $1 AND ($2::bytea IS NULL OR namespace < $2)
               AND (expires IS NULL OR expires > $3)
             ORDER BY updated DESC, namespace, key",
            $rest
        )
    };
}

const ALL: &str = items!("");
const PAGE: &str = items!(" LIMIT $4 OFFSET $5");

async fn namespaces(
    pool: &Pool,
    query: &NamespaceQuery,
    now: Timestamp,
) -> Result<Vec<Namespace>, Fault> {
    let literal = query.prefix.iter().take_while(|segment| *segment != "*");
    let Some((low, high)) = range(&query.tenant, literal) else {
        return Ok(Vec::new());
    };
    let sql = "SELECT DISTINCT namespace FROM item
         WHERE namespace >= $1 AND ($2::bytea IS NULL OR namespace < $2)
           AND (expires IS NULL OR expires > $3)
         ORDER BY namespace";
    let limit = rows_max(query.page);
    let mut found = Vec::new();
    let mut last = None;
    let mut passed_over = 0;
    walk(pool, sql, &[&low, &high, &now.0], |row| {
        let namespace = decode(row.get(0))?;
        let listed = query.cut(&namespace);
        // The rows are sorted, so namespaces that are equal once truncated are adjacent.
        if query.matches(&namespace) && last.as_ref() != Some(&listed) {
            if passed_over < query.page.offset {
                passed_over += 1;
            } else if found.len() < limit {
                found.push(listed.clone());
            }
            last = Some(listed);
        }
        Ok(found.len() < limit)
    })
    .await?;
    Ok(found)
}

/// Reads an item from seven columns: namespace, key, value, created, updated, expires, checksum. Decodes nothing before the
/// checksum is verified.
fn item(row: &Row) -> Result<Item, Fault> {
    let [namespace, key, value]: [&[u8]; 3] = [row.get(0), row.get(1), row.get(2)];
    let stored: Option<i32> = row.get(6);
    // The checksum is missing if a version without checksums changed the item after the migration.
    if stored.is_some_and(|stored| stored != checksum(namespace, key, value)) {
        let namespace = String::from_utf8_lossy(namespace);
        let (_, segments) = split(&namespace);
        let segments = segments.split_terminator(char::from(SEPARATOR));
        return Err(StoreError::Damaged {
            namespace: segments.map(str::to_owned).collect(),
            key: String::from_utf8_lossy(key).into_owned(),
        }
        .into());
    }
    Ok(Item {
        namespace: decode(namespace)?,
        key: text(row, 1)?,
        value: serde_json::from_slice::<Json>(value)?,
        created: Timestamp(row.get(3)),
        updated: Timestamp(row.get(4)),
        expires: row.get::<_, Option<i64>>(5).map(Timestamp),
    })
}

fn checksum(namespace: &[u8], key: &[u8], value: &[u8]) -> i32 {
    item_checksum(namespace, key, value).cast_signed()
}

/// Computes checksums for the items of an older schema, in batches. Assumes that they are intact, since nothing can tell
/// otherwise.
pub(crate) async fn fill_checksums(transaction: &Transaction<'_>) -> Result<(), Fault> {
    let select =
        "SELECT row, namespace, key, value FROM item WHERE row > $1 ORDER BY row LIMIT 500";
    let update = "UPDATE item SET checksum = filled.checksum
         FROM unnest($1::int8[], $2::int4[]) AS filled (row, checksum) WHERE item.row = filled.row";
    let mut after = i64::MIN;
    loop {
        let rows = transaction.query(select, &[&after]).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.get(0);
        let numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let sums: Vec<i32> = rows
            .iter()
            .map(|row| checksum(row.get(1), row.get(2), row.get(3)))
            .collect();
        transaction.execute(update, &[&numbers, &sums]).await?;
    }
}

fn encode(namespace: &Namespace) -> Vec<u8> {
    encode_parts(namespace.tenant(), namespace.segments())
}

fn encode_parts<'a>(tenant: &str, segments: impl IntoIterator<Item = &'a String>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !tenant.is_empty() {
        bytes.push(TENANT_MARK);
        bytes.extend_from_slice(tenant.as_bytes());
        bytes.push(SEPARATOR);
    }
    for segment in segments {
        bytes.extend_from_slice(segment.as_bytes());
        bytes.push(SEPARATOR);
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Namespace, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|_| PostgresError::NotText)?;
    let (tenant, segments) = split(text);
    let segments = segments.split_terminator(char::from(SEPARATOR));
    let namespace: Result<_, StoreError> = Namespace::of_tenant(tenant, segments);
    Ok(namespace?)
}

/// Splits the text of a namespace into the tenant and the segments.
fn split(text: &str) -> (&str, &str) {
    let named = text.strip_prefix(char::from(TENANT_MARK));
    named
        .and_then(|named| named.split_once(char::from(SEPARATOR)))
        .unwrap_or(("", text))
}

/// Returns the range of all namespaces of a tenant below a prefix: from the first, inclusive, to the second, exclusive. `None` if
/// no namespace can have such a prefix. A control character would reach into another tenant, or stand for two segments.
fn range<'a>(
    tenant: &str,
    prefix: impl IntoIterator<Item = &'a String>,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut segments = Vec::new();
    for segment in prefix {
        if segment.is_empty() || segment.chars().any(char::is_control) {
            return None;
        }
        segments.push(segment);
    }
    if tenant.chars().any(char::is_control) {
        return None;
    }
    let low = encode_parts(tenant, segments);
    let mut high = low.clone();
    match high.pop() {
        Some(separator) => {
            high.push(separator + 1);
            Some((low, Some(high)))
        }
        None => Some((vec![SEPARATOR + 1], None)),
    }
}

/// A control character that no segment contains, and that sorts before every character that a segment may contain.
const SEPARATOR: u8 = 0x1f;
/// Another such character, before the name of a tenant.
const TENANT_MARK: u8 = 0x1e;
const TTL_MS_MAX: i64 = i64::MAX / 4;
