//! Crons, and the ticks that make runs of them.

use rusqlite::{Connection, Row, params};
use serde_json::Value as Json;
use superstep_core::registry::{
    ChangedCron, CreatedCron, CreatedRun, CronChange, CronQuery, CronRow, CronTick, FiredTick,
    NewCron, TickRun,
};
use superstep_core::{AssistantId, CronId, ThreadId, Timestamp};

use super::{json, json_text, runs};
use crate::fault::Fault;
use crate::row;

/// Selects the columns that `cron_row` reads, then further ones.
macro_rules! select_cron {
    ($further:literal, $rest:literal) => {
        concat!(
            "SELECT id, assistant, thread, principal, schedule, zone, ends, enabled, next, created,
                    updated, metadata, error, arguments, ticked",
            $further,
            " ",
            $rest
        )
    };
}

/// Stores a cron, unless one with its id exists.
pub(super) fn create(connection: &Connection, new: &NewCron) -> Result<CreatedCron, Fault> {
    if let Some(found) = find(connection, &new.tenant, new.id)? {
        return Ok(CreatedCron::Exists(found));
    }
    let tenant = row::tenant(connection, &new.tenant)?;
    connection
        .prepare_cached(
            "INSERT INTO cron (tenant, id, assistant, thread, principal, schedule, zone, ends,
                 enabled, next, created, updated, metadata, error, arguments)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, 'null', ?13)",
        )?
        .execute(params![
            tenant,
            new.id.to_bytes(),
            new.assistant.to_bytes(),
            new.thread.as_ref().map(ThreadId::name),
            new.principal,
            new.schedule,
            new.zone,
            new.end.map(|end| end.0),
            new.is_enabled,
            new.next.map(|next| next.0),
            new.at.0,
            json_text(&new.metadata)?,
            json_text(&new.arguments)?,
        ])?;
    Ok(CreatedCron::Stored(new.row()))
}

/// Returns a cron of a tenant.
pub(super) fn find(
    connection: &Connection,
    tenant: &str,
    id: CronId,
) -> Result<Option<CronRow>, Fault> {
    let mut select = connection.prepare_cached(select_cron!(
        "",
        "FROM cron WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2"
    ))?;
    let mut rows = select.query(params![tenant, id.to_bytes()])?;
    rows.next()?.map(|row| cron_row(row, tenant)).transpose()
}

/// Returns all crons that match a query, in no order.
pub(super) fn matching(connection: &Connection, query: &CronQuery) -> Result<Vec<CronRow>, Fault> {
    let mut select = connection.prepare_cached(select_cron!(
        "",
        "FROM cron WHERE tenant = (SELECT id FROM tenant WHERE name = ?1)"
    ))?;
    let mut rows = select.query([&query.tenant])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cron = cron_row(row, &query.tenant)?;
        if query.matches(&cron) {
            found.push(cron);
        }
    }
    Ok(found)
}

/// Changes a cron that is as the caller read it.
pub(super) fn change(
    connection: &Connection,
    tenant: &str,
    id: CronId,
    change: &CronChange,
    now: Timestamp,
) -> Result<ChangedCron, Fault> {
    let Some(current) = find(connection, tenant, id)? else {
        return Ok(ChangedCron::Missing);
    };
    if current.updated != change.seen {
        return Ok(ChangedCron::Stale);
    }
    let changed = change.applied(&current, now);
    connection
        .prepare_cached(
            "UPDATE cron SET schedule = ?3, zone = ?4, ends = ?5, enabled = ?6, next = ?7,
                 updated = ?8, metadata = ?9, arguments = ?10
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![
            tenant,
            id.to_bytes(),
            changed.schedule,
            changed.zone,
            changed.end.map(|end| end.0),
            changed.is_enabled,
            changed.next.map(|next| next.0),
            changed.updated.0,
            json_text(&changed.metadata)?,
            json_text(&changed.arguments)?,
        ])?;
    Ok(ChangedCron::Changed(Box::new(changed)))
}

/// Deletes a cron. Returns whether it existed.
pub(super) fn delete(connection: &Connection, tenant: &str, id: CronId) -> Result<bool, Fault> {
    let deleted = connection
        .prepare_cached(
            "DELETE FROM cron WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![tenant, id.to_bytes()])?;
    Ok(deleted > 0)
}

/// Returns the crons of all tenants that are due, those first that are due the longest.
pub(super) fn due(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<CronRow>, Fault> {
    let mut select = connection.prepare_cached(DUE)?;
    let mut rows = select.query(params![now.0, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(cron_row(row, row.get_ref(15)?.as_str()?)?);
    }
    Ok(found)
}

const DUE: &str = select_cron!(
    ", (SELECT name FROM tenant WHERE tenant.id = cron.tenant)",
    "FROM cron INDEXED BY cron_next WHERE next IS NOT NULL AND next <= ?1
     ORDER BY next, tenant, id LIMIT ?2"
);

/// Returns the earliest time at which a cron is due.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, Fault> {
    let next: Option<i64> = connection
        .prepare_cached(NEXT_DUE)?
        .query_row([], |row| row.get(0))?;
    Ok(next.map(Timestamp))
}

const NEXT_DUE: &str = "SELECT min(next) FROM cron INDEXED BY cron_next WHERE next IS NOT NULL";

/// Moves a cron to its next tick and stores the run of this one. Runs in a transaction of the writing connection, so both happen
/// or neither, and no two callers fire the same tick.
pub(super) fn fire(connection: &Connection, tick: &CronTick) -> Result<FiredTick, Fault> {
    let moved = connection
        .prepare_cached(
            "UPDATE cron SET next = ?5
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2 AND next = ?3
               AND updated = ?4",
        )?
        .execute(params![
            tick.tenant,
            tick.cron.to_bytes(),
            tick.due.0,
            tick.seen.0,
            tick.next.map(|next| next.0),
        ])?;
    if moved == 0 {
        return Ok(FiredTick::Passed);
    }
    let (fired, error) = match &tick.run {
        TickRun::Failed(why) => (FiredTick::NoRun, why.clone()),
        TickRun::Run(run) => {
            let created = runs::create(connection, run)?;
            let error = match created {
                CreatedRun::Busy => CronTick::busy_error(),
                CreatedRun::Stored(_) | CreatedRun::Begun | CreatedRun::Exists(..) => Json::Null,
            };
            (FiredTick::Run(created), error)
        }
    };
    connection
        .prepare_cached(
            "UPDATE cron SET error = ?3, ticked = coalesce(?4, ticked)
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![
            tick.tenant,
            tick.cron.to_bytes(),
            json_text(&error)?,
            error.is_null().then_some(tick.due.0),
        ])?;
    Ok(fired)
}

/// Reads a cron of this tenant from the first fifteen columns.
fn cron_row(row: &Row<'_>, tenant: &str) -> Result<CronRow, Fault> {
    let thread: Option<String> = row.get(2)?;
    let thread = thread.map(|name| ThreadId::of_tenant(tenant, &name));
    let time = |column: usize| -> rusqlite::Result<Option<Timestamp>> {
        let ms: Option<i64> = row.get(column)?;
        Ok(ms.map(Timestamp))
    };
    Ok(CronRow {
        tenant: tenant.to_owned(),
        id: CronId::from_bytes(row.get(0)?),
        assistant: AssistantId::from_bytes(row.get(1)?),
        thread: thread.transpose()?,
        principal: row.get(3)?,
        schedule: row.get(4)?,
        zone: row.get(5)?,
        end: time(6)?,
        is_enabled: row.get(7)?,
        next: time(8)?,
        created: Timestamp(row.get(9)?),
        updated: Timestamp(row.get(10)?),
        metadata: json(row, 11)?,
        error: json(row, 12)?,
        arguments: json(row, 13)?,
        last_tick: time(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// Ten thousand crons that are never due.
    const ENDED: &str =
        "INSERT INTO cron (tenant, id, assistant, thread, principal, schedule, zone,
             ends, enabled, next, created, updated, metadata, error, arguments)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)
         SELECT 0, randomblob(16), zeroblob(16), NULL, '', '* * * * *', NULL, NULL, 0, NULL, i, i,
                '{}', 'null', '{}' FROM n";

    #[test]
    fn the_timer_reads_no_cron_that_is_never_due() {
        let connection = schema::open_in_memory().unwrap();
        assert_eq!(connection.execute(ENDED, []).unwrap(), 10_000);
        // Before and after SQLite has counted the rows.
        for statistics in ["", "ANALYZE"] {
            connection.execute_batch(statistics).unwrap();
            for (sql, params) in [(DUE, params![0_i64, 10_i64]), (NEXT_DUE, params![])] {
                let mut explain = connection
                    .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                    .unwrap();
                let plan: Vec<String> = explain
                    .query_map(params, |row| row.get(3))
                    .unwrap()
                    .collect::<rusqlite::Result<_>>()
                    .unwrap();
                let has = |what: &str| plan.iter().any(|line| line.contains(what));
                assert!(has("INDEX cron_next"), "{plan:?}");
                assert!(!has("TEMP B-TREE"), "{plan:?}");
            }
        }
        assert!(
            due(&connection, Timestamp(i64::MAX), 10)
                .unwrap()
                .is_empty()
        );
        assert_eq!(next_due(&connection).unwrap(), None);
    }
}
