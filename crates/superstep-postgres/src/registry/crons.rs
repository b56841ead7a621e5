//! Crons, and the ticks that make runs of them: the table `cron`.
//!
//! # Why READ COMMITTED is enough
//!
//! A tick is fired in one transaction, which begins with an update of the cron's row that compares when the cron is due. Of two
//! transactions with the same tick, the second waits for the first, and PostgreSQL then compares the row again: it is due at
//! another time, so the second writes nothing. The run is stored after that by the function `create_run`, whose lock is
//! on the thread. Nothing that holds such a lock waits for the row of a cron, so there is no deadlock.
//!
//! A change locks the row before it reads it. The rest are single statements on one row.

use serde_json::Value as Json;
use superstep_core::registry::{
    ChangedCron, CreatedCron, CreatedRun, CronChange, CronQuery, CronRow, CronTick, FiredTick,
    NewCron, TickRun,
};
use superstep_core::{AssistantId, CronId, ThreadId, Timestamp};
use tokio_postgres::{IsolationLevel, Row, Transaction};

use super::{json, runs};
use crate::fault::{Fault, PostgresError};
use crate::id::Id;
use crate::pool::{Params, Pool};
use crate::read::text;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT tenant, id, assistant, thread, principal, schedule, zone, ends, enabled, next, created,
                 updated, metadata, error, arguments, ticked
             FROM cron ",
            $rest
        )
    };
}

/// Stores a cron unless one exists under its id.
pub(super) async fn create(pool: &Pool, new: &NewCron) -> Result<CreatedCron, Fault> {
    let sql =
        "INSERT INTO cron (tenant, id, assistant, thread, principal, schedule, zone, ends, enabled,
             next, created, updated, metadata, arguments)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13)
         ON CONFLICT DO NOTHING RETURNING 1";
    let (id, assistant) = (Id(new.id.to_bytes()), Id(new.assistant.to_bytes()));
    let thread = new.thread.as_ref().map(ThreadId::name);
    let zone = new.zone.as_ref().map(String::as_bytes);
    let (end, next) = (new.end.map(|end| end.0), new.next.map(|next| next.0));
    let metadata = serde_json::to_vec(&new.metadata)?;
    let arguments = serde_json::to_vec(&new.arguments)?;
    let params: Params<'_> = &[
        &new.tenant.as_bytes(),
        &id,
        &assistant,
        &thread,
        &new.principal.as_bytes(),
        &new.schedule.as_bytes(),
        &zone,
        &end,
        &new.is_enabled,
        &next,
        &new.at.0,
        &metadata,
        &arguments,
    ];
    loop {
        if !pool.write(sql, params).await?.is_empty() {
            return Ok(CreatedCron::Stored(new.row()));
        }
        if let Some(found) = find(pool, &new.tenant, new.id).await? {
            return Ok(CreatedCron::Exists(found));
        }
        // The cron that existed was deleted in between, so this one can be stored.
    }
}

/// Returns a cron of the tenant.
pub(super) async fn find(pool: &Pool, tenant: &str, id: CronId) -> Result<Option<CronRow>, Fault> {
    let sql = select!("WHERE tenant = $1 AND id = $2");
    let params: Params<'_> = &[&tenant.as_bytes(), &Id(id.to_bytes())];
    let rows = pool.read(sql, params).await?;
    rows.first().map(cron_row).transpose()
}

/// Returns the crons that match a query, on all pages and in no order. A tenant has few of them, so they are compared here, by the
/// same rules as everywhere.
pub(super) async fn matching(pool: &Pool, query: &CronQuery) -> Result<Vec<CronRow>, Fault> {
    let sql = select!("WHERE tenant = $1");
    let rows = pool.read(sql, &[&query.tenant.as_bytes()]).await?;
    let mut found = Vec::new();
    for row in &rows {
        let cron = cron_row(row)?;
        if query.matches(&cron) {
            found.push(cron);
        }
    }
    Ok(found)
}

/// Changes a cron that is as the caller read it.
pub(super) async fn change(
    pool: &Pool,
    tenant: &str,
    id: CronId,
    change: &CronChange,
    now: Timestamp,
) -> Result<ChangedCron, Fault> {
    let (tenant, id) = (tenant.as_bytes(), Id(id.to_bytes()));
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    let sql = select!("WHERE tenant = $1 AND id = $2 FOR NO KEY UPDATE");
    let found = transaction.query_opt(sql, &[&tenant, &id]).await?;
    let changed = match found.as_ref().map(cron_row).transpose()? {
        None => ChangedCron::Missing,
        Some(current) if current.updated != change.seen => ChangedCron::Stale,
        Some(current) => {
            let changed = change.applied(&current, now);
            replace(&transaction, &changed).await?;
            ChangedCron::Changed(Box::new(changed))
        }
    };
    transaction.commit().await?;
    alone.give_back();
    Ok(changed)
}

async fn replace(transaction: &Transaction<'_>, cron: &CronRow) -> Result<(), Fault> {
    let sql = "UPDATE cron SET schedule = $3, zone = $4, ends = $5, enabled = $6, next = $7, updated = $8,
             metadata = $9, arguments = $10
         WHERE tenant = $1 AND id = $2";
    let zone = cron.zone.as_ref().map(String::as_bytes);
    let (end, next) = (cron.end.map(|end| end.0), cron.next.map(|next| next.0));
    let params: Params<'_> = &[
        &cron.tenant.as_bytes(),
        &Id(cron.id.to_bytes()),
        &cron.schedule.as_bytes(),
        &zone,
        &end,
        &cron.is_enabled,
        &next,
        &cron.updated.0,
        &serde_json::to_vec(&cron.metadata)?,
        &serde_json::to_vec(&cron.arguments)?,
    ];
    transaction.execute(sql, params).await?;
    Ok(())
}

/// Deletes a cron. Returns whether it existed.
pub(super) async fn delete(pool: &Pool, tenant: &str, id: CronId) -> Result<bool, Fault> {
    let sql = "DELETE FROM cron WHERE tenant = $1 AND id = $2 RETURNING 1";
    let params: Params<'_> = &[&tenant.as_bytes(), &Id(id.to_bytes())];
    Ok(!pool.write(sql, params).await?.is_empty())
}

/// Returns the crons of all tenants that are due, those first that are due the longest.
pub(super) async fn due(pool: &Pool, now: Timestamp, limit: u32) -> Result<Vec<CronRow>, Fault> {
    let sql = select!("WHERE next <= $1 ORDER BY next, tenant, id LIMIT $2");
    let rows = pool.read(sql, &[&now.0, &i64::from(limit)]).await?;
    rows.iter().map(cron_row).collect()
}

/// Returns the earliest time at which a cron is due.
pub(super) async fn next_due(pool: &Pool) -> Result<Option<Timestamp>, Fault> {
    let rows = pool.read("SELECT min(next) FROM cron", &[]).await?;
    let next = rows.first().and_then(|row| row.get::<_, Option<i64>>(0));
    Ok(next.map(Timestamp))
}

/// Moves a cron to its next tick and stores the run of this one, in one transaction.
pub(super) async fn fire(pool: &Pool, tick: &CronTick) -> Result<FiredTick, Fault> {
    let mut alone = pool.alone().await?;
    let transaction = alone.begin(IsolationLevel::ReadCommitted).await?;
    let fired = fire_in(&transaction, tick).await?;
    transaction.commit().await?;
    alone.give_back();
    Ok(fired)
}

async fn fire_in(transaction: &Transaction<'_>, tick: &CronTick) -> Result<FiredTick, Fault> {
    let (tenant, id) = (tick.tenant.as_bytes(), Id(tick.cron.to_bytes()));
    let sql = "UPDATE cron SET next = $5
         WHERE tenant = $1 AND id = $2 AND next = $3 AND updated = $4";
    let next = tick.next.map(|next| next.0);
    let params: Params<'_> = &[&tenant, &id, &tick.due.0, &tick.seen.0, &next];
    if transaction.execute(sql, params).await? == 0 {
        return Ok(FiredTick::Passed);
    }
    let (fired, error) = match &tick.run {
        TickRun::Failed(why) => (FiredTick::NoRun, why.clone()),
        TickRun::Run(run) => {
            let created = runs::create_in(transaction, run).await?;
            let error = match created {
                CreatedRun::Busy => CronTick::busy_error(),
                CreatedRun::Stored(_) | CreatedRun::Begun | CreatedRun::Exists(..) => Json::Null,
            };
            (FiredTick::Run(created), error)
        }
    };
    let ticked = error.is_null().then_some(tick.due.0);
    let error = match error {
        Json::Null => None,
        error => Some(serde_json::to_vec(&error)?),
    };
    let sql =
        "UPDATE cron SET error = $3, ticked = coalesce($4, ticked) WHERE tenant = $1 AND id = $2";
    let params: Params<'_> = &[&tenant, &id, &error, &ticked];
    transaction.execute(sql, params).await?;
    Ok(fired)
}

/// Reads a cron from the columns that `select!` names.
fn cron_row(row: &Row) -> Result<CronRow, Fault> {
    let tenant = text(row, 0)?;
    let thread: Option<&str> = row.get(3);
    let thread = thread.map(|name| ThreadId::of_tenant(&tenant, name));
    let zone: Option<Vec<u8>> = row.get(6);
    let zone = zone.map(String::from_utf8).transpose();
    let error: Option<&[u8]> = row.get(13);
    let time = |column: usize| row.get::<_, Option<i64>>(column).map(Timestamp);
    Ok(CronRow {
        id: CronId::from_bytes(row.get::<_, Id>(1).0),
        assistant: AssistantId::from_bytes(row.get::<_, Id>(2).0),
        thread: thread.transpose()?,
        principal: text(row, 4)?,
        schedule: text(row, 5)?,
        zone: zone.map_err(|_| PostgresError::NotText)?,
        end: time(7),
        is_enabled: row.get(8),
        next: time(9),
        created: Timestamp(row.get(10)),
        updated: Timestamp(row.get(11)),
        metadata: json(row, 12)?,
        error: error.map_or(Ok(Json::Null), serde_json::from_slice)?,
        arguments: json(row, 14)?,
        last_tick: time(15),
        tenant,
    })
}
