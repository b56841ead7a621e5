//! API keys and the keys of requests: the tables `api_key` and `request_key`.
//!
//! # Why READ COMMITTED is enough
//!
//! A request key is claimed by one statement that inserts its row, or replaces a row that has expired. Of two statements with the
//! same key, the second waits for the first, and PostgreSQL then compares the row again: it has not expired, so the second writes
//! nothing. A sweep locks the rows that it deletes, and so compares them again too. The rest are single statements on one row.

use superstep_core::checkpoint::Page;
use superstep_core::registry::{ApiKey, ClaimedRequest, RequestKey};
use superstep_core::{ApiKeyId, Timestamp};
use tokio_postgres::Row;

use super::hash;
use crate::fault::{Fault, PostgresError};
use crate::id::Id;
use crate::list::limits;
use crate::pool::{Params, Pool};
use crate::read::{count, text};

/// The columns that `api_key_row` reads.
macro_rules! columns {
    () => {
        "id, tenant, principal, name, hash, permissions, restricted, created, expires"
    };
}

/// Stores an API key unless one exists under its id. Returns whether it did.
pub(super) async fn create(pool: &Pool, key: &ApiKey) -> Result<bool, Fault> {
    let sql = concat!(
        "INSERT INTO api_key (",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING RETURNING 1"
    );
    let expires = key.expires.map(|expires| expires.0);
    let params: Params<'_> = &[
        &Id(key.id.to_bytes()),
        &key.tenant.as_bytes(),
        &key.principal.as_bytes(),
        &key.name.as_bytes(),
        &key.hash.as_slice(),
        &i16::from(key.permissions),
        &key.is_restricted,
        &key.created.0,
        &expires,
    ];
    Ok(!pool.write(sql, params).await?.is_empty())
}

/// Returns an API key of any tenant.
pub(super) async fn find(pool: &Pool, id: ApiKeyId) -> Result<Option<ApiKey>, Fault> {
    let sql = concat!("SELECT ", columns!(), " FROM api_key WHERE id = $1");
    let rows = pool.read(sql, &[&Id(id.to_bytes())]).await?;
    rows.first().map(api_key_row).transpose()
}

/// Lists the API keys of a tenant, newest first.
pub(super) async fn list(pool: &Pool, tenant: &str, page: Page) -> Result<Vec<ApiKey>, Fault> {
    let sql = concat!(
        "SELECT ",
        columns!(),
        " FROM api_key WHERE tenant = $1 ORDER BY number DESC LIMIT $2 OFFSET $3"
    );
    let (limit, offset) = limits(page);
    let params: Params<'_> = &[&tenant.as_bytes(), &limit, &offset];
    let rows = pool.read(sql, params).await?;
    rows.iter().map(api_key_row).collect()
}

/// Lets an API key expire, unless it expires earlier already. Returns the key.
pub(super) async fn expire(
    pool: &Pool,
    tenant: &str,
    id: ApiKeyId,
    at: Timestamp,
) -> Result<Option<ApiKey>, Fault> {
    // `least` passes over a null, which is a key that never expires.
    let sql = concat!(
        "UPDATE api_key SET expires = least(expires, $3) WHERE tenant = $1 AND id = $2 RETURNING ",
        columns!()
    );
    let params: Params<'_> = &[&tenant.as_bytes(), &Id(id.to_bytes()), &at.0];
    let rows = pool.write(sql, params).await?;
    rows.first().map(api_key_row).transpose()
}

fn api_key_row(row: &Row) -> Result<ApiKey, Fault> {
    let number = i64::from(row.get::<_, i16>(5));
    let permissions = u8::try_from(number).map_err(|_| PostgresError::Unknown {
        what: "permissions",
        number,
    })?;
    Ok(ApiKey {
        id: ApiKeyId::from_bytes(row.get::<_, Id>(0).0),
        tenant: text(row, 1)?,
        principal: text(row, 2)?,
        name: text(row, 3)?,
        hash: hash(row, 4)?,
        permissions,
        is_restricted: row.get(6),
        created: Timestamp(row.get(7)),
        expires: row.get::<_, Option<i64>>(8).map(Timestamp),
    })
}

/// Stores the key of a request, unless it is stored and has not expired.
pub(super) async fn claim(pool: &Pool, request: &RequestKey) -> Result<ClaimedRequest, Fault> {
    let store = "INSERT INTO request_key AS k (tenant, principal, key, fingerprint, at, expires)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (tenant, principal, key) DO UPDATE
             SET fingerprint = excluded.fingerprint, at = excluded.at, expires = excluded.expires
             WHERE k.expires <= excluded.at
         RETURNING 1";
    let find = "SELECT fingerprint, at, expires FROM request_key
         WHERE tenant = $1 AND principal = $2 AND key = $3";
    let (tenant, principal) = (request.tenant.as_bytes(), request.principal.as_bytes());
    let key = request.key.as_bytes();
    let params: Params<'_> = &[
        &tenant,
        &principal,
        &key,
        &request.fingerprint.as_slice(),
        &request.at.0,
        &request.expires.0,
    ];
    loop {
        if !pool.write(store, params).await?.is_empty() {
            return Ok(ClaimedRequest::New);
        }
        let rows = pool.read(find, &[&tenant, &principal, &key]).await?;
        if let Some(row) = rows.first() {
            let found = RequestKey {
                fingerprint: hash(row, 0)?,
                at: Timestamp(row.get(1)),
                expires: Timestamp(row.get(2)),
                ..request.clone()
            };
            match found.claimed_by(request) {
                ClaimedRequest::New => {}
                claimed => return Ok(claimed),
            }
        }
        // The key that was in the way was swept or replaced in between.
    }
}

/// Deletes request keys that have expired. Returns how many.
pub(super) async fn sweep(pool: &Pool, now: Timestamp, limit: u32) -> Result<u64, Fault> {
    // Materialized, because PostgreSQL might execute a subquery more than once, and delete more than the limit.
    let sql = "WITH old AS MATERIALIZED (
             SELECT tenant, principal, key FROM request_key WHERE expires <= $1
             ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED),
         swept AS (
             DELETE FROM request_key AS k USING old
             WHERE k.tenant = old.tenant AND k.principal = old.principal AND k.key = old.key
             RETURNING 1)
         SELECT count(*) FROM swept";
    let rows = pool.write(sql, &[&now.0, &i64::from(limit)]).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}
