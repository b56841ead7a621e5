//! The outbox: the table `delivery`.
//!
//! # Why READ COMMITTED is enough
//!
//! Deliveries are stored by the statement that ends their run, which writes them only if it changed the row of the run. Of two ends
//! of a run, the second waits for the first, compares the row again, and writes nothing.
//!
//! Several servers take deliveries at once. A statement that takes some locks their rows and passes over those that another one
//! has locked. A row that changed between its snapshot and its lock is compared again: it is due later or no longer pending, and is
//! left alone. A delivery behind another one of its run is passed over while the snapshot has the other one as pending, whether or
//! not that one is locked. Deliveries of a run are stored together, so none that comes first can appear later.
//!
//! The rest are single statements on one delivery.

use superstep_core::registry::{
    AttemptEnd, Delivery, DeliveryAttempt, DeliveryQuery, DeliveryStatus, NewDelivery,
};
use superstep_core::{DeliveryId, RunId, ThreadId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::small_number;
use crate::fault::{Fault, PostgresError};
use crate::id::Id;
use crate::list::{is_tenant, limits};
use crate::pool::{Params, Pool};
use crate::read::{count, text};

/// The columns that `delivery_row` reads.
macro_rules! columns {
    () => {
        "id, run, tenant, name, status::int8, attempts::int8, due, at, updated, address, event, error, body"
    };
}

/// Whether no pending delivery of the same run is before `d`. The condition on the status is not that of the partial index
/// `delivery_due`: while the table has no statistics, the planner would take that index, and read all pending deliveries for each.
macro_rules! is_first {
    () => {
        is_first!("")
    };
    ($end:literal) => {
        concat!(
            "NOT EXISTS (
                 SELECT FROM delivery b
                 WHERE b.tenant = d.tenant AND b.run = d.run AND b.status < 1 AND b.number < d.number",
            $end,
            ")"
        )
    };
}

/// A statement that takes the deliveries of `first`, which the text before has found and locked.
macro_rules! take_first {
    ($($first:tt)*) => {
        concat!(
            $($first)*,
            ", taken AS (
                 UPDATE delivery AS d SET attempts = d.attempts + 1, due = $2, updated = greatest(d.updated, $1)
                 FROM first WHERE d.tenant = first.tenant AND d.id = first.id
                 RETURNING d.*, first.due AS was_due)
             SELECT ",
            columns!(),
            " FROM taken ORDER BY was_due, number"
        )
    };
}

/// New deliveries as columns: an array for each.
#[derive(Default)]
pub(super) struct DeliveryColumns<'a> {
    ids: Vec<Id>,
    runs: Vec<Id>,
    tenants: Vec<&'a str>,
    names: Vec<&'a str>,
    times: Vec<i64>,
    addresses: Vec<&'a [u8]>,
    events: Vec<&'a [u8]>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> DeliveryColumns<'a> {
    pub(super) fn of(new: &'a [NewDelivery]) -> Self {
        let mut columns = Self::default();
        for new in new {
            columns.ids.push(Id(new.id.to_bytes()));
            columns.runs.push(Id(new.run.to_bytes()));
            columns.tenants.push(new.thread.tenant());
            columns.names.push(new.thread.name());
            columns.times.push(new.at.0);
            columns.addresses.push(new.address.as_bytes());
            columns.events.push(new.event.as_bytes());
            columns.bodies.push(new.body.as_bytes());
        }
        columns
    }

    pub(super) fn params(&self) -> [&(dyn ToSql + Sync); 8] {
        [
            &self.ids,
            &self.runs,
            &self.tenants,
            &self.names,
            &self.times,
            &self.addresses,
            &self.events,
            &self.bodies,
        ]
    }
}

/// Takes deliveries to attempt them, those first that are due the longest.
pub(super) async fn take(
    pool: &Pool,
    now: Timestamp,
    again: Timestamp,
    limit: u32,
    skipped: &[String],
) -> Result<Vec<Delivery>, Fault> {
    let skipped = skipped.iter().map(String::as_str);
    let skipped: Vec<&str> = skipped.filter(|name| is_tenant(name)).collect();
    let limit = i64::from(limit);
    let rows = match skipped.is_empty() {
        true => pool.write(TAKE, &[&now.0, &again.0, &limit]).await?,
        false => {
            let params: Params<'_> = &[&now.0, &again.0, &limit, &skipped];
            pool.write(TAKE_OF_OTHERS, params).await?
        }
    };
    rows.iter().map(delivery_row).collect()
}

const TAKE: &str = take_first!(
    "WITH first AS MATERIALIZED (
         SELECT d.tenant, d.id, d.due FROM delivery d
         WHERE d.status = 0 AND d.due <= $1 AND ",
    is_first!(),
    " ORDER BY d.due, d.number LIMIT $3 FOR NO KEY UPDATE OF d SKIP LOCKED)"
);

/// The same for all tenants but some. Goes from tenant to tenant along the index `delivery_waiting`, because those that are skipped may
/// have a hundred thousand deliveries that are due before all others.
///
/// The rows that are locked are joined once more: a lock inside the subquery would be taken on more than the limit. The conditions that
/// are compared again after a lock are those of the joined row; that on the status is again not the one of the partial indexes.
/// `OFFSET 0` keeps the planner from making a join of the look at the run: without statistics, that join would read all deliveries of
/// the tenant for each.
const TAKE_OF_OTHERS: &str = take_first!(
    "WITH RECURSIVE waiting AS (
         (SELECT d.tenant FROM delivery d WHERE d.status = 0 ORDER BY d.tenant LIMIT 1)
         UNION ALL
         SELECT (SELECT d.tenant FROM delivery d WHERE d.status = 0 AND d.tenant > w.tenant ORDER BY d.tenant LIMIT 1)
         FROM waiting w WHERE w.tenant IS NOT NULL),
     first AS MATERIALIZED (
         SELECT l.tenant, l.id, l.due FROM waiting w
         CROSS JOIN LATERAL (
             SELECT d.tenant, d.id, d.due, d.number FROM delivery d
             WHERE d.tenant = w.tenant AND d.status = 0 AND d.due <= $1 AND ",
    is_first!(" OFFSET 0"),
    " ORDER BY d.due, d.number LIMIT $3) found
         JOIN delivery l ON l.id = found.id AND l.tenant = found.tenant AND l.status < 1 AND l.due <= $1
         WHERE w.tenant <> ALL ($4)
         ORDER BY found.due, found.number LIMIT $3 FOR NO KEY UPDATE OF l SKIP LOCKED)"
);

/// Returns the earliest time at which a delivery can be taken.
pub(super) async fn next_due(pool: &Pool) -> Result<Option<Timestamp>, Fault> {
    let sql = concat!(
        "SELECT d.due FROM delivery d WHERE d.status = 0 AND ",
        is_first!(),
        " ORDER BY d.due LIMIT 1"
    );
    let rows = pool.read(sql, &[]).await?;
    Ok(rows.first().map(|row| Timestamp(row.get(0))))
}

/// Stores what came of an attempt, unless the delivery was taken again or repeated, or is no longer pending. Returns whether it did.
pub(super) async fn end_attempt(
    pool: &Pool,
    tenant: &str,
    id: DeliveryId,
    attempt: DeliveryAttempt,
    end: &AttemptEnd,
    now: Timestamp,
) -> Result<bool, Fault> {
    if !is_tenant(tenant) {
        return Ok(false);
    }
    let (status, error, due) = match end {
        AttemptEnd::Delivered => (DeliveryStatus::Delivered, "", None),
        AttemptEnd::Retry { error, due } => (DeliveryStatus::Pending, error.as_str(), Some(due.0)),
        AttemptEnd::Dead { error } => (DeliveryStatus::Dead, error.as_str(), None),
    };
    let sql = "UPDATE delivery SET status = $4, error = $5, due = coalesce($6, due), updated = greatest(updated, $7)
         WHERE tenant = $1 AND id = $2 AND status < 1 AND attempts = $3::int8 AND updated = $8 RETURNING 1";
    let params: Params<'_> = &[
        &tenant,
        &Id(id.to_bytes()),
        &i64::from(attempt.number),
        &number_of(status),
        &error.as_bytes(),
        &due,
        &now.0,
        &attempt.taken.0,
    ];
    Ok(!pool.write(sql, params).await?.is_empty())
}

/// Makes a delivery pending and due now. Returns it.
pub(super) async fn repeat(
    pool: &Pool,
    tenant: &str,
    id: DeliveryId,
    now: Timestamp,
) -> Result<Option<Delivery>, Fault> {
    if !is_tenant(tenant) {
        return Ok(None);
    }
    let sql = concat!(
        "UPDATE delivery SET status = 0, attempts = 0, error = '', due = $3, updated = greatest(updated + 1, $3)
         WHERE tenant = $1 AND id = $2 RETURNING ",
        columns!()
    );
    let params: Params<'_> = &[&tenant, &Id(id.to_bytes()), &now.0];
    let rows = pool.write(sql, params).await?;
    rows.first().map(delivery_row).transpose()
}

/// Lists deliveries, newest first.
pub(super) async fn list(pool: &Pool, query: &DeliveryQuery) -> Result<Vec<Delivery>, Fault> {
    if !is_tenant(&query.tenant) {
        return Ok(Vec::new());
    }
    let run = query.run.map(|run| Id(run.to_bytes()));
    let id = query.id.map(|id| Id(id.to_bytes()));
    let statuses: Vec<i16> = query.statuses.iter().copied().map(number_of).collect();
    let (limit, offset) = limits(query.page);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&query.tenant, &limit, &offset];
    let mut sql = concat!("SELECT ", columns!(), " FROM delivery WHERE tenant = $1").to_owned();
    if let Some(run) = &run {
        params.push(run);
        sql.push_str(&format!(" AND run = ${}", params.len()));
    }
    if let Some(id) = &id {
        params.push(id);
        sql.push_str(&format!(" AND id = ${}", params.len()));
    }
    if !statuses.is_empty() {
        params.push(&statuses);
        sql.push_str(&format!(" AND status = ANY (${})", params.len()));
    }
    sql.push_str(" ORDER BY number DESC LIMIT $2 OFFSET $3");
    let rows = pool.read(&sql, &params).await?;
    rows.iter().map(delivery_row).collect()
}

/// Deletes confirmed deliveries that did not change after a time. Returns how many.
pub(super) async fn sweep(
    pool: &Pool,
    unchanged_since: Timestamp,
    limit: u32,
) -> Result<u64, Fault> {
    // Locked, so that a delivery that is made pending meanwhile stays. Materialized, because PostgreSQL might execute a subquery
    // more than once, and delete more than the limit.
    let sql = "WITH old AS MATERIALIZED (
             SELECT tenant, id FROM delivery WHERE status = 1 AND updated <= $1
             ORDER BY updated LIMIT $2 FOR UPDATE SKIP LOCKED),
         swept AS (
             DELETE FROM delivery AS d USING old WHERE d.tenant = old.tenant AND d.id = old.id
             RETURNING 1)
         SELECT count(*) FROM swept";
    let params: Params<'_> = &[&unchanged_since.0, &i64::from(limit)];
    let rows = pool.write(sql, params).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

fn delivery_row(row: &Row) -> Result<Delivery, Fault> {
    let number = row.get(4);
    let status = DeliveryStatus::from_number(number).ok_or(PostgresError::Unknown {
        what: "status of a delivery",
        number,
    })?;
    Ok(Delivery {
        new: NewDelivery {
            id: DeliveryId::from_bytes(row.get::<_, Id>(0).0),
            run: RunId::from_bytes(row.get::<_, Id>(1).0),
            thread: ThreadId::of_tenant(row.get(2), row.get(3))?,
            address: text(row, 9)?,
            event: text(row, 10)?,
            body: text(row, 12)?,
            at: Timestamp(row.get(7)),
        },
        status,
        attempts: small_number(row, 5),
        due: Timestamp(row.get(6)),
        error: text(row, 11)?,
        updated: Timestamp(row.get(8)),
    })
}

fn number_of(status: DeliveryStatus) -> i16 {
    i16::from(status.to_number())
}
