//! API keys, and the keys of requests.

use rusqlite::{Connection, OptionalExtension, Row, params};
use superstep_core::checkpoint::Page;
use superstep_core::registry::{ApiKey, ClaimedRequest, RequestKey};
use superstep_core::{ApiKeyId, Timestamp};

use crate::fault::Fault;
use crate::list::rows_max;
use crate::{read, row};

/// Selects the columns that `api_key_row` reads.
macro_rules! select_api_key {
    ($rest:literal) => {
        concat!(
            "SELECT id, principal, name, hash, permissions, restricted, created, expires,
                    (SELECT name FROM tenant WHERE tenant.id = api_key.tenant) FROM api_key ",
            $rest
        )
    };
}

/// Stores an API key, unless one with its id exists. Returns whether it did.
pub(super) fn create(connection: &Connection, key: &ApiKey) -> Result<bool, Fault> {
    if find(connection, key.id)?.is_some() {
        return Ok(false);
    }
    let tenant = row::tenant(connection, &key.tenant)?;
    connection
        .prepare_cached(
            "INSERT INTO api_key (id, tenant, principal, name, hash, permissions, restricted,
                 created, expires)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            key.id.to_bytes(),
            tenant,
            key.principal,
            key.name,
            key.hash,
            key.permissions,
            key.is_restricted,
            key.created.0,
            key.expires.map(|expires| expires.0),
        ])?;
    Ok(true)
}

/// Returns an API key of any tenant.
pub(super) fn find(connection: &Connection, id: ApiKeyId) -> Result<Option<ApiKey>, Fault> {
    let mut select = connection.prepare_cached(select_api_key!("WHERE id = ?1"))?;
    let mut rows = select.query([id.to_bytes()])?;
    rows.next()?.map(api_key_row).transpose()
}

/// Lists the API keys of a tenant, newest first.
pub(super) fn list(
    connection: &Connection,
    tenant: &str,
    page: Page,
) -> Result<Vec<ApiKey>, Fault> {
    let Some(tenant) = read::tenant(connection, tenant)? else {
        return Ok(Vec::new());
    };
    let mut select = connection.prepare_cached(LISTED)?;
    let mut rows = select.query(params![tenant, rows_max(page) as i64, page.offset])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(api_key_row(row)?);
    }
    Ok(found)
}

const LISTED: &str = select_api_key!(
    "INDEXED BY api_key_tenant WHERE tenant = ?1 ORDER BY number DESC LIMIT ?2 OFFSET ?3"
);

/// Lets an API key expire, unless it expires earlier already. Returns the key.
pub(super) fn expire(
    connection: &Connection,
    tenant: &str,
    id: ApiKeyId,
    at: Timestamp,
) -> Result<Option<ApiKey>, Fault> {
    let changed = connection
        .prepare_cached(
            "UPDATE api_key SET expires = min(coalesce(expires, ?3), ?3)
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![tenant, id.to_bytes(), at.0])?;
    match changed {
        0 => Ok(None),
        _ => find(connection, id),
    }
}

fn api_key_row(row: &Row<'_>) -> Result<ApiKey, Fault> {
    let expires: Option<i64> = row.get(7)?;
    Ok(ApiKey {
        id: ApiKeyId::from_bytes(row.get(0)?),
        tenant: row.get(8)?,
        principal: row.get(1)?,
        name: row.get(2)?,
        hash: row.get(3)?,
        permissions: row.get(4)?,
        is_restricted: row.get(5)?,
        created: Timestamp(row.get(6)?),
        expires: expires.map(Timestamp),
    })
}

/// Stores the key of a request, unless it is stored and has not expired. Runs in a transaction of the writing connection, so of
/// requests that come at the same time one is the first.
pub(super) fn claim(
    connection: &Connection,
    request: &RequestKey,
) -> Result<ClaimedRequest, Fault> {
    let tenant = row::tenant(connection, &request.tenant)?;
    let found = connection
        .prepare_cached(
            "SELECT fingerprint, at, expires FROM request_key
             WHERE tenant = ?1 AND principal = ?2 AND key = ?3",
        )?
        .query_row(params![tenant, request.principal, request.key], |row| {
            Ok(RequestKey {
                fingerprint: row.get(0)?,
                at: Timestamp(row.get(1)?),
                expires: Timestamp(row.get(2)?),
                ..request.clone()
            })
        })
        .optional()?;
    let claimed = found.map_or(ClaimedRequest::New, |found| found.claimed_by(request));
    if claimed == ClaimedRequest::New {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO request_key
                     (tenant, principal, key, fingerprint, at, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                tenant,
                request.principal,
                request.key,
                request.fingerprint,
                request.at.0,
                request.expires.0,
            ])?;
    }
    Ok(claimed)
}

/// Deletes request keys that have expired. Returns how many.
pub(super) fn sweep(connection: &Connection, now: Timestamp, limit: u32) -> Result<u64, Fault> {
    let swept = connection
        .prepare_cached(SWEEP)?
        .execute(params![now.0, limit])?;
    Ok(swept as u64)
}

const SWEEP: &str = "DELETE FROM request_key WHERE (tenant, principal, key) IN (
         SELECT tenant, principal, key FROM request_key INDEXED BY request_key_expires
         WHERE expires <= ?1 ORDER BY expires LIMIT ?2)";
