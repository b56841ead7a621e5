//! The long-term store: facts kept across threads.
//!
//! A namespace is stored as its segments, each followed by a separator that no segment can contain. So everything below a
//! prefix is one index range, in whole segments and byte by byte, and the order of the texts is the order of the namespaces.
//!
//! The text of a named tenant's namespace begins with a mark, the tenant and a separator. No segment contains a mark either, so a
//! key is unique within its tenant, the items of a tenant are one range as well, and the unnamed tenant's are after all marks.

use rusqlite::{Connection, Row, ToSql, params};
use serde_json::Value as Json;
use superstep_core::Timestamp;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{
    Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreError, StoreResult, item_checksum,
};

use crate::Sqlite;
use crate::fault::{Fault, SqliteError};
use crate::list::rows_max;
use crate::read::number;

impl Store for Sqlite {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        let (namespace, key) = (namespace.clone(), key.to_owned());
        Box::pin(async move {
            let address = (namespace.clone(), key.clone());
            let found = self
                .read(move |connection| find(connection, &namespace, &key, now))
                .await?;
            match found {
                Some(FoundItem {
                    refreshes: true, ..
                }) => {
                    let (namespace, key) = address;
                    Ok(self
                        .write(move |connection| refresh(connection, &namespace, &key, now))
                        .await?)
                }
                found => Ok(found.map(|found| found.item)),
            }
        })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        let checked = put.check().map(|()| put.clone());
        Box::pin(async move {
            let put = checked?;
            Ok(self
                .write(move |connection| self::put(connection, &put, now))
                .await?)
        })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let checked = put.check().map(|()| (seen.cloned(), put.clone()));
        Box::pin(async move {
            let (seen, put) = checked?;
            Ok(self
                .write(move |connection| put_if(connection, seen.as_ref(), &put, now))
                .await?)
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let (namespace, key) = (encode(namespace), key.to_owned());
        Box::pin(async move {
            let delete = move |connection: &Connection| {
                let mut delete = connection
                    .prepare_cached("DELETE FROM item WHERE namespace = ?1 AND key = ?2")?;
                Ok(delete.execute([namespace, key])? > 0)
            };
            Ok(self.write(delete).await?)
        })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        let search = search.clone();
        Box::pin(async move {
            Ok(self
                .list(move |connection| self::search(connection, &search, now))
                .await?)
        })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        let query = query.clone();
        Box::pin(async move {
            Ok(self
                .list(move |connection| namespaces(connection, &query, now))
                .await?)
        })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(async move {
            let sweep = move |connection: &Connection| {
                let mut delete = connection.prepare_cached(
                    "DELETE FROM item WHERE row IN (
                         SELECT row FROM item WHERE expires <= ?1 ORDER BY expires LIMIT ?2)",
                )?;
                Ok(delete.execute(params![now.0, limit])? as u64)
            };
            Ok(self.write(sweep).await?)
        })
    }
}

struct FoundItem {
    item: Item,
    /// Whether reading the item extends its lifetime.
    refreshes: bool,
}

fn find(
    connection: &Connection,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> Result<Option<FoundItem>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT namespace, key, value, created, updated, expires, checksum, refresh FROM item
         WHERE namespace = ?1 AND key = ?2 AND (expires IS NULL OR expires > ?3)",
    )?;
    let mut rows = select.query(params![encode(namespace), key, now.0])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(FoundItem {
        item: item(row)?,
        refreshes: row.get(7)?,
    }))
}

/// Extends an item's lifetime and reads it again, because it may have changed since it was found.
fn refresh(
    connection: &Connection,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> Result<Option<Item>, Fault> {
    connection
        .prepare_cached(
            // A clock that went backwards must not shorten a lifetime.
            "UPDATE item SET expires = max(expires, ?3 + ttl_ms)
             WHERE namespace = ?1 AND key = ?2 AND expires > ?3 AND refresh",
        )?
        .execute(params![encode(namespace), key, now.0])?;
    Ok(find(connection, namespace, key, now)?.map(|found| found.item))
}

fn put(connection: &Connection, put: &PutItem, now: Timestamp) -> Result<(), Fault> {
    let value = serde_json::to_string(&put.value)?;
    let namespace = encode(&put.namespace);
    let checksum = checksum(&namespace, &put.key, &value);
    connection
        .prepare_cached(
            // An expired item no longer exists, so its replacement counts as newly created.
            "INSERT INTO item (namespace, key, value, created, updated, expires, ttl_ms, refresh, checksum)
             VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (namespace, key) DO UPDATE SET value = ?3,
                 created = CASE WHEN expires <= ?4 THEN ?4 ELSE created END,
                 updated = ?4, expires = ?5, ttl_ms = ?6, refresh = ?7, checksum = ?8",
        )?
        .execute(params![
            namespace,
            put.key,
            value,
            now.0,
            put.ttl.map(|ttl| now.plus_ms(ttl.ms).0),
            // SQLite adds this to a time, which must not overflow into a floating-point number.
            put.ttl.map(|ttl| number(ttl.ms).min(TTL_MS_MAX)),
            put.ttl.is_some_and(|ttl| ttl.refresh_on_read),
            checksum,
        ])?;
    Ok(())
}

/// Runs in one transaction on the writing connection, so no other write comes between the comparison and the update.
fn put_if(
    connection: &Connection,
    seen: Option<&Json>,
    put: &PutItem,
    now: Timestamp,
) -> Result<bool, Fault> {
    let found = find(connection, &put.namespace, &put.key, now)?;
    if found.map(|found| found.item.value).as_ref() != seen {
        return Ok(false);
    }
    self::put(connection, put, now)?;
    Ok(true)
}

/// Scans items from the newest on and decodes them one at a time, so only the page is in memory.
fn search(connection: &Connection, search: &Search, now: Timestamp) -> Result<Vec<Item>, Fault> {
    let Some((low, high)) = range(&search.tenant, &search.prefix) else {
        return Ok(Vec::new());
    };
    let mut ordered = connection.prepare_cached(
        "SELECT row FROM item
         WHERE namespace >= ?1 AND namespace < ?2 AND (expires IS NULL OR expires > ?3)
         ORDER BY updated DESC, namespace, key",
    )?;
    let mut rows = ordered.query(params![low, high, now.0])?;
    let limit = rows_max(search.page);
    let mut found = Vec::new();
    let mut passed_over = 0;
    while found.len() < limit {
        let Some(row) = rows.next()? else { break };
        let Some(item) = matching(connection, row.get(0)?, search)? else {
            continue;
        };
        if passed_over < search.page.offset {
            passed_over += 1;
        } else {
            found.push(item);
        }
    }
    Ok(found)
}

fn matching(connection: &Connection, row: i64, search: &Search) -> Result<Option<Item>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT namespace, key, value, created, updated, expires, checksum FROM item WHERE row = ?1",
    )?;
    let mut rows = select.query([row])?;
    // It was found a moment ago in the same transaction.
    let row = rows.next()?.ok_or_else(|| SqliteError::RowMissing {
        what: format!("row {row} of the items"),
    })?;
    let item = item(row)?;
    let passes = search
        .filters
        .iter()
        .all(|filter| filter.matches(&item.value));
    Ok(passes.then_some(item))
}

fn namespaces(
    connection: &Connection,
    query: &NamespaceQuery,
    now: Timestamp,
) -> Result<Vec<Namespace>, Fault> {
    let literal = query.prefix.iter().take_while(|segment| *segment != "*");
    let Some((low, high)) = range(&query.tenant, literal) else {
        return Ok(Vec::new());
    };
    let mut select = connection.prepare_cached(
        "SELECT DISTINCT namespace FROM item
         WHERE namespace >= ?1 AND namespace < ?2 AND (expires IS NULL OR expires > ?3)
         ORDER BY namespace",
    )?;
    let mut rows = select.query(params![low, high, now.0])?;
    let limit = rows_max(query.page);
    let mut found = Vec::new();
    let mut last = None;
    let mut passed_over = 0;
    while found.len() < limit {
        let Some(row) = rows.next()? else { break };
        let namespace = decode(row.get_ref(0)?.as_str()?)?;
        let listed = query.cut(&namespace);
        // The rows are sorted, so namespaces that are equal once truncated are adjacent.
        if !query.matches(&namespace) || last.as_ref() == Some(&listed) {
            continue;
        }
        if passed_over < query.page.offset {
            passed_over += 1;
        } else {
            found.push(listed.clone());
        }
        last = Some(listed);
    }
    Ok(found)
}

/// Reads an item from seven columns: namespace, key, value, created, updated, expires, checksum. Decodes nothing before the
/// checksum is verified.
fn item(row: &Row<'_>) -> Result<Item, Fault> {
    let [namespace, key, value] = [bytes(row, 0)?, bytes(row, 1)?, bytes(row, 2)?];
    let stored: Option<i64> = row.get(6)?;
    // The checksum is missing if a version without checksums changed the item after the migration.
    if stored.is_some_and(|stored| stored != stored_checksum(namespace, key, value)) {
        let namespace = String::from_utf8_lossy(namespace);
        let (_, segments) = split(&namespace);
        return Err(StoreError::Damaged {
            namespace: segments
                .split_terminator(SEPARATOR)
                .map(str::to_owned)
                .collect(),
            key: String::from_utf8_lossy(key).into_owned(),
        }
        .into());
    }
    Ok(Item {
        namespace: decode(row.get_ref(0)?.as_str()?)?,
        key: row.get(1)?,
        value: serde_json::from_slice::<Json>(value)?,
        created: Timestamp(row.get(3)?),
        updated: Timestamp(row.get(4)?),
        expires: row.get::<_, Option<i64>>(5)?.map(Timestamp),
    })
}

/// Returns the bytes of a text column.
fn bytes<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], Fault> {
    Ok(row.get_ref(column)?.as_bytes()?)
}

fn checksum(namespace: &str, key: &str, value: &str) -> i64 {
    stored_checksum(namespace.as_bytes(), key.as_bytes(), value.as_bytes())
}

/// Returns the checksum as stored: the four bytes as a signed number.
fn stored_checksum(namespace: &[u8], key: &[u8], value: &[u8]) -> i64 {
    i64::from(item_checksum(namespace, key, value).cast_signed())
}

/// Computes checksums for the items of an older schema. Assumes that they are intact, since nothing can tell otherwise.
pub(crate) fn fill_checksums(connection: &Connection) -> Result<(), Fault> {
    let mut select = connection.prepare("SELECT row, namespace, key, value FROM item")?;
    let mut update = connection.prepare("UPDATE item SET checksum = ?2 WHERE row = ?1")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let checksum = stored_checksum(bytes(row, 1)?, bytes(row, 2)?, bytes(row, 3)?);
        update.execute([number, checksum])?;
    }
    Ok(())
}

fn encode(namespace: &Namespace) -> String {
    encode_parts(namespace.tenant(), namespace.segments())
}

fn encode_parts<'a>(tenant: &str, segments: impl IntoIterator<Item = &'a String>) -> String {
    let mut text = match tenant {
        "" => String::new(),
        tenant => [TENANT_MARK, tenant, SEPARATOR].concat(),
    };
    for segment in segments {
        text.push_str(segment);
        text.push_str(SEPARATOR);
    }
    text
}

fn decode(text: &str) -> Result<Namespace, StoreError> {
    let (tenant, segments) = split(text);
    Namespace::of_tenant(tenant, segments.split_terminator(SEPARATOR))
}

/// Splits the text of a namespace into the tenant and the segments.
fn split(text: &str) -> (&str, &str) {
    let named = text.strip_prefix(TENANT_MARK);
    named
        .and_then(|named| named.split_once(SEPARATOR))
        .unwrap_or(("", text))
}

/// Returns the range of all namespaces of a tenant below a prefix: from the first text, inclusive, to the second, exclusive. `None`
/// if no namespace can have such a prefix. A control character would reach into another tenant, or stand for two segments.
fn range<'a>(
    tenant: &str,
    prefix: impl IntoIterator<Item = &'a String>,
) -> Option<(String, Box<dyn ToSql>)> {
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
    if tenant.is_empty() && segments.is_empty() {
        // SQLite sorts every text before any blob.
        return Some((AFTER_SEPARATOR.to_owned(), Box::new(&[0_u8; 0])));
    }
    let low = encode_parts(tenant, segments);
    let high = format!(
        "{}{AFTER_SEPARATOR}",
        low.strip_suffix(SEPARATOR).unwrap_or(&low)
    );
    Some((low, Box::new(high)))
}

/// A control character that no segment contains, and that sorts before every character that a segment may contain.
const SEPARATOR: &str = "\u{1f}";
const AFTER_SEPARATOR: &str = "\u{20}";
/// Another such character, before the name of a tenant.
const TENANT_MARK: &str = "\u{1e}";
const TTL_MS_MAX: i64 = i64::MAX / 4;
