//! The erasure of a tenant, in batches: all other writes wait for the transaction in progress, and a tenant may have millions of rows.

use rusqlite::{Connection, params};
use superstep_core::registry::ErasedRows;

use crate::Sqlite;
use crate::fault::Fault;
use crate::read;

/// Rows of a kind that an erasure deletes.
struct RowKind {
    /// Statements that delete some of a tenant, each at most so many as it is given. The last one counts.
    delete: &'static [&'static str],
    count: fn(&mut ErasedRows) -> &mut u64,
}

/// Deletes the rows of a tenant but those of its audit log. Returns how many there were of each kind.
pub(super) async fn erase(sqlite: &Sqlite, tenant: &str) -> Result<ErasedRows, Fault> {
    let mut erased = ErasedRows::default();
    for kind in &KINDS {
        for _ in 0..BATCHES_MAX {
            let (tenant, statements) = (tenant.to_owned(), kind.delete);
            let delete = move |db: &Connection| delete_some(db, &tenant, statements);
            let deleted = sqlite.write(delete).await?;
            if deleted == 0 {
                break;
            }
            *(kind.count)(&mut erased) += deleted;
        }
    }
    Ok(erased)
}

fn delete_some(connection: &Connection, tenant: &str, statements: &[&str]) -> Result<u64, Fault> {
    let Some(tenant) = read::tenant(connection, tenant)? else {
        return Ok(0);
    };
    let mut deleted = 0;
    for sql in statements {
        deleted = connection
            .prepare_cached(sql)?
            .execute(params![tenant, ROWS_AT_ONCE])?;
    }
    Ok(deleted as u64)
}

/// Keys and crons first, so that nothing new begins.
static KINDS: [RowKind; 6] = [
    RowKind {
        delete: &["DELETE FROM api_key WHERE number IN (
             SELECT number FROM api_key WHERE tenant = ?1 LIMIT ?2)"],
        count: |erased| &mut erased.api_keys,
    },
    RowKind {
        delete: &["DELETE FROM cron WHERE tenant = ?1 AND id IN (
             SELECT id FROM cron WHERE tenant = ?1 LIMIT ?2)"],
        count: |erased| &mut erased.crons,
    },
    RowKind {
        delete: &[
            "DELETE FROM assistant_version WHERE tenant = ?1 AND id IN (
                 SELECT id FROM assistant WHERE tenant = ?1 ORDER BY id LIMIT ?2)",
            "DELETE FROM assistant WHERE tenant = ?1 AND id IN (
                 SELECT id FROM assistant WHERE tenant = ?1 ORDER BY id LIMIT ?2)",
        ],
        count: |erased| &mut erased.assistants,
    },
    RowKind {
        delete: &["DELETE FROM run WHERE number IN (
             SELECT number FROM run INDEXED BY run_tenant WHERE tenant = ?1 LIMIT ?2)"],
        count: |erased| &mut erased.runs,
    },
    RowKind {
        delete: &["DELETE FROM delivery WHERE number IN (
             SELECT number FROM delivery INDEXED BY delivery_tenant WHERE tenant = ?1 LIMIT ?2)"],
        count: |erased| &mut erased.deliveries,
    },
    RowKind {
        delete: &[
            "DELETE FROM request_key WHERE tenant = ?1 AND (principal, key) IN (
             SELECT principal, key FROM request_key WHERE tenant = ?1 LIMIT ?2)",
        ],
        count: |erased| &mut erased.request_keys,
    },
];

const ROWS_AT_ONCE: u32 = 1_000;
/// So that an erasure ends also if a caller writes faster than it deletes.
const BATCHES_MAX: usize = 100_000;
