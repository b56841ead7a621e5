//! The erasure of a tenant.

use rusqlite::Connection;
use superstep_core::registry::ErasedRows;

use crate::fault::Fault;
use crate::read;

/// Deletes the rows of a tenant but those of its audit log. Returns how many there were of each kind.
pub(super) fn erase(connection: &Connection, tenant: &str) -> Result<ErasedRows, Fault> {
    let Some(tenant) = read::tenant(connection, tenant)? else {
        return Ok(ErasedRows::default());
    };
    let delete = |sql| -> Result<u64, Fault> {
        let deleted = connection.prepare_cached(sql)?.execute([tenant])?;
        Ok(deleted as u64)
    };
    delete("DELETE FROM assistant_version WHERE tenant = ?1")?;
    Ok(ErasedRows {
        runs: delete("DELETE FROM run WHERE tenant = ?1")?,
        assistants: delete("DELETE FROM assistant WHERE tenant = ?1")?,
        crons: delete("DELETE FROM cron WHERE tenant = ?1")?,
        deliveries: delete("DELETE FROM delivery WHERE tenant = ?1")?,
        api_keys: delete("DELETE FROM api_key WHERE tenant = ?1")?,
        request_keys: delete("DELETE FROM request_key WHERE tenant = ?1")?,
    })
}
