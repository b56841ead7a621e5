//! Creation of a thread's row (by a first commit, on its own, by a copy or an import), and of a tenant's.

use rusqlite::{Connection, params};
use superstep_core::checkpoint::Head;
use superstep_core::{ThreadId, Timestamp};

use crate::fault::Fault;
use crate::read::{self, StoredThread, number};

/// Creates the row of a thread, or reuses the row of a deleted one.
pub(crate) fn make(
    connection: &Connection,
    thread: &ThreadId,
    head: Head,
    cancel: bool,
    seen: u64,
    lease: Option<Timestamp>,
) -> Result<StoredThread, Fault> {
    let tenant = tenant(connection, thread.tenant())?;
    let id = connection
        .prepare_cached(
            "INSERT INTO thread
                 (tenant, name, epoch, seq, status, cancel, recoveries, answers, seen, lease)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (tenant, name) DO UPDATE SET epoch = ?3, seq = ?4, status = ?5, cancel = ?6,
                 recoveries = ?7, answers = ?8, seen = ?9, lease = ?10
             RETURNING id",
        )?
        .query_row(
            params![
                tenant,
                thread.name(),
                number(head.epoch.0),
                number(head.seq.0),
                head.status as u8,
                cancel,
                head.recoveries,
                number(head.answers),
                number(seen),
                lease.map(|lease| lease.0),
            ],
            |row| row.get(0),
        )?;
    Ok(StoredThread {
        id,
        tenant,
        head,
        cancel,
        seen,
    })
}

/// Returns the number of a tenant. Assigns one when its first thread, run or assistant is created.
pub(crate) fn tenant(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    if let Some(tenant) = read::tenant(connection, name)? {
        return Ok(tenant);
    }
    connection
        .prepare_cached("INSERT INTO tenant (name) VALUES (?1)")?
        .insert([name])
}
