//! Audit logs. The end of each log has a row of its own, so that entries that were cut off are missed.

use rusqlite::{Connection, Row, params};
use superstep_core::Timestamp;
use superstep_core::registry::{AuditEntry, AuditHead};

use crate::fault::{Fault, SqliteError};
use crate::read::number;
use crate::row;

/// Appends entries to a log if they continue it. Runs in a transaction of the writing connection, so of callers that append at the
/// same time one is the first, and the entries of the others do not fit. Returns the end of the log.
pub(super) fn append(
    connection: &Connection,
    tenant: &str,
    entries: &[AuditEntry],
) -> Result<AuditHead, Fault> {
    let head = head(connection, tenant)?;
    let Some(after) = head.after(entries).filter(|after| *after != head) else {
        return Ok(head);
    };
    let tenant = row::tenant(connection, tenant)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit (tenant, seq, at, principal, action, resource, detail, previous, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for entry in entries {
        insert.execute(params![
            tenant,
            number(entry.seq),
            entry.at.0,
            entry.principal,
            entry.action,
            entry.resource,
            entry.detail,
            entry.previous,
            entry.hash,
        ])?;
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO audit_head (tenant, seq, hash) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![tenant, number(after.seq), after.hash])?;
    Ok(after)
}

/// Returns the end of a log.
pub(super) fn head(connection: &Connection, tenant: &str) -> Result<AuditHead, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT seq, hash FROM audit_head WHERE tenant = (SELECT id FROM tenant WHERE name = ?1)",
    )?;
    let mut rows = select.query([tenant])?;
    let Some(row) = rows.next()? else {
        return Ok(AuditHead::default());
    };
    Ok(AuditHead {
        seq: seq(row)?,
        hash: row.get(1)?,
    })
}

/// Returns entries after a number, oldest first.
pub(super) fn list(
    connection: &Connection,
    tenant: &str,
    after: u64,
    limit: u32,
) -> Result<Vec<AuditEntry>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT seq, at, principal, action, resource, detail, previous, hash FROM audit
         WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let mut rows = select.query(params![tenant, number(after), limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(AuditEntry {
            seq: seq(row)?,
            at: Timestamp(row.get(1)?),
            principal: row.get(2)?,
            action: row.get(3)?,
            resource: row.get(4)?,
            detail: row.get(5)?,
            previous: row.get(6)?,
            hash: row.get(7)?,
        });
    }
    Ok(found)
}

/// Deletes the entries of a log up to one, if the log has it before its last one. Returns how many there were.
pub(super) fn prune(
    connection: &Connection,
    tenant: &str,
    through: AuditHead,
) -> Result<u64, Fault> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM audit
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND seq <= ?2
               AND EXISTS (
                   SELECT 1 FROM audit AS last
                   WHERE last.tenant = (SELECT id FROM tenant WHERE name = ?1)
                     AND last.seq = ?2 AND last.hash = ?3)
               AND EXISTS (
                   SELECT 1 FROM audit_head AS head
                   WHERE head.tenant = (SELECT id FROM tenant WHERE name = ?1) AND head.seq > ?2)",
        )?
        .execute(params![tenant, number(through.seq), through.hash])?;
    Ok(deleted as u64)
}

/// Returns the tenants that have a log, in order.
pub(super) fn tenants(connection: &Connection) -> Result<Vec<String>, Fault> {
    let tenants = connection
        .prepare_cached(
            "SELECT tenant.name FROM audit_head JOIN tenant ON tenant.id = audit_head.tenant
             ORDER BY tenant.name",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(tenants)
}

/// Reads the number of an entry from the first column.
fn seq(row: &Row<'_>) -> Result<u64, Fault> {
    let number: i64 = row.get(0)?;
    let seq = u64::try_from(number).map_err(|_| SqliteError::Unknown {
        what: "the number of an audit entry",
        number,
    })?;
    Ok(seq)
}
