//! The erasure of a tenant, in batches: a statement has a time limit and holds its locks to its end, and a tenant may have millions of
//! rows.

use superstep_core::registry::ErasedRows;
use tokio_postgres::types::ToSql;

use crate::fault::Fault;
use crate::pool::Pool;
use crate::read::count;

/// Rows of a kind that an erasure deletes.
struct RowKind {
    /// Deletes at most so many rows of a tenant, and returns how many there were.
    delete: &'static str,
    /// Whether the column `tenant` is text. If not, it has the bytes.
    is_text: bool,
    count: fn(&mut ErasedRows) -> &mut u64,
}

/// Deletes the rows of a tenant but those of its audit log. Returns how many there were of each kind.
pub(super) async fn erase(pool: &Pool, tenant: &str) -> Result<ErasedRows, Fault> {
    let mut erased = ErasedRows::default();
    // PostgreSQL's texts have no NUL; such a tenant has no rows.
    if tenant.contains('\0') {
        return Ok(erased);
    }
    let bytes = tenant.as_bytes();
    for kind in &KINDS {
        let name: &(dyn ToSql + Sync) = match kind.is_text {
            true => &tenant,
            false => &bytes,
        };
        for _ in 0..BATCHES_MAX {
            let rows = pool.write(kind.delete, &[name, &ROWS_AT_ONCE]).await?;
            let deleted = rows.first().map_or(0, |row| count(row, 0));
            if deleted == 0 {
                break;
            }
            *(kind.count)(&mut erased) += deleted;
        }
    }
    Ok(erased)
}

/// Materialized, because PostgreSQL might execute a subquery more than once, and delete more than the limit.
macro_rules! delete_some {
    ($table:literal, $key:literal, $rest:literal) => {
        concat!(
            "WITH part AS MATERIALIZED (SELECT ",
            $key,
            " FROM ",
            $table,
            " WHERE tenant = $1 ",
            $rest,
            " LIMIT $2), gone AS (DELETE FROM ",
            $table,
            " WHERE (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM part) RETURNING 1) SELECT count(*) FROM gone"
        )
    };
}

/// Keys and crons first, so that nothing new begins. Versions of assistants go with them.
static KINDS: [RowKind; 6] = [
    RowKind {
        delete: delete_some!("api_key", "id", ""),
        is_text: false,
        count: |erased| &mut erased.api_keys,
    },
    RowKind {
        delete: delete_some!("cron", "tenant, id", ""),
        is_text: false,
        count: |erased| &mut erased.crons,
    },
    RowKind {
        delete: delete_some!("assistant", "tenant, id", ""),
        is_text: false,
        count: |erased| &mut erased.assistants,
    },
    RowKind {
        delete: delete_some!("run", "tenant, id", "ORDER BY number"),
        is_text: true,
        count: |erased| &mut erased.runs,
    },
    RowKind {
        delete: delete_some!("delivery", "tenant, id", "ORDER BY number"),
        is_text: true,
        count: |erased| &mut erased.deliveries,
    },
    RowKind {
        delete: delete_some!("request_key", "tenant, principal, key", ""),
        is_text: false,
        count: |erased| &mut erased.request_keys,
    },
];

const ROWS_AT_ONCE: i64 = 1_000;
/// So that an erasure ends also if a caller writes faster than it deletes.
const BATCHES_MAX: usize = 100_000;
