//! Lists of threads and interrupts, and search by content.
//!
//! A search takes the rarest of its terms and reads the rows that have it. If even the rarest one is common, it scans the
//! rows from the newest on, which then fills the page soon. Either way each row is compared with the query itself. Every
//! value is a bound parameter; statements consist only of constants.

use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::{
    Filter, InterruptQuery, InterruptRow, Metadata, Page, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::{Epoch, ThreadId, Timestamp, Value};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::fault::Fault;
use crate::place::Places;
use crate::pool::{self, Pool};
use crate::read::{self, text};
use crate::terms;

/// Lists threads, most recently changed first.
pub(crate) async fn threads(pool: &Pool, query: &ThreadQuery) -> Result<Vec<ThreadRow>, Fault> {
    if !is_tenant(&query.tenant) {
        return Ok(Vec::new());
    }
    let terms = terms::of_query(query);
    if terms.is_empty() && query.graph.is_none() {
        return page(pool, query).await;
    }
    let mut found = PageCollector::new(query);
    match rarest(pool, query, &terms).await? {
        Some(term) => {
            let terms = [term, terms::overfull(&query.tenant)];
            let rows = pool
                .read(WITH_TERM, &[&query.tenant, &terms.as_slice()])
                .await?;
            for row in &rows {
                if !found.add(row)? {
                    break;
                }
            }
        }
        None => pool::walk(pool, ALL, &[&query.tenant], |row| found.add(row)).await?,
    }
    Ok(found.rows)
}

macro_rules! lines {
    ($rest:literal) => {
        concat!(
            "SELECT t.epoch, t.seq, t.status::int8, t.recoveries, t.answers, l.name, l.created, l.updated,
                    l.graph, l.metadata, l.state
             FROM listing l JOIN thread t ON t.tenant = l.tenant AND t.name = l.name
             WHERE l.tenant = $1 ",
            $rest
        )
    };
}

const ALL: &str = lines!("ORDER BY l.updated DESC, l.name");
const PAGE: &str = lines!("ORDER BY l.updated DESC, l.name LIMIT $2 OFFSET $3");
const WITH_TERM: &str = lines!(
    "AND l.thread IN (SELECT thread FROM term WHERE term = ANY ($2)) ORDER BY l.updated DESC, l.name"
);

/// Returns a page of all threads of a tenant, without comparing anything.
async fn page(pool: &Pool, query: &ThreadQuery) -> Result<Vec<ThreadRow>, Fault> {
    let (limit, offset) = limits(query.page);
    let rows = pool.read(PAGE, &[&query.tenant, &limit, &offset]).await?;
    let row = |row| ThreadLine::read(row)?.row(&query.tenant, row);
    rows.iter().map(row).collect()
}

/// Returns the term that the fewest threads have, if they are few.
async fn rarest(pool: &Pool, query: &ThreadQuery, terms: &[i64]) -> Result<Option<i64>, Fault> {
    let sql = "SELECT n.term, (SELECT count(*) FROM
                 (SELECT FROM term WHERE term = ANY (ARRAY[n.term, $2]) LIMIT $3) AS few)
         FROM unnest($1::int8[]) AS n (term)";
    let (overfull, limit) = (terms::overfull(&query.tenant), CANDIDATES_MAX + 1);
    let rows = pool.read(sql, &[&terms, &overfull, &limit]).await?;
    let counts = rows.iter().map(|row| (row.get::<_, i64>(1), row.get(0)));
    let rarest = counts.min().filter(|(count, _)| *count <= CANDIDATES_MAX);
    Ok(rarest.map(|(_, term)| term))
}

/// Collects the page of a query from sorted rows.
struct PageCollector<'a> {
    query: &'a ThreadQuery,
    rows: Vec<ThreadRow>,
    passed_over: u32,
}

impl<'a> PageCollector<'a> {
    fn new(query: &'a ThreadQuery) -> Self {
        Self {
            query,
            rows: Vec::new(),
            passed_over: 0,
        }
    }

    /// Adds a row if it matches. Returns whether there is room for more.
    fn add(&mut self, row: &Row) -> Result<bool, Fault> {
        let line = ThreadLine::read(row)?;
        if line.is_wanted(self.query) {
            if self.passed_over < self.query.page.offset {
                self.passed_over += 1;
            } else if self.rows.len() < rows_max(self.query.page) {
                self.rows.push(line.row(&self.query.tenant, row)?);
            }
        }
        Ok(self.rows.len() < rows_max(self.query.page))
    }
}

/// A thread's row of the list as stored.
struct ThreadLine {
    head: superstep_core::checkpoint::Head,
    graph: String,
    metadata: Metadata,
    state: Option<Value>,
}

impl ThreadLine {
    fn read(row: &Row) -> Result<Self, Fault> {
        let metadata: Option<&[u8]> = row.get(9);
        let state: Option<Vec<u8>> = row.get(10);
        Ok(Self {
            head: read::head(row, 0)?,
            graph: text(row, 8)?,
            metadata: metadata.map_or(Ok(Metadata::new()), serde_json::from_slice)?,
            state: state.map(Value::from_bytes),
        })
    }

    fn is_wanted(&self, query: &ThreadQuery) -> bool {
        query.status.is_none_or(|status| status == self.head.status)
            && query
                .graph
                .as_ref()
                .is_none_or(|graph| *graph == self.graph)
            && Filter::all_match(&query.metadata, |field| self.metadata.get(field))
            && (query.values.is_empty() || {
                let state = self.state_fields();
                Filter::all_match(&query.values, |field| state.get(field))
            })
    }

    /// Returns the fields of the state; empty if it is not an object, or not listed.
    fn state_fields(&self) -> Map<String, Json> {
        let fields = self.state.as_ref().and_then(|state| state.decode().ok());
        fields.unwrap_or_default()
    }

    fn row(self, tenant: &str, row: &Row) -> Result<ThreadRow, Fault> {
        Ok(ThreadRow {
            thread: ThreadId::of_tenant(tenant, row.get(5))?,
            head: self.head,
            graph: self.graph,
            metadata: self.metadata,
            values: self.state,
            created: Timestamp(row.get(6)),
            updated: Timestamp(row.get(7)),
        })
    }
}

/// Lists interrupts, oldest first.
pub(crate) async fn interrupts(
    places: &Places,
    query: &InterruptQuery,
) -> Result<Vec<InterruptRow>, Fault> {
    let elsewhere = |thread: &ThreadId| thread.tenant() != query.tenant;
    if !is_tenant(&query.tenant) || query.thread.as_ref().is_some_and(elsewhere) {
        return Ok(Vec::new());
    }
    let (limit, offset) = limits(query.page);
    let place = match &query.thread {
        Some(thread) => places.find(thread).await?,
        None => None,
    };
    if query.thread.is_some() && place.is_none() {
        return Ok(Vec::new());
    }
    let due = query.due.map(|due| due.0);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&query.tenant, &limit, &offset];
    let mut sql = INTERRUPTS.to_owned();
    if query.open_only {
        sql.push_str(" AND answered_at IS NULL AND closed IS NULL");
    }
    if let Some(place) = &place {
        params.push(&place.id);
        sql.push_str(&format!(" AND thread = ${}", params.len()));
    }
    if let Some(due) = &due {
        params.push(due);
        sql.push_str(&format!(" AND deadline <= ${}", params.len()));
    }
    sql.push_str(" ORDER BY asked_at, name, id LIMIT $2 OFFSET $3");
    rows(&places.pool.read(&sql, &params).await?)
}

const INTERRUPTS: &str =
    "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed, tenant, name
     FROM interrupt WHERE tenant = $1";

/// Returns the open interrupts of all tenants whose deadline has passed, earliest first.
pub(crate) async fn overdue(
    pool: &Pool,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<InterruptRow>, Fault> {
    let sql =
        "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed, tenant, name
         FROM interrupt
         WHERE answered_at IS NULL AND closed IS NULL AND deadline IS NOT NULL AND deadline <= $1
         ORDER BY deadline, tenant, name, id LIMIT $2";
    rows(&pool.read(sql, &[&now.0, &i64::from(limit)]).await?)
}

fn rows(rows: &[Row]) -> Result<Vec<InterruptRow>, Fault> {
    let row = |row: &Row| {
        let thread = ThreadId::of_tenant(row.get(8), row.get(9))?;
        read::interrupt(row, thread)
    };
    rows.iter().map(row).collect()
}

/// Returns threads that are running, or were when their process died, and paused ones with answers that their owner has not
/// seen.
pub(crate) async fn unfinished(
    pool: &Pool,
    after: Option<&ThreadId>,
    limit: u32,
) -> Result<Vec<UnfinishedThread>, Fault> {
    let sql = "(SELECT tenant, name, epoch, lease FROM thread
          WHERE status = 1 AND (tenant, name) > ($2, $3)
          ORDER BY tenant, name LIMIT $1)
         UNION ALL
         (SELECT tenant, name, epoch, NULL FROM thread
          WHERE status = 2 AND answers > seen AND (tenant, name) > ($2, $3)
          ORDER BY tenant, name LIMIT $1)
         ORDER BY tenant, name LIMIT $1";
    let (tenant, name) = after.map_or(("", ""), |after| (after.tenant(), after.name()));
    let rows = pool.read(sql, &[&i64::from(limit), &tenant, &name]).await?;
    let unfinished = |row: &Row| {
        Ok(UnfinishedThread {
            thread: ThreadId::of_tenant(row.get(0), row.get(1))?,
            epoch: Epoch(read::count(row, 2)),
            lease: row.get::<_, Option<i64>>(3).map(Timestamp),
        })
    };
    rows.iter().map(unfinished).collect()
}

/// A query may contain any text; only valid tenant names are sent to the database.
pub(crate) fn is_tenant(tenant: &str) -> bool {
    ThreadId::of_tenant(tenant, "x").is_ok()
}

/// Returns the number of rows in a page.
pub(crate) fn rows_max(page: Page) -> usize {
    page.limit.min(PAGE_MAX) as usize
}

pub(crate) fn limits(page: Page) -> (i64, i64) {
    (i64::from(page.limit.min(PAGE_MAX)), i64::from(page.offset))
}

const PAGE_MAX: u32 = 1_000;
/// Maximum number of rows to read by term; beyond it a search scans instead.
const CANDIDATES_MAX: i64 = 1_024;
