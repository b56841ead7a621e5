//! The erasure of a tenant.

use superstep_core::registry::ErasedRows;

use crate::fault::Fault;
use crate::pool::Pool;
use crate::read::count;

/// Deletes the rows of a tenant but those of its audit log, in one statement. Returns how many there were of each kind.
pub(super) async fn erase(pool: &Pool, tenant: &str) -> Result<ErasedRows, Fault> {
    // PostgreSQL's texts have no NUL; such a tenant has no rows.
    if tenant.contains('\0') {
        return Ok(ErasedRows::default());
    }
    let sql = "WITH
            r AS (DELETE FROM run WHERE tenant = $1 RETURNING 1),
            a AS (DELETE FROM assistant WHERE tenant = $2 RETURNING 1),
            c AS (DELETE FROM cron WHERE tenant = $2 RETURNING 1),
            d AS (DELETE FROM delivery WHERE tenant = $1 RETURNING 1),
            k AS (DELETE FROM api_key WHERE tenant = $2 RETURNING 1),
            q AS (DELETE FROM request_key WHERE tenant = $2 RETURNING 1)
        SELECT (SELECT count(*) FROM r), (SELECT count(*) FROM a), (SELECT count(*) FROM c),
            (SELECT count(*) FROM d), (SELECT count(*) FROM k), (SELECT count(*) FROM q)";
    let rows = pool.write(sql, &[&tenant, &tenant.as_bytes()]).await?;
    let deleted = |column| rows.first().map_or(0, |row| count(row, column));
    Ok(ErasedRows {
        runs: deleted(0),
        assistants: deleted(1),
        crons: deleted(2),
        deliveries: deleted(3),
        api_keys: deleted(4),
        request_keys: deleted(5),
    })
}
