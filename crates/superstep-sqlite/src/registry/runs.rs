//! Runs: the queue, and the history of what it executed.
//!
//! The planner does not know that nearly all runs have ended, and would scan the table in the order of the numbers to save a
//! sort. So statements that must not read ended runs name their index.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use superstep_core::registry::{
    ActiveRun, CancelledRun, CreatedRun, NewRun, RunEnd, RunQuery, RunRow, RunStatus, TakenRun,
    WhenBusy, json_contains,
};
use superstep_core::{AssistantId, RunId, ThreadId, Timestamp};

use super::{deliveries, json, json_text};
use crate::fault::{Fault, SqliteError};
use crate::list::rows_max;
use crate::{read, row};

/// Selects the columns that `run_row` reads, then further ones.
macro_rules! select_run {
    ($further:literal, $rest:literal) => {
        concat!(
            "SELECT id, thread, assistant, principal, status, attempts, created, updated, due,
                    metadata, error, arguments",
            $further,
            " ",
            $rest
        )
    };
}

/// Stores a run. Finds a run with the same id before it looks at the thread, so that a repeated request is never refused.
pub(super) fn create(connection: &Connection, run: &NewRun) -> Result<CreatedRun, Fault> {
    store(connection, run, false)
}

/// Does what [`create`] does, and marks the run as running if its thread is free.
pub(super) fn begin(connection: &Connection, run: &NewRun) -> Result<CreatedRun, Fault> {
    store(connection, run, true)
}

fn store(connection: &Connection, run: &NewRun, may_begin: bool) -> Result<CreatedRun, Fault> {
    if let Some((found, request)) = find_with_request(connection, run)? {
        return Ok(CreatedRun::Exists(Box::new(found), request));
    }
    let tenant = row::tenant(connection, run.thread.tenant())?;
    let before = active(connection, tenant, &run.thread)?;
    if run.when_busy == WhenBusy::Reject && !before.is_empty() {
        return Ok(CreatedRun::Busy);
    }
    let begins = may_begin && before.is_empty();
    connection
        .prepare_cached(
            "INSERT INTO run (tenant, id, thread, assistant, principal, status, attempts, created,
                 updated, due, metadata, error, arguments, request)
             VALUES (?1, ?2, ?3, ?4, ?5, ?11, ?11, ?6, ?6, ?7, ?8, 'null', ?9, ?10)",
        )?
        .execute(params![
            tenant,
            run.id.to_bytes(),
            run.thread.name(),
            run.assistant.to_bytes(),
            run.principal,
            run.at.0,
            run.due.0,
            json_text(&run.metadata)?,
            json_text(&run.arguments)?,
            run.request,
            // The status, and the number of attempts: running for the first time, or pending.
            begins,
        ])?;
    Ok(match begins {
        true => CreatedRun::Begun,
        false => CreatedRun::Stored(before),
    })
}

fn find_with_request(
    connection: &Connection,
    run: &NewRun,
) -> Result<Option<(RunRow, Vec<u8>)>, Fault> {
    let mut select = connection.prepare_cached(select_run!(
        ", request",
        "FROM run WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2"
    ))?;
    let tenant = run.thread.tenant();
    let mut rows = select.query(params![tenant, run.id.to_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some((run_row(row, tenant)?, row.get(12)?)))
}

/// Returns the pending and running runs of a thread, oldest first.
fn active(connection: &Connection, tenant: i64, thread: &ThreadId) -> rusqlite::Result<Vec<RunId>> {
    connection
        .prepare_cached(ACTIVE)?
        .query_map(params![tenant, thread.name()], |row| {
            Ok(RunId::from_bytes(row.get(0)?))
        })?
        .collect()
}

const ACTIVE: &str = "SELECT id FROM run INDEXED BY run_active
     WHERE tenant = ?1 AND thread = ?2 AND (status = 0 OR status = 1)
     ORDER BY number";

/// Returns a run of a tenant.
pub(super) fn find(
    connection: &Connection,
    tenant: &str,
    id: RunId,
) -> Result<Option<RunRow>, Fault> {
    let mut select = connection.prepare_cached(select_run!(
        "",
        "FROM run WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2"
    ))?;
    let mut rows = select.query(params![tenant, id.to_bytes()])?;
    rows.next()?.map(|row| run_row(row, tenant)).transpose()
}

/// Lists runs, newest first. SQLite returns the page, unless runs are selected by metadata: then each row is compared first.
pub(super) fn list(connection: &Connection, query: &RunQuery) -> Result<Vec<RunRow>, Fault> {
    let Some(tenant) = read::tenant(connection, &query.tenant)? else {
        return Ok(Vec::new());
    };
    if let Some(thread) = &query.thread
        && thread.tenant() != query.tenant
    {
        return Ok(Vec::new());
    }
    let conditions = Conditions::of(query)?;
    let (limit, offset) = match query.metadata {
        Some(_) => (-1, 0),
        None => (rows_max(query.page) as i64, i64::from(query.page.offset)),
    };
    let mut params: Vec<&dyn ToSql> = vec![&tenant, &limit, &offset];
    let sql = conditions.sql(&mut params);

    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params.as_slice())?;
    let mut found = Vec::new();
    let mut passed_over = 0;
    while found.len() < rows_max(query.page) {
        let Some(row) = rows.next()? else { break };
        if let Some(part) = &query.metadata {
            if !json_contains(&json(row, METADATA)?, part) {
                continue;
            }
            if passed_over < query.page.offset {
                passed_over += 1;
                continue;
            }
        }
        found.push(run_row(row, &query.tenant)?);
    }
    Ok(found)
}

/// Lists the threads of active runs, from the index alone.
pub(super) fn list_active(
    connection: &Connection,
    tenant: &str,
    limit: u32,
) -> Result<Vec<ActiveRun>, Fault> {
    let Some(number) = read::tenant(connection, tenant)? else {
        return Ok(Vec::new());
    };
    let mut select = connection.prepare_cached(
        "SELECT thread, status FROM run INDEXED BY run_active
         WHERE tenant = ?1 AND (status = 0 OR status = 1) LIMIT ?2",
    )?;
    let mut rows = select.query(params![number, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(ActiveRun {
            thread: ThreadId::of_tenant(tenant, row.get_ref(0)?.as_str()?)?,
            is_running: row.get::<_, u8>(1)? == RunStatus::Running.to_number(),
        });
    }
    Ok(found)
}

/// What SQLite selects runs of a tenant by. Lists are bound as JSON texts, so that one statement serves lists of any length.
struct Conditions {
    thread: Option<String>,
    statuses: Option<String>,
    ids: Option<String>,
    /// Whether only pending or running runs are wanted.
    is_active_only: bool,
}

impl Conditions {
    fn of(query: &RunQuery) -> Result<Self, Fault> {
        let has_statuses = !query.statuses.is_empty();
        let statuses = has_statuses.then(|| {
            let numbers: Vec<u8> = query.statuses.iter().map(|s| s.to_number()).collect();
            serde_json::to_string(&numbers)
        });
        let ids = query.ids.as_ref().map(|ids| {
            let digits: Vec<String> = ids.iter().map(RunId::to_string).collect();
            serde_json::to_string(&digits)
        });
        Ok(Self {
            thread: query.thread.as_ref().map(|thread| thread.name().to_owned()),
            statuses: statuses.transpose()?,
            ids: ids.transpose()?,
            is_active_only: has_statuses && query.statuses.iter().all(|s| s.is_active()),
        })
    }

    fn index(&self) -> &'static str {
        if self.ids.is_some() {
            "run_id"
        } else if self.is_active_only {
            "run_active"
        } else if self.thread.is_some() {
            "run_thread"
        } else {
            "run_tenant"
        }
    }

    /// Returns the statement, and adds its values to those of the tenant, the limit and the offset.
    fn sql<'a>(&'a self, params: &mut Vec<&'a dyn ToSql>) -> String {
        let mut sql = format!("{LISTED} INDEXED BY {} WHERE tenant = ?1", self.index());
        if self.is_active_only {
            // In the words of the partial index, or SQLite could not use it.
            sql.push_str(" AND (status = 0 OR status = 1)");
        }
        for (start, value, end) in [
            (" AND thread = ?", &self.thread, ""),
            (
                " AND status IN (SELECT value FROM json_each(?",
                &self.statuses,
                "))",
            ),
            (
                " AND id IN (SELECT unhex(value) FROM json_each(?",
                &self.ids,
                "))",
            ),
        ] {
            if let Some(value) = value {
                params.push(value);
                sql.push_str(&format!("{start}{}{end}", params.len()));
            }
        }
        sql.push_str(" ORDER BY number DESC LIMIT ?2 OFFSET ?3");
        sql
    }
}

const LISTED: &str = select_run!("", "FROM run");

/// Takes runs from the queue. Runs in a transaction of the writing connection, so no two callers take the same run.
pub(super) fn take(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
    skipped: &[String],
) -> Result<Vec<TakenRun>, Fault> {
    let skipped = serde_json::to_string(skipped)?;
    // Only the numbers are sorted, not the requests.
    let numbers: Vec<i64> = connection
        .prepare_cached(TAKEABLE)?
        .query_map(params![now.0, limit, skipped], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut update = connection.prepare_cached(
        "UPDATE run SET status = 1, attempts = attempts + 1, updated = ?2 WHERE number = ?1",
    )?;
    let mut select = connection.prepare_cached(select_run!(
        ", request, (SELECT name FROM tenant WHERE tenant.id = run.tenant)",
        "FROM run WHERE number = ?1"
    ))?;
    let mut taken = Vec::with_capacity(numbers.len());
    for number in numbers {
        update.execute([number, now.0])?;
        let mut rows = select.query([number])?;
        // It was found a moment ago in the same transaction.
        let row = rows.next()?.ok_or_else(|| SqliteError::RowMissing {
            what: format!("run {number}"),
        })?;
        taken.push(TakenRun {
            row: run_row(row, row.get_ref(13)?.as_str()?)?,
            request: row.get(12)?,
        });
    }
    Ok(taken)
}

/// Of each thread without a running run, the oldest pending run that is due. None of the tenants that are skipped.
const TAKEABLE: &str = "SELECT r.number FROM run AS r INDEXED BY run_due
     WHERE r.status = 0 AND r.due <= ?1
       AND NOT EXISTS (
           SELECT 1 FROM run AS a INDEXED BY run_active
           WHERE a.tenant = r.tenant AND a.thread = r.thread AND a.status = 1)
       AND NOT EXISTS (
           SELECT 1 FROM run AS a INDEXED BY run_active
           WHERE a.tenant = r.tenant AND a.thread = r.thread AND a.status = 0
             AND a.number < r.number AND a.due <= ?1)
       AND r.tenant NOT IN (
           SELECT id FROM tenant WHERE name IN (SELECT value FROM json_each(?3)))
     ORDER BY r.number LIMIT ?2";

/// Returns the earliest time at which a pending run is due.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, Fault> {
    let due: Option<i64> = connection
        .prepare_cached(NEXT_DUE)?
        .query_row([], |row| row.get(0))?;
    Ok(due.map(Timestamp))
}

const NEXT_DUE: &str = "SELECT min(due) FROM run INDEXED BY run_due WHERE status = 0";

/// Marks running runs as pending. Returns how many there were.
pub(super) fn release(
    connection: &Connection,
    held: &[RunId],
    now: Timestamp,
) -> Result<u64, Fault> {
    let released = connection
        .prepare_cached(RELEASE)?
        .execute(rusqlite::params![now.0, ids_as_json(held)?])?;
    Ok(released as u64)
}

/// Marks running runs as changed.
pub(super) fn touch(connection: &Connection, runs: &[RunId], now: Timestamp) -> Result<(), Fault> {
    connection
        .prepare_cached(TOUCH)?
        .execute(rusqlite::params![now.0, ids_as_json(runs)?])?;
    Ok(())
}

/// Marks running runs as pending that did not change after a time. Returns how many there were.
pub(super) fn release_idle(
    connection: &Connection,
    unchanged_since: Timestamp,
    now: Timestamp,
) -> Result<u64, Fault> {
    let released = connection
        .prepare_cached(RELEASE_IDLE)?
        .execute(rusqlite::params![now.0, unchanged_since.0])?;
    Ok(released as u64)
}

fn ids_as_json(ids: &[RunId]) -> Result<String, Fault> {
    let ids: Vec<String> = ids.iter().map(RunId::to_string).collect();
    Ok(serde_json::to_string(&ids)?)
}

const TOUCH: &str = "UPDATE run SET updated = ?1
     WHERE number IN (SELECT number FROM run INDEXED BY run_active WHERE status = 1
                      AND id IN (SELECT unhex(value) FROM json_each(?2)))";

const RELEASE_IDLE: &str = "UPDATE run SET status = 0, updated = ?1
     WHERE number IN (SELECT number FROM run INDEXED BY run_active WHERE status = 1 AND updated <= ?2)";

const RELEASE: &str = "UPDATE run SET status = 0, updated = ?1
     WHERE number IN (SELECT number FROM run INDEXED BY run_active WHERE status = 1
                      AND id NOT IN (SELECT unhex(value) FROM json_each(?2)))";

/// Stores how a run ended and what to deliver because of it, unless it has ended before. Returns whether it did.
pub(super) fn end(
    connection: &Connection,
    tenant: &str,
    id: RunId,
    end: &RunEnd,
) -> Result<bool, Fault> {
    if end.status.is_active() {
        return Ok(false);
    }
    let ended = connection
        .prepare_cached(
            "UPDATE run SET status = ?3, error = ?4, updated = ?5
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2 AND status IN (0, 1)",
        )?
        .execute(params![
            tenant,
            id.to_bytes(),
            end.status.to_number(),
            json_text(&end.error)?,
            end.at.0,
        ])?;
    if ended == 0 {
        return Ok(false);
    }
    deliveries::store(connection, &end.deliveries)?;
    Ok(true)
}

/// Ends a run that is pending, and says where another one is.
pub(super) fn cancel(
    connection: &Connection,
    tenant: &str,
    id: RunId,
    now: Timestamp,
) -> Result<CancelledRun, Fault> {
    let withdrawn = connection
        .prepare_cached(
            "UPDATE run SET status = ?3, updated = ?4
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2
               AND status = 0 AND attempts = 0",
        )?
        .execute(params![
            tenant,
            id.to_bytes(),
            RunStatus::Interrupted.to_number(),
            now.0,
        ])?;
    if withdrawn > 0 {
        return Ok(CancelledRun::Withdrawn);
    }
    let found: Option<i64> = connection
        .prepare_cached(
            "SELECT status FROM run
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .query_row(params![tenant, id.to_bytes()], |row| row.get(0))
        .optional()?;
    Ok(match found.map(status).transpose()? {
        Some(RunStatus::Pending | RunStatus::Running) => CancelledRun::Running,
        Some(_) => CancelledRun::Ended,
        None => CancelledRun::Missing,
    })
}

/// Deletes a run. Returns whether it existed.
pub(super) fn delete(connection: &Connection, tenant: &str, id: RunId) -> Result<bool, Fault> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM run WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![tenant, id.to_bytes()])?;
    Ok(deleted > 0)
}

/// Deletes the runs of a thread. Returns how many there were.
pub(super) fn delete_all(connection: &Connection, thread: &ThreadId) -> Result<u64, Fault> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM run WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND thread = ?2",
        )?
        .execute([thread.tenant(), thread.name()])?;
    Ok(deleted as u64)
}

/// Reads a run of this tenant from the first twelve columns.
fn run_row(row: &Row<'_>, tenant: &str) -> Result<RunRow, Fault> {
    Ok(RunRow {
        id: RunId::from_bytes(row.get(0)?),
        thread: ThreadId::of_tenant(tenant, row.get_ref(1)?.as_str()?)?,
        assistant: AssistantId::from_bytes(row.get(2)?),
        principal: row.get(3)?,
        status: status(row.get(4)?)?,
        attempts: row.get(5)?,
        created: Timestamp(row.get(6)?),
        updated: Timestamp(row.get(7)?),
        due: Timestamp(row.get(8)?),
        metadata: json(row, METADATA)?,
        error: json(row, 10)?,
        arguments: json(row, 11)?,
    })
}

fn status(number: i64) -> Result<RunStatus, SqliteError> {
    RunStatus::from_number(number).ok_or(SqliteError::Unknown {
        what: "status",
        number,
    })
}

/// Column of the metadata.
const METADATA: usize = 9;

#[cfg(test)]
mod tests;
