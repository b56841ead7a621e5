//! Audit logs: the tables `audit` and `audit_head`.
//!
//! # Why READ COMMITTED is enough
//!
//! One statement compares the end of a log, moves it and inserts the entries. Of two that continue the same end, the second waits
//! for the first at the row of the end, and PostgreSQL then compares it again: it has moved, so the second inserts nothing. The
//! first entry of a log inserts that row instead, which only one statement can.
//!
//! One statement deletes the beginning of a log. The end only moves forward, so an entry that was before it stays before it.

use superstep_core::Timestamp;
use superstep_core::registry::{AuditEntry, AuditHead};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::hash;
use crate::fault::Fault;
use crate::pool::{Params, Pool};
use crate::read::{count, number, text};

/// Appends entries to a log if they continue it. Returns the end of the log.
pub(super) async fn append(
    pool: &Pool,
    tenant: &str,
    entries: &[AuditEntry],
) -> Result<AuditHead, Fault> {
    let Some((before, after)) = ends(entries) else {
        return head(pool, tenant).await;
    };
    let tenant_bytes = tenant.as_bytes();
    let (seq, last) = (number(after.seq), after.hash.as_slice());
    let (before_seq, before_last) = (number(before.seq), before.hash.as_slice());
    let columns = AuditColumns::of(entries);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&tenant_bytes, &seq, &last];
    params.extend(columns.params());
    let is_new = before == AuditHead::default();
    if !is_new {
        params.push(&before_seq);
        params.push(&before_last);
    }
    let sql = if is_new { BEGIN } else { CONTINUE };
    if pool.write(sql, &params).await?.is_empty() {
        return head(pool, tenant).await;
    }
    Ok(after)
}

/// Returns the ends of a log before and after these entries; `None` if no log has a place for them.
fn ends(entries: &[AuditEntry]) -> Option<(AuditHead, AuditHead)> {
    let first = entries.first()?;
    let before = AuditHead {
        seq: first.seq.checked_sub(1)?,
        hash: first.previous,
    };
    if before.seq == 0 && before != AuditHead::default() {
        return None;
    }
    Some((before, before.after(entries)?))
}

macro_rules! append {
    ($head:literal) => {
        concat!(
            "WITH head AS (",
            $head,
            " RETURNING 1),
             appended AS (
                 INSERT INTO audit (tenant, seq, at, principal, action, resource, detail, previous, hash)
                 SELECT $1, n.seq, n.at, n.principal, n.action, n.resource, n.detail, n.previous, n.hash
                 FROM unnest($4::int8[], $5::int8[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[],
                             $10::bytea[], $11::bytea[])
                      AS n (seq, at, principal, action, resource, detail, previous, hash)
                 WHERE EXISTS (SELECT FROM head))
             SELECT 1 FROM head"
        )
    };
}

const BEGIN: &str = append!(
    "INSERT INTO audit_head (tenant, seq, hash) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
);

const CONTINUE: &str = append!(
    "UPDATE audit_head SET seq = $2, hash = $3 WHERE tenant = $1 AND seq = $12 AND hash = $13"
);

/// Entries as columns: an array for each.
#[derive(Default)]
struct AuditColumns<'a> {
    seqs: Vec<i64>,
    times: Vec<i64>,
    principals: Vec<&'a [u8]>,
    actions: Vec<&'a [u8]>,
    resources: Vec<&'a [u8]>,
    details: Vec<&'a [u8]>,
    previous: Vec<&'a [u8]>,
    hashes: Vec<&'a [u8]>,
}

impl<'a> AuditColumns<'a> {
    fn of(entries: &'a [AuditEntry]) -> Self {
        let mut columns = Self::default();
        for entry in entries {
            columns.seqs.push(number(entry.seq));
            columns.times.push(entry.at.0);
            columns.principals.push(entry.principal.as_bytes());
            columns.actions.push(entry.action.as_bytes());
            columns.resources.push(entry.resource.as_bytes());
            columns.details.push(entry.detail.as_bytes());
            columns.previous.push(&entry.previous);
            columns.hashes.push(&entry.hash);
        }
        columns
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 8] {
        [
            &self.seqs,
            &self.times,
            &self.principals,
            &self.actions,
            &self.resources,
            &self.details,
            &self.previous,
            &self.hashes,
        ]
    }
}

/// Returns the end of a log.
pub(super) async fn head(pool: &Pool, tenant: &str) -> Result<AuditHead, Fault> {
    let sql = "SELECT seq, hash FROM audit_head WHERE tenant = $1";
    let rows = pool.read(sql, &[&tenant.as_bytes()]).await?;
    let Some(row) = rows.first() else {
        return Ok(AuditHead::default());
    };
    Ok(AuditHead {
        seq: count(row, 0),
        hash: hash(row, 1)?,
    })
}

/// Returns entries after a number, oldest first.
pub(super) async fn list(
    pool: &Pool,
    tenant: &str,
    after: u64,
    limit: u32,
) -> Result<Vec<AuditEntry>, Fault> {
    let sql = "SELECT seq, at, principal, action, resource, detail, previous, hash FROM audit
         WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let params: Params<'_> = &[&tenant.as_bytes(), &number(after), &i64::from(limit)];
    let rows = pool.read(sql, params).await?;
    let entry = |row: &Row| {
        Ok(AuditEntry {
            seq: count(row, 0),
            at: Timestamp(row.get(1)),
            principal: text(row, 2)?,
            action: text(row, 3)?,
            resource: text(row, 4)?,
            detail: text(row, 5)?,
            previous: hash(row, 6)?,
            hash: hash(row, 7)?,
        })
    };
    rows.iter().map(entry).collect()
}

/// Deletes the entries of a log up to one, if the log has it before its last one. Returns how many there were.
pub(super) async fn prune(pool: &Pool, tenant: &str, through: AuditHead) -> Result<u64, Fault> {
    let sql = "WITH deleted AS (
             DELETE FROM audit WHERE tenant = $1 AND seq <= $2
               AND EXISTS (SELECT FROM audit AS last WHERE last.tenant = $1 AND last.seq = $2 AND last.hash = $3)
               AND EXISTS (SELECT FROM audit_head AS head WHERE head.tenant = $1 AND head.seq > $2)
             RETURNING 1)
         SELECT count(*) FROM deleted";
    let params: Params<'_> = &[
        &tenant.as_bytes(),
        &number(through.seq),
        &through.hash.as_slice(),
    ];
    let rows = pool.write(sql, params).await?;
    Ok(rows.first().map_or(0, |row| count(row, 0)))
}

/// Returns the tenants that have a log, in order.
pub(super) async fn tenants(pool: &Pool) -> Result<Vec<String>, Fault> {
    let sql = "SELECT tenant FROM audit_head ORDER BY tenant";
    let rows = pool.read(sql, &[]).await?;
    rows.iter().map(|row| Ok(text(row, 0)?)).collect()
}
