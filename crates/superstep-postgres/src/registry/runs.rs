//! Runs as rows: the table `run`.
//!
//! # Why READ COMMITTED is enough
//!
//! A creation decides by rows that another creation may be about to add, so it locks more than rows. The function `create_run`
//! takes an advisory lock on the thread, looks for active runs and inserts the new one. Each statement in the function sees what
//! was committed before that statement, and a lock is released only after the commit of its holder is visible: a creation that
//! waited sees the run it waited for. So of racing creations that want no other run, one succeeds. The number of a run is drawn
//! under the lock too, so runs of a thread become visible in the order of their numbers. Two threads whose locks have the same
//! hash only wait for each other.
//!
//! The function `take_runs` is serialized by one lock for the whole queue. That costs nothing if one process owns the queue; the lock
//! matters while a former owner does not know yet that it is one, and if several processes share the queue. Apart from it, only a
//! creation marks a run as running, and only if its thread has no active run, so of a thread with a pending run nothing else becomes
//! running until the function is done. A run that is ended, cancelled or deleted meanwhile is left alone, because the update compares
//! its status again.
//!
//! Everything else is a single statement on one run, which PostgreSQL compares again if the row has changed.

use serde_json::Value as Json;
use superstep_core::registry::{
    ActiveRun, CancelledRun, CreatedRun, NewRun, RunEnd, RunQuery, RunRow, RunStatus, TakenRun,
    WhenBusy, json_contains,
};
use superstep_core::{AssistantId, RunId, ThreadId, Timestamp};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use super::deliveries::DeliveryColumns;
use super::{json, small_number};
use crate::fault::{Fault, PostgresError};
use crate::id::Id;
use crate::list::{is_tenant, limits, rows_max};
use crate::pool::{Params, Pool, walk};
use crate::read::{count, text};

/// Stores a run unless one exists under its id, or its thread is busy and the caller wants none to wait. Marks it as running if
/// it `may_begin` and its thread is free.
pub(super) async fn create(
    pool: &Pool,
    run: &NewRun,
    may_begin: bool,
) -> Result<CreatedRun, Fault> {
    let columns = RunColumns::of(run, may_begin)?;
    loop {
        let rows = pool.write(CREATE, &columns.params()).await?;
        let row = rows.first().expect("the function returns one row");
        if let Some(created) = outcome(row) {
            return Ok(created);
        }
        if let Some((row, request)) = find_with_request(pool, columns.tenant, columns.id).await? {
            return Ok(CreatedRun::Exists(Box::new(row), request));
        }
        // The run that existed was deleted in between, so this one can be stored.
    }
}

/// Stores a run as [`create`] does, as a part of a transaction.
pub(super) async fn create_in(
    transaction: &Transaction<'_>,
    run: &NewRun,
) -> Result<CreatedRun, Fault> {
    let columns = RunColumns::of(run, false)?;
    let find = format!("SELECT {COLUMNS}, request FROM run WHERE tenant = $1 AND id = $2");
    loop {
        let row = transaction.query_one(CREATE, &columns.params()).await?;
        if let Some(created) = outcome(&row) {
            return Ok(created);
        }
        let key: Params<'_> = &[&columns.tenant, &columns.id];
        if let Some(row) = transaction.query_opt(&find, key).await? {
            let found = Box::new(run_row(&row)?);
            return Ok(CreatedRun::Exists(found, row.get(REQUEST)));
        }
        // As above.
    }
}

const CREATE: &str =
    "SELECT outcome, ahead FROM create_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// Returns what the function `create_run` did; `None` if a run with the id exists.
fn outcome(row: &Row) -> Option<CreatedRun> {
    match row.get::<_, i32>(0) {
        STORED => Some(CreatedRun::Stored(ids(row, 1))),
        BUSY => Some(CreatedRun::Busy),
        BEGUN => Some(CreatedRun::Begun),
        _ => None,
    }
}

/// A new run as parameters of the function `create_run`.
struct RunColumns<'a> {
    tenant: &'a str,
    id: Id,
    name: &'a str,
    assistant: Id,
    principal: &'a [u8],
    at: i64,
    due: i64,
    request: &'a [u8],
    arguments: Vec<u8>,
    metadata: Vec<u8>,
    reject_if_busy: bool,
    may_begin: bool,
}

impl<'a> RunColumns<'a> {
    fn of(run: &'a NewRun, may_begin: bool) -> Result<Self, Fault> {
        Ok(Self {
            tenant: run.thread.tenant(),
            id: Id(run.id.to_bytes()),
            name: run.thread.name(),
            assistant: Id(run.assistant.to_bytes()),
            principal: run.principal.as_bytes(),
            at: run.at.0,
            due: run.due.0,
            request: &run.request,
            arguments: serde_json::to_vec(&run.arguments)?,
            metadata: serde_json::to_vec(&run.metadata)?,
            reject_if_busy: run.when_busy == WhenBusy::Reject,
            may_begin,
        })
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 12] {
        [
            &self.tenant,
            &self.id,
            &self.name,
            &self.assistant,
            &self.principal,
            &self.at,
            &self.due,
            &self.request,
            &self.arguments,
            &self.metadata,
            &self.reject_if_busy,
            &self.may_begin,
        ]
    }
}

fn ids(row: &Row, column: usize) -> Vec<RunId> {
    let ids: Option<Vec<Id>> = row.get(column);
    let ids = ids.unwrap_or_default().into_iter();
    ids.map(|id| RunId::from_bytes(id.0)).collect()
}

async fn find_with_request(
    pool: &Pool,
    tenant: &str,
    id: Id,
) -> Result<Option<(RunRow, Vec<u8>)>, Fault> {
    let sql = format!("SELECT {COLUMNS}, request FROM run WHERE tenant = $1 AND id = $2");
    let rows = pool.read(&sql, &[&tenant, &id]).await?;
    let found = |row: &Row| Ok((run_row(row)?, row.get::<_, Vec<u8>>(REQUEST)));
    rows.first().map(found).transpose()
}

/// Returns a run of the tenant.
pub(super) async fn find(pool: &Pool, tenant: &str, id: RunId) -> Result<Option<RunRow>, Fault> {
    if !is_tenant(tenant) {
        return Ok(None);
    }
    let sql = format!("SELECT {COLUMNS} FROM run WHERE tenant = $1 AND id = $2");
    let rows = pool.read(&sql, &[&tenant, &Id(id.to_bytes())]).await?;
    rows.first().map(run_row).transpose()
}

/// Lists runs, newest first. The database selects the page, unless the metadata must be compared: that is done here.
pub(super) async fn list(pool: &Pool, query: &RunQuery) -> Result<Vec<RunRow>, Fault> {
    let elsewhere = |thread: &ThreadId| thread.tenant() != query.tenant;
    if !is_tenant(&query.tenant) || query.thread.as_ref().is_some_and(elsewhere) {
        return Ok(Vec::new());
    }
    let name = query.thread.as_ref().map(ThreadId::name);
    let statuses: Vec<i16> = query.statuses.iter().copied().map(number_of).collect();
    let ids: Option<Vec<Id>> = query
        .ids
        .as_ref()
        .map(|ids| ids.iter().map(|id| Id(id.to_bytes())).collect());
    let (limit, offset) = limits(query.page);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&query.tenant];
    let mut sql = format!("SELECT {COLUMNS} FROM run WHERE tenant = $1");
    if let Some(name) = &name {
        params.push(name);
        sql.push_str(&format!(" AND name = ${}", params.len()));
    }
    if !statuses.is_empty() {
        params.push(&statuses);
        sql.push_str(&format!(" AND status = ANY (${})", params.len()));
    }
    if let Some(ids) = &ids {
        params.push(ids);
        sql.push_str(&format!(" AND id = ANY (${})", params.len()));
    }
    sql.push_str(" ORDER BY number DESC");
    if let Some(part) = &query.metadata {
        return list_containing(pool, (&sql, &params), query, part).await;
    }
    params.push(&limit);
    params.push(&offset);
    let last = params.len();
    sql.push_str(&format!(" LIMIT ${} OFFSET ${last}", last - 1));
    let rows = pool.read(&sql, &params).await?;
    rows.iter().map(run_row).collect()
}

/// Lists the threads of active runs.
pub(super) async fn list_active(
    pool: &Pool,
    tenant: &str,
    limit: u32,
) -> Result<Vec<ActiveRun>, Fault> {
    if !is_tenant(tenant) {
        return Ok(Vec::new());
    }
    let sql = "SELECT name, status = 1 FROM run WHERE tenant = $1 AND status < 2 LIMIT $2";
    let rows = pool.read(sql, &[&tenant, &i64::from(limit)]).await?;
    let run = |row: &Row| -> Result<ActiveRun, Fault> {
        Ok(ActiveRun {
            thread: ThreadId::of_tenant(tenant, row.get(0))?,
            is_running: row.get(1),
        })
    };
    rows.iter().map(run).collect()
}

/// Collects the page of the runs whose metadata contains a value.
async fn list_containing(
    pool: &Pool,
    (sql, params): (&str, Params<'_>),
    query: &RunQuery,
    part: &Json,
) -> Result<Vec<RunRow>, Fault> {
    let limit = rows_max(query.page);
    let mut found = Vec::new();
    let mut passed_over = 0;
    walk(pool, sql, params, |row| {
        let run = run_row(row)?;
        if json_contains(&run.metadata, part) {
            if passed_over < query.page.offset {
                passed_over += 1;
            } else if found.len() < limit {
                found.push(run);
            }
        }
        Ok(found.len() < limit)
    })
    .await?;
    Ok(found)
}

/// Marks the oldest due run of each idle thread as running, and returns them with their requests, oldest first.
pub(super) async fn take(
    pool: &Pool,
    now: Timestamp,
    limit: u32,
    skipped: &[String],
) -> Result<Vec<TakenRun>, Fault> {
    // A name with NUL is not that of a tenant, and PostgreSQL's text has none.
    let skipped = skipped.iter().map(String::as_str);
    let skipped: Vec<&str> = skipped.filter(|name| is_tenant(name)).collect();
    let sql = format!("SELECT {COLUMNS}, request FROM take_runs($1, $2, $3) ORDER BY number");
    let params: Params<'_> = &[&now.0, &i64::from(limit), &skipped];
    let rows = pool.write(&sql, params).await?;
    let taken = |row: &Row| {
        Ok(TakenRun {
            row: run_row(row)?,
            request: row.get(REQUEST),
        })
    };
    rows.iter().map(taken).collect()
}

/// Returns when the next pending run is due.
pub(super) async fn next_due(pool: &Pool) -> Result<Option<Timestamp>, Fault> {
    let sql = "SELECT min(due) FROM run WHERE status = 0";
    let rows = pool.read(sql, &[]).await?;
    let due = rows.first().and_then(|row| row.get::<_, Option<i64>>(0));
    Ok(due.map(Timestamp))
}

/// Marks every running run as pending again. Returns how many there were.
pub(super) async fn release(pool: &Pool, held: &[RunId], now: Timestamp) -> Result<u64, Fault> {
    let held: Vec<Id> = held.iter().map(|id| Id(id.to_bytes())).collect();
    let sql = "WITH released AS (
             UPDATE run SET status = 0, updated = $1 WHERE status = 1 AND id <> ALL($2) RETURNING 1)
         SELECT count(*) FROM released";
    let rows = pool.write(sql, &[&now.0, &held]).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

/// Marks running runs as changed.
pub(super) async fn touch(pool: &Pool, runs: &[RunId], now: Timestamp) -> Result<(), Fault> {
    let runs: Vec<Id> = runs.iter().map(|id| Id(id.to_bytes())).collect();
    let sql = "UPDATE run SET updated = $1 WHERE status = 1 AND id = ANY($2)";
    pool.write(sql, &[&now.0, &runs]).await?;
    Ok(())
}

/// Marks running runs as pending again that did not change after a time. Returns how many there were.
pub(super) async fn release_idle(
    pool: &Pool,
    unchanged_since: Timestamp,
    now: Timestamp,
) -> Result<u64, Fault> {
    let sql = "WITH released AS (
             UPDATE run SET status = 0, updated = $1 WHERE status = 1 AND updated <= $2 RETURNING 1)
         SELECT count(*) FROM released";
    let rows = pool.write(sql, &[&now.0, &unchanged_since.0]).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

/// Stores how an active run ended, and what to deliver because of it. Returns whether there was one.
pub(super) async fn end(pool: &Pool, tenant: &str, id: RunId, end: &RunEnd) -> Result<bool, Fault> {
    // An active status is a caller's bug: storing it could start the run a second time.
    if end.status.is_active() || !is_tenant(tenant) {
        return Ok(false);
    }
    let error = match &end.error {
        Json::Null => None,
        error => Some(serde_json::to_vec(error)?),
    };
    let (id, status) = (Id(id.to_bytes()), number_of(end.status));
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&tenant, &id, &status, &error, &end.at.0];
    let columns = DeliveryColumns::of(&end.deliveries);
    let sql = if end.deliveries.is_empty() {
        END
    } else {
        params.extend(columns.params());
        END_AND_DELIVER
    };
    Ok(!pool.write(sql, &params).await?.is_empty())
}

macro_rules! end {
    () => {
        "UPDATE run SET status = $3, error = $4, updated = $5
         WHERE tenant = $1 AND id = $2 AND status::int4 < 2 RETURNING 1"
    };
}

const END: &str = end!();

/// The order of the arrays is that of the numbers: the rows are sorted before their numbers are drawn.
const END_AND_DELIVER: &str = concat!(
    "WITH ended AS (",
    end!(),
    "), stored AS (
         INSERT INTO delivery (id, run, tenant, name, status, attempts, due, at, updated, address, event, error, body)
         SELECT n.id, n.run, n.tenant, n.name, 0, 0, n.at, n.at, n.at, n.address, n.event, '', n.body
         FROM unnest($6::uuid[], $7::uuid[], $8::text[], $9::text[], $10::int8[], $11::bytea[],
                     $12::bytea[], $13::bytea[])
              WITH ORDINALITY AS n (id, run, tenant, name, at, address, event, body, place)
         WHERE EXISTS (SELECT FROM ended)
         ORDER BY n.place
         ON CONFLICT DO NOTHING)
     SELECT 1 FROM ended"
);

/// Ends a pending run as interrupted that was never taken.
pub(super) async fn cancel(
    pool: &Pool,
    tenant: &str,
    id: RunId,
    now: Timestamp,
) -> Result<CancelledRun, Fault> {
    if !is_tenant(tenant) {
        return Ok(CancelledRun::Missing);
    }
    let id = Id(id.to_bytes());
    let withdraw = "UPDATE run SET status = $3, updated = $4
         WHERE tenant = $1 AND id = $2 AND status::int4 = 0 AND attempts = 0 RETURNING 1";
    let find = "SELECT status::int8, attempts = 0 FROM run WHERE tenant = $1 AND id = $2";
    let interrupted = number_of(RunStatus::Interrupted);
    loop {
        let params: Params<'_> = &[&tenant, &id, &interrupted, &now.0];
        if !pool.write(withdraw, params).await?.is_empty() {
            return Ok(CancelledRun::Withdrawn);
        }
        let rows = pool.read(find, &[&tenant, &id]).await?;
        let Some(row) = rows.first() else {
            return Ok(CancelledRun::Missing);
        };
        match status(row.get(0))? {
            // Created in between: withdraw it now.
            RunStatus::Pending if row.get(1) => {}
            RunStatus::Pending | RunStatus::Running => return Ok(CancelledRun::Running),
            _ => return Ok(CancelledRun::Ended),
        }
    }
}

/// Deletes a run. Returns whether it existed.
pub(super) async fn delete(pool: &Pool, tenant: &str, id: RunId) -> Result<bool, Fault> {
    if !is_tenant(tenant) {
        return Ok(false);
    }
    let sql = "DELETE FROM run WHERE tenant = $1 AND id = $2 RETURNING 1";
    let rows = pool.write(sql, &[&tenant, &Id(id.to_bytes())]).await?;
    Ok(!rows.is_empty())
}

/// Deletes all runs of a thread. Returns how many there were.
pub(super) async fn delete_all(pool: &Pool, thread: &ThreadId) -> Result<u64, Fault> {
    let sql = "WITH deleted AS (DELETE FROM run WHERE tenant = $1 AND name = $2 RETURNING 1)
         SELECT count(*) FROM deleted";
    let rows = pool.write(sql, &[&thread.tenant(), &thread.name()]).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

/// Reads a run from the columns of [`COLUMNS`].
fn run_row(row: &Row) -> Result<RunRow, Fault> {
    let error: Option<&[u8]> = row.get(9);
    Ok(RunRow {
        id: RunId::from_bytes(row.get::<_, Id>(0).0),
        thread: ThreadId::of_tenant(row.get(1), row.get(2))?,
        assistant: AssistantId::from_bytes(row.get::<_, Id>(3).0),
        principal: text(row, 4)?,
        status: status(row.get(5))?,
        attempts: small_number(row, 6),
        arguments: json(row, 7)?,
        metadata: json(row, 8)?,
        error: error.map_or(Ok(Json::Null), serde_json::from_slice)?,
        created: Timestamp(row.get(10)),
        updated: Timestamp(row.get(11)),
        due: Timestamp(row.get(12)),
    })
}

const COLUMNS: &str = "id, tenant, name, assistant, principal, status::int8, attempts::int8,
    arguments, metadata, error, created, updated, due";
/// Column of the request, where it is selected after [`COLUMNS`].
const REQUEST: usize = 13;

fn status(number: i64) -> Result<RunStatus, PostgresError> {
    RunStatus::from_number(number).ok_or(PostgresError::Unknown {
        what: "status of a run",
        number,
    })
}

fn number_of(status: RunStatus) -> i16 {
    i16::from(status.to_number())
}

/// Outcomes of the function `create_run`; any other means that a run with the id exists.
const STORED: i32 = 0;
const BUSY: i32 = 2;
const BEGUN: i32 = 3;
