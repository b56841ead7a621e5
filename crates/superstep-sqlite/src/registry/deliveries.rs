//! The outbox: deliveries to webhooks.
//!
//! As with runs, statements that must not read confirmed deliveries name their index.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use superstep_core::registry::{
    AttemptEnd, Delivery, DeliveryAttempt, DeliveryQuery, DeliveryStatus, NewDelivery,
};
use superstep_core::{DeliveryId, RunId, ThreadId, Timestamp};

use crate::fault::{Fault, SqliteError};
use crate::list::rows_max;
use crate::{read, row};

/// Selects the columns that `delivery_row` reads.
macro_rules! select_delivery {
    ($rest:literal) => {
        concat!(
            "SELECT id, run, thread, status, attempts, due, at, updated, address, event, error, body,
                    (SELECT name FROM tenant WHERE tenant.id = delivery.tenant) FROM delivery ",
            $rest
        )
    };
}

/// Stores deliveries in order, apart from those whose ids exist.
pub(super) fn store(connection: &Connection, new: &[NewDelivery]) -> Result<(), Fault> {
    for new in new {
        let tenant = row::tenant(connection, new.thread.tenant())?;
        connection
            .prepare_cached(
                "INSERT INTO delivery (tenant, id, run, thread, status, attempts, due, at, updated,
                     address, event, error, body)
                 VALUES (?1, ?2, ?3, ?4, 0, 0, ?5, ?5, ?5, ?6, ?7, '', ?8)
                 ON CONFLICT (tenant, id) DO NOTHING",
            )?
            .execute(params![
                tenant,
                new.id.to_bytes(),
                new.run.to_bytes(),
                new.thread.name(),
                new.at.0,
                new.address,
                new.event,
                new.body,
            ])?;
    }
    Ok(())
}

/// Takes deliveries to attempt them. Runs in a transaction of the writing connection, so no two callers take the same one.
pub(super) fn take(
    connection: &Connection,
    now: Timestamp,
    again: Timestamp,
    limit: u32,
    skipped: &[String],
) -> Result<Vec<Delivery>, Fault> {
    let numbers = match skipped.is_empty() {
        true => takeable(connection, now, limit)?,
        false => takeable_of_others(connection, now, limit, skipped)?,
    };
    let mut update = connection.prepare_cached(
        "UPDATE delivery SET attempts = attempts + 1, due = ?2, updated = max(updated, ?3)
         WHERE number = ?1",
    )?;
    let mut select = connection.prepare_cached(select_delivery!("WHERE number = ?1"))?;
    let mut taken = Vec::with_capacity(numbers.len());
    for number in numbers {
        update.execute([number, again.0, now.0])?;
        let mut rows = select.query([number])?;
        // It was found a moment ago in the same transaction.
        let row = rows.next()?.ok_or_else(|| SqliteError::RowMissing {
            what: format!("delivery {number}"),
        })?;
        taken.push(delivery_row(row)?);
    }
    Ok(taken)
}

/// Returns the numbers of deliveries that can be taken.
fn takeable(connection: &Connection, now: Timestamp, limit: u32) -> Result<Vec<i64>, Fault> {
    let mut select = connection.prepare_cached(TAKEABLE)?;
    let numbers = select.query_map(params![now.0, limit], |row| row.get(0))?;
    Ok(numbers.collect::<rusqlite::Result<_>>()?)
}

/// Returns the numbers of deliveries that can be taken, of all tenants but some. Goes from tenant to tenant, because those that are
/// skipped may have a hundred thousand deliveries that are due before all others.
fn takeable_of_others(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
    skipped: &[String],
) -> Result<Vec<i64>, Fault> {
    let mut full = BTreeSet::new();
    for name in skipped {
        full.extend(read::tenant(connection, name)?);
    }
    let mut next_tenant = connection.prepare_cached(NEXT_TENANT)?;
    let mut of_tenant = connection.prepare_cached(TAKEABLE_OF_TENANT)?;
    let mut found: Vec<(i64, i64)> = Vec::new();
    let mut after = BEFORE_ALL_TENANTS;
    loop {
        let next = next_tenant.query_row([after], |row| row.get::<_, i64>(0));
        let Some(tenant) = next.optional()? else {
            break;
        };
        after = tenant;
        if full.contains(&tenant) {
            continue;
        }
        let rows = of_tenant.query_map(params![tenant, now.0, limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    found.sort_unstable();
    found.truncate(limit as usize);
    Ok(found.into_iter().map(|(_, number)| number).collect())
}

/// Of each run the oldest pending delivery, if it is due.
const TAKEABLE: &str = "SELECT d.number FROM delivery AS d INDEXED BY delivery_due
     WHERE d.status = 0 AND d.due <= ?1
       AND NOT EXISTS (
           SELECT 1 FROM delivery AS b INDEXED BY delivery_run
           WHERE b.tenant = d.tenant AND b.run = d.run AND b.status = 0 AND b.number < d.number)
     ORDER BY d.due, d.number LIMIT ?2";

/// The same for a tenant, with the times.
const TAKEABLE_OF_TENANT: &str =
    "SELECT d.due, d.number FROM delivery AS d INDEXED BY delivery_waiting
     WHERE d.status = 0 AND d.tenant = ?1 AND d.due <= ?2
       AND NOT EXISTS (
           SELECT 1 FROM delivery AS b INDEXED BY delivery_run
           WHERE b.tenant = d.tenant AND b.run = d.run AND b.status = 0 AND b.number < d.number)
     ORDER BY d.due, d.number LIMIT ?3";

/// The next tenant that has pending deliveries.
const NEXT_TENANT: &str = "SELECT tenant FROM delivery INDEXED BY delivery_waiting
     WHERE status = 0 AND tenant > ?1 ORDER BY tenant LIMIT 1";

/// Tenants are numbered from zero.
const BEFORE_ALL_TENANTS: i64 = -1;

/// Returns the earliest time at which a delivery can be taken.
pub(super) fn next_due(connection: &Connection) -> Result<Option<Timestamp>, Fault> {
    let due: Option<i64> = connection
        .prepare_cached(NEXT_DUE)?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(due.map(Timestamp))
}

const NEXT_DUE: &str = "SELECT d.due FROM delivery AS d INDEXED BY delivery_due
     WHERE d.status = 0
       AND NOT EXISTS (
           SELECT 1 FROM delivery AS b INDEXED BY delivery_run
           WHERE b.tenant = d.tenant AND b.run = d.run AND b.status = 0 AND b.number < d.number)
     ORDER BY d.due LIMIT 1";

/// Stores what came of an attempt, unless the delivery was taken again or repeated, or is no longer pending. Returns whether it did.
pub(super) fn end_attempt(
    connection: &Connection,
    tenant: &str,
    id: DeliveryId,
    attempt: DeliveryAttempt,
    end: &AttemptEnd,
    now: Timestamp,
) -> Result<bool, Fault> {
    let found = find(connection, tenant, id)?;
    let Some(taken) = found.filter(|found| found.awaits_end_of(attempt)) else {
        return Ok(false);
    };
    update(connection, &taken.after_attempt(end, now))?;
    Ok(true)
}

/// Makes a delivery pending and due now. Returns it.
pub(super) fn repeat(
    connection: &Connection,
    tenant: &str,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Option<Delivery>, Fault> {
    let Some(found) = find(connection, tenant, id)? else {
        return Ok(None);
    };
    let repeated = found.repeated(now);
    update(connection, &repeated)?;
    Ok(Some(repeated))
}

fn find(connection: &Connection, tenant: &str, id: DeliveryId) -> Result<Option<Delivery>, Fault> {
    let mut select = connection.prepare_cached(select_delivery!(
        "WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2"
    ))?;
    let mut rows = select.query(params![tenant, id.to_bytes()])?;
    rows.next()?.map(delivery_row).transpose()
}

/// Writes what can change of a delivery.
fn update(connection: &Connection, changed: &Delivery) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "UPDATE delivery SET status = ?3, attempts = ?4, due = ?5, updated = ?6, error = ?7
             WHERE tenant = (SELECT id FROM tenant WHERE name = ?1) AND id = ?2",
        )?
        .execute(params![
            changed.new.thread.tenant(),
            changed.new.id.to_bytes(),
            changed.status.to_number(),
            changed.attempts,
            changed.due.0,
            changed.updated.0,
            changed.error,
        ])?;
    Ok(())
}

/// Lists deliveries, newest first.
pub(super) fn list(connection: &Connection, query: &DeliveryQuery) -> Result<Vec<Delivery>, Fault> {
    let Some(tenant) = read::tenant(connection, &query.tenant)? else {
        return Ok(Vec::new());
    };
    let run = query.run.map(RunId::to_bytes);
    let id = query.id.map(DeliveryId::to_bytes);
    let statuses = query.statuses.iter().map(|status| status.to_number());
    let statuses = serde_json::to_string(&statuses.collect::<Vec<u8>>())?;
    let (limit, offset) = (rows_max(query.page) as i64, query.page.offset);
    let mut params: Vec<&dyn ToSql> = vec![&tenant, &limit, &offset, &statuses];
    let sql = match (&id, &run) {
        (Some(id), _) => {
            params.extend([id as &dyn ToSql, &run]);
            LISTED_OF_ID
        }
        (None, Some(run)) => {
            params.push(run);
            LISTED_OF_RUN
        }
        (None, None) => LISTED,
    };
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params.as_slice())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(delivery_row(row)?);
    }
    Ok(found)
}

const LISTED: &str = select_delivery!(
    "INDEXED BY delivery_tenant WHERE tenant = ?1
       AND (?4 = '[]' OR status IN (SELECT value FROM json_each(?4)))
     ORDER BY number DESC LIMIT ?2 OFFSET ?3"
);

const LISTED_OF_ID: &str = select_delivery!(
    "INDEXED BY delivery_id WHERE tenant = ?1 AND id = ?5 AND (?6 IS NULL OR run = ?6)
       AND (?4 = '[]' OR status IN (SELECT value FROM json_each(?4)))
     ORDER BY number DESC LIMIT ?2 OFFSET ?3"
);

const LISTED_OF_RUN: &str = select_delivery!(
    "INDEXED BY delivery_run WHERE tenant = ?1 AND run = ?5
       AND (?4 = '[]' OR status IN (SELECT value FROM json_each(?4)))
     ORDER BY number DESC LIMIT ?2 OFFSET ?3"
);

/// Deletes confirmed deliveries that did not change after a time. Returns how many.
pub(super) fn sweep(
    connection: &Connection,
    unchanged_since: Timestamp,
    limit: u32,
) -> Result<u64, Fault> {
    let swept = connection
        .prepare_cached(SWEEP)?
        .execute(params![unchanged_since.0, limit])?;
    Ok(swept as u64)
}

const SWEEP: &str = "DELETE FROM delivery WHERE number IN (
         SELECT number FROM delivery INDEXED BY delivery_delivered
         WHERE status = 1 AND updated <= ?1 ORDER BY updated LIMIT ?2)";

fn delivery_row(row: &Row<'_>) -> Result<Delivery, Fault> {
    let number = row.get(3)?;
    let status = DeliveryStatus::from_number(number).ok_or(SqliteError::Unknown {
        what: "status of a delivery",
        number,
    })?;
    Ok(Delivery {
        new: NewDelivery {
            id: DeliveryId::from_bytes(row.get(0)?),
            run: RunId::from_bytes(row.get(1)?),
            thread: ThreadId::of_tenant(row.get_ref(12)?.as_str()?, row.get_ref(2)?.as_str()?)?,
            address: row.get(8)?,
            event: row.get(9)?,
            body: row.get(11)?,
            at: Timestamp(row.get(6)?),
        },
        status,
        attempts: row.get(4)?,
        due: Timestamp(row.get(5)?),
        error: row.get(10)?,
        updated: Timestamp(row.get(7)?),
    })
}

#[cfg(test)]
mod tests;
