//! Lifetimes of threads: two columns of the row in the list.

use superstep_core::checkpoint::{AtLifetimeEnd, ExpiredThread, ThreadLifetime};
use superstep_core::{ThreadId, Timestamp};
use tokio_postgres::Row;

use crate::fault::{Fault, PostgresError};
use crate::pool::{Params, Pool};
use crate::read::number;

/// Returns the columns of a lifetime: milliseconds, and the number of what happens at its end.
pub(crate) fn columns(lifetime: Option<ThreadLifetime>) -> (Option<i64>, Option<i16>) {
    let columns = lifetime.map(|lifetime| (number(lifetime.ms), lifetime.at_end as i16));
    columns.unzip()
}

/// Reads a lifetime from two columns, starting at `first`.
pub(crate) fn read(row: &Row, first: usize) -> Result<Option<ThreadLifetime>, PostgresError> {
    let (ms, end): (Option<i64>, Option<i64>) = (row.get(first), row.get(first + 1));
    let Some(ms) = ms else {
        return Ok(None);
    };
    Ok(Some(ThreadLifetime {
        ms: ms.unsigned_abs(),
        // Both columns are null or neither is. Anything else must not pass for a thread that is to be deleted.
        at_end: at_end(end.unwrap_or(-1))?,
    }))
}

fn at_end(number: i64) -> Result<AtLifetimeEnd, PostgresError> {
    match number {
        0 => Ok(AtLifetimeEnd::Delete),
        1 => Ok(AtLifetimeEnd::KeepLatest),
        _ => Err(PostgresError::Unknown {
            what: "end of a lifetime",
            number,
        }),
    }
}

/// Returns threads of all tenants that are not running and whose lifetime is over, longest ago first.
pub(crate) async fn expired(
    pool: &Pool,
    now: Timestamp,
    after: Option<&ExpiredThread>,
    limit: u32,
) -> Result<Vec<ExpiredThread>, Fault> {
    let ended = after.map_or(i64::MIN, |after| after.ended.0);
    let (tenant, name) = after.map_or(("", ""), |after| {
        (after.thread.tenant(), after.thread.name())
    });
    let limit = i64::from(limit);
    let params: Params<'_> = &[&now.0, &limit, &ended, &tenant, &name];
    let rows = pool.read(EXPIRED, params).await?;
    let expired = |row: &Row| {
        Ok(ExpiredThread {
            ended: Timestamp(row.get(3)),
            thread: ThreadId::of_tenant(row.get(0), row.get(1))?,
            at_end: at_end(row.get(2))?,
        })
    };
    rows.iter().map(expired).collect()
}

/// The sum and the condition are those of the index. The first comparison with the cursor is for the index, the second one decides
/// among equal ends.
const EXPIRED: &str = "
    SELECT l.tenant, l.name, coalesce(l.at_end, -1)::int8,
        (l.updated::numeric + l.lifetime_ms::numeric)::int8
    FROM listing l JOIN thread t ON t.tenant = l.tenant AND t.name = l.name
    WHERE l.lifetime_ms IS NOT NULL
      AND l.updated::numeric + l.lifetime_ms::numeric <= $1::int8::numeric AND t.status <> 1
      AND l.updated::numeric + l.lifetime_ms::numeric >= $3::int8::numeric
      AND (l.updated::numeric + l.lifetime_ms::numeric, l.tenant, l.name)
          > ($3::int8::numeric, $4::text, $5::text)
    ORDER BY l.updated::numeric + l.lifetime_ms::numeric, l.tenant, l.name LIMIT $2";
