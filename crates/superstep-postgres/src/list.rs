//! Lists of threads and interrupts, and search by content.
//!
//! A search that names threads reads those. Any other takes the condition whose terms the fewest threads have, and reads the
//! rows that have one of them. If even those are many, it reads the rows in the order of the list, which then fills the page
//! soon. The database compares what is a column of its own; the content of metadata and state is bytes to it, and is compared
//! here. Every value is a bound parameter; statements consist only of constants.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use superstep_core::checkpoint::{
    Filter, InterruptQuery, InterruptRow, Metadata, OverdueCursor, Page, ThreadQuery, ThreadRow,
    ThreadSort, UnfinishedThread,
};
use superstep_core::registry::json_contains;
use superstep_core::{Epoch, ThreadId, Timestamp, Value};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::fault::Fault;
use crate::id::Id;
use crate::lifetime;
use crate::place::Places;
use crate::pool::{self, Params, Pool};
use crate::read::{self, text};
use crate::terms;

/// Lists the threads that match a query, in its order.
pub(crate) async fn threads(pool: &Pool, query: &ThreadQuery) -> Result<Vec<ThreadRow>, Fault> {
    let Some(search) = ThreadSearch::new(pool, query).await? else {
        return Ok(Vec::new());
    };
    let (limit, offset) = limits(query.page);
    let mut select = search.statement(ROWS);
    select.sql.push_str(order(query));
    // Without a limit in the narrow case: with one, the planner prefers to read the whole list in its order.
    if search.is_narrow() || compares_content(query) {
        let mut found = PageCollector::new(query);
        let visit = |row: &Row| found.add(row);
        search.visit(pool, &select, visit).await?;
        return Ok(found.rows);
    }
    select.params.push(&limit);
    select.params.push(&offset);
    let last = select.params.len();
    let page = format!(" LIMIT ${} OFFSET ${last}", last - 1);
    select.sql.push_str(&page);
    let rows = pool.read(&select.sql, &select.params).await?;
    let row = |row| thread_row(row, &query.tenant);
    rows.iter().map(row).collect()
}

/// Returns how many threads match a query.
pub(crate) async fn count_threads(pool: &Pool, query: &ThreadQuery) -> Result<u64, Fault> {
    let Some(search) = ThreadSearch::new(pool, query).await? else {
        return Ok(0);
    };
    if compares_content(query) {
        let select = search.statement(ROWS);
        let mut matching = 0;
        let visit = |row: &Row| {
            matching += u64::from(has_content(&thread_row(row, &query.tenant)?, query));
            Ok(true)
        };
        search.visit(pool, &select, visit).await?;
        return Ok(matching);
    }
    let count = search.statement(search.count());
    let rows = pool.read(&count.sql, &count.params).await?;
    Ok(rows.first().map_or(0, |row| read::count(row, 0)))
}

macro_rules! of_threads {
    ($select:literal) => {
        concat!(
            $select,
            " FROM listing l
              JOIN thread t ON t.tenant = l.tenant AND t.name = l.name AND t.id = l.thread"
        )
    };
}

const ROWS: &str = of_threads!(
    "SELECT t.epoch, t.seq, t.status::int8, t.recoveries, t.answers, l.name, l.created, l.updated,
         l.graph, l.metadata, l.state, l.lifetime_ms, l.at_end::int8"
);
const COUNT: &str = of_threads!("SELECT count(*)");
/// Every thread that is not deleted has a row in the list, so the other table is not needed.
const COUNT_LISTED: &str = "SELECT count(*) FROM listing l";

/// Names are sorted byte by byte, because their column has the collation `C`. The order by times is that of an index in one
/// direction; in the other only rows of equal times are sorted. The order by names is that of the key of `thread`.
fn order(query: &ThreadQuery) -> &'static str {
    match (query.sort, query.is_ascending) {
        (ThreadSort::Updated, false) => " ORDER BY l.updated DESC, l.name",
        (ThreadSort::Updated, true) => " ORDER BY l.updated, l.name",
        (ThreadSort::Created, false) => " ORDER BY l.created DESC, l.name",
        (ThreadSort::Created, true) => " ORDER BY l.created, l.name",
        (ThreadSort::Id, false) => " ORDER BY l.name DESC",
        (ThreadSort::Id, true) => " ORDER BY l.name",
        (ThreadSort::Status, false) => " ORDER BY t.status DESC, l.name",
        (ThreadSort::Status, true) => " ORDER BY t.status, l.name",
    }
}

/// The conditions of a query that the database compares, as values of parameters.
struct ThreadSearch<'a> {
    query: &'a ThreadQuery,
    statuses: Vec<i16>,
    names: Option<Vec<&'a str>>,
    excluded: Vec<&'a str>,
    graph: Option<&'a [u8]>,
    /// Every matching thread has one of these terms, and few threads do. `None` if many do, or the query names threads.
    terms: Option<Vec<i64>>,
}

impl<'a> ThreadSearch<'a> {
    /// Returns `None` if no thread can match.
    async fn new(pool: &Pool, query: &'a ThreadQuery) -> Result<Option<Self>, Fault> {
        let names_of = |ids: &'a [ThreadId]| -> Vec<&'a str> {
            let own = ids.iter().filter(|id| id.tenant() == query.tenant);
            own.map(ThreadId::name).collect()
        };
        let names = query.ids.as_deref().map(names_of);
        if !is_tenant(&query.tenant) || names.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let terms = match names {
            Some(_) => None,
            None => rarest(pool, query).await?,
        };
        Ok(Some(Self {
            query,
            statuses: query.statuses.iter().map(|status| *status as i16).collect(),
            names,
            excluded: names_of(&query.except),
            graph: query.graph.as_deref().map(str::as_bytes),
            terms,
        }))
    }

    /// Returns whether the rows that can match are so few that all of them may be read at once.
    fn is_narrow(&self) -> bool {
        let are_few = |names: &Vec<&str>| names.len() <= CANDIDATES_MAX as usize;
        self.terms.is_some() || self.names.as_ref().is_some_and(are_few)
    }

    fn count(&self) -> &'static str {
        match self.statuses.is_empty() && self.names.is_none() {
            true => COUNT_LISTED,
            false => COUNT,
        }
    }

    /// Adds the conditions to a text that names its tables `l` and `t`.
    fn statement(&self, select: &str) -> ListStatement<'_> {
        let mut statement = ListStatement {
            sql: format!("{select} WHERE l.tenant = $1"),
            params: vec![&self.query.tenant],
        };
        if let Some(names) = &self.names {
            statement.and("t.name = ANY (?)", names);
        }
        if !self.statuses.is_empty() {
            statement.and("t.status = ANY (?)", &self.statuses);
        }
        if !self.excluded.is_empty() {
            statement.and("l.name <> ALL (?)", &self.excluded);
        }
        if let Some(graph) = &self.graph {
            statement.and("l.graph = ?", graph);
        }
        if let Some(terms) = &self.terms {
            statement.and(
                "l.thread IN (SELECT thread FROM term WHERE term = ANY (?))",
                terms,
            );
        }
        statement
    }

    /// Reads rows for as long as `visit` returns `true`.
    async fn visit(
        &self,
        pool: &Pool,
        select: &ListStatement<'_>,
        mut visit: impl FnMut(&Row) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        if !self.is_narrow() {
            return pool::walk(pool, &select.sql, &select.params, visit).await;
        }
        let rows = pool.read(&select.sql, &select.params).await?;
        for row in &rows {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }
}

/// A statement with the values of its parameters.
struct ListStatement<'a> {
    sql: String,
    params: Vec<&'a (dyn ToSql + Sync)>,
}

impl<'a> ListStatement<'a> {
    /// Adds a condition, with the value for its `?`.
    fn and(&mut self, condition: &str, value: &'a (dyn ToSql + Sync)) {
        self.params.push(value);
        let place = format!("${}", self.params.len());
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.replace('?', &place));
    }
}

/// Returns the terms of the condition that the fewest threads meet, if those are few, with the term of overfull threads.
async fn rarest(pool: &Pool, query: &ThreadQuery) -> Result<Option<Vec<i64>>, Fault> {
    let conditions = terms::of_query(query);
    if conditions.is_empty() {
        return Ok(None);
    }
    let sql = "SELECT n.term, (SELECT count(*) FROM
                 (SELECT FROM term WHERE term = ANY (ARRAY[n.term, $2]) LIMIT $3) AS few)
         FROM unnest($1::int8[]) AS n (term)";
    let (overfull, limit) = (terms::overfull(&query.tenant), CANDIDATES_MAX + 1);
    let rows = pool
        .read(sql, &[&conditions.concat(), &overfull, &limit])
        .await?;
    let counts: BTreeMap<i64, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let threads = |terms: &Vec<i64>| -> i64 {
        let counts = terms.iter().filter_map(|term| counts.get(term));
        counts.sum()
    };
    let rarest = conditions.into_iter().min_by_key(threads);
    let few = rarest.filter(|terms| threads(terms) <= CANDIDATES_MAX);
    Ok(few.map(|mut terms| {
        terms.push(overfull);
        terms
    }))
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

    /// Adds a row if its content matches. Returns whether there is room for more.
    fn add(&mut self, row: &Row) -> Result<bool, Fault> {
        let row = thread_row(row, &self.query.tenant)?;
        if has_content(&row, self.query) {
            if self.passed_over < self.query.page.offset {
                self.passed_over += 1;
            } else if self.rows.len() < rows_max(self.query.page) {
                self.rows.push(row);
            }
        }
        Ok(self.rows.len() < rows_max(self.query.page))
    }
}

/// Reads a thread from the columns that [`ROWS`] selects.
fn thread_row(row: &Row, tenant: &str) -> Result<ThreadRow, Fault> {
    let metadata: Option<&[u8]> = row.get(9);
    let state: Option<Vec<u8>> = row.get(10);
    Ok(ThreadRow {
        thread: ThreadId::of_tenant(tenant, row.get(5))?,
        head: read::head(row, 0)?,
        graph: text(row, 8)?,
        metadata: metadata.map_or(Ok(Metadata::new()), serde_json::from_slice)?,
        values: state.map(Value::from_bytes),
        created: Timestamp(row.get(6)),
        updated: Timestamp(row.get(7)),
        lifetime: lifetime::read(row, 11)?,
    })
}

/// Returns whether a query has conditions that only [`has_content`] compares.
fn compares_content(query: &ThreadQuery) -> bool {
    compares_values(query) || !query.metadata.is_empty() || query.metadata_contains.is_some()
}

fn compares_values(query: &ThreadQuery) -> bool {
    !query.values.is_empty() || query.values_contains.is_some()
}

/// Returns whether metadata and listed state match a query.
///
/// PostgreSQL's own containment is not the same: an array there contains a scalar that is one of its elements, and its JSON has
/// no NUL characters.
fn has_content(row: &ThreadRow, query: &ThreadQuery) -> bool {
    has_metadata(&row.metadata, query)
        && (!compares_values(query) || has_values(row.values.as_ref(), query))
}

fn has_metadata(metadata: &Metadata, query: &ThreadQuery) -> bool {
    let has = |(name, part): (&String, &Json)| {
        let found = metadata.get(name);
        found.is_some_and(|found| json_contains(found, part))
    };
    let contains = |part: &Json| part.as_object().is_some_and(|part| part.iter().all(has));
    Filter::all_match(&query.metadata, |field| metadata.get(field))
        && query.metadata_contains.as_ref().is_none_or(contains)
}

/// A thread whose state is not listed has no values, so it matches no condition on them.
fn has_values(values: Option<&Value>, query: &ThreadQuery) -> bool {
    let values = values.and_then(|values| values.decode::<Json>().ok());
    values.is_some_and(|values| {
        let contains = |part: &Json| part.is_object() && json_contains(&values, part);
        Filter::all_match(&query.values, |field| values.get(field))
            && query.values_contains.as_ref().is_none_or(contains)
    })
}

/// Lists interrupts, oldest first.
pub(crate) async fn interrupts(
    places: &Places,
    query: &InterruptQuery,
) -> Result<Vec<InterruptRow>, Fault> {
    let elsewhere = |thread: &ThreadId| thread.tenant() != query.tenant;
    let is_elsewhere = query.thread.as_ref().is_some_and(elsewhere)
        || (!query.threads.is_empty() && query.threads.iter().all(elsewhere));
    if !is_tenant(&query.tenant) || is_elsewhere {
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
    let own = query.threads.iter().filter(|thread| !elsewhere(thread));
    let names: Vec<&str> = own.map(ThreadId::name).collect();
    if !names.is_empty() {
        params.push(&names);
        sql.push_str(&format!(
            " AND thread IN (SELECT id FROM thread WHERE tenant = $1 AND name = ANY (${}))",
            params.len()
        ));
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
    after: Option<&OverdueCursor>,
    limit: u32,
) -> Result<Vec<InterruptRow>, Fault> {
    let sql =
        "SELECT id, seq, asked_at, body, answer, answered_by, answered_at, closed, tenant, name
         FROM interrupt
         WHERE answered_at IS NULL AND closed IS NULL AND deadline IS NOT NULL AND deadline <= $1
             AND deadline >= $3 AND (deadline, tenant, name, id) > ($3, $4, $5, $6)
         ORDER BY deadline, tenant, name, id LIMIT $2";
    let (tenant, name) = after.map_or(("", ""), |after| {
        (after.thread.tenant(), after.thread.name())
    });
    let deadline = after.map_or(i64::MIN, |after| after.deadline.0);
    let id = Id(after.map_or([0; 16], |after| after.id.to_bytes()));
    let limit = i64::from(limit);
    let params: Params<'_> = &[&now.0, &limit, &deadline, &tenant, &name, &id];
    rows(&pool.read(sql, params).await?)
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

/// A server reads one row more than its longest page has, to see whether another page follows.
const PAGE_MAX: u32 = 1_001;
/// Maximum number of rows to read by term or by name at once; beyond it a search reads rows in the order of the list.
const CANDIDATES_MAX: i64 = 1_024;
