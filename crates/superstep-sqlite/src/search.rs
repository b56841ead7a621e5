//! Search for threads.
//!
//! A search that names threads reads those. Any other takes the rarest of its conditions that have [terms](crate::terms), reads the
//! rows that have one of them, and sorts those that match. If they are many, it sorts only their keys, and reads rows until the page
//! is full. If even the rarest condition is common, it reads the rows in the order of the list, and the page is full soon. Either way
//! each row is compared with the query itself.

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, Rows};
use superstep_core::checkpoint::{Status, ThreadQuery, ThreadRow, ThreadSort};
use superstep_core::{ThreadId, Timestamp};

use crate::fault::{Fault, SqliteError};
use crate::list::{ListRow, named, rows_max};
use crate::read;
use crate::terms;

/// Lists the threads that match a query, in its order.
pub(crate) fn threads(
    connection: &Connection,
    query: &ThreadQuery,
) -> Result<Vec<ThreadRow>, Fault> {
    let Some(tenant) = read::tenant(connection, &query.tenant)? else {
        return Ok(Vec::new());
    };
    let mut reader = RowReader::new(connection, tenant, query)?;
    match candidates(connection, tenant, query)? {
        Some(few) => {
            let mut page = query.page_of(reader.matching(few)?);
            page.truncate(rows_max(query.page));
            Ok(page)
        }
        None => scan(connection, tenant, query, &mut reader),
    }
}

/// Reads rows in the order of the list until the page is full. If a condition of the query is not common, this sorts only the keys of
/// the threads that meet it; otherwise an index has the order, and the page is full soon.
fn scan(
    connection: &Connection,
    tenant: i64,
    query: &ThreadQuery,
    reader: &mut RowReader<'_>,
) -> Result<Vec<ThreadRow>, Fault> {
    let statuses = status_mask(&query.statuses);
    match rarest(connection, tenant, query, SORTED_MAX)? {
        Some(mut terms) => {
            terms.push(terms::overfull(tenant));
            let terms = serde_json::to_string(&terms)?;
            let mut keys = connection.prepare_cached(&keys_of_terms(query))?;
            reader.fill_page(keys.query((tenant, statuses, terms))?)
        }
        None => {
            let mut keys = connection.prepare_cached(keys(query.sort, query.is_ascending))?;
            reader.fill_page(keys.query([tenant, statuses])?)
        }
    }
}

/// Returns how many threads match a query.
pub(crate) fn count(connection: &Connection, query: &ThreadQuery) -> Result<u64, Fault> {
    let Some(tenant) = read::tenant(connection, &query.tenant)? else {
        return Ok(0);
    };
    let mut reader = RowReader::new(connection, tenant, query)?;
    if let Some(few) = candidates(connection, tenant, query)? {
        return Ok(reader.matching(few)?.len() as u64);
    }
    let statuses = status_mask(&query.statuses);
    if !has_other_conditions(query) {
        let counted = match statuses {
            0 => connection
                .prepare_cached("SELECT count(*) FROM line WHERE tenant = ?1")?
                .query_row([tenant], |row| read::count(row, 0)),
            _ => connection
                .prepare_cached(
                    "SELECT count(*) FROM thread
                     WHERE tenant = ?1 AND status <> 6 AND ?2 >> status & 1",
                )?
                .query_row([tenant, statuses], |row| read::count(row, 0)),
        };
        return Ok(counted?);
    }
    let mut keys = connection.prepare_cached(keys(ThreadSort::Id, true))?;
    let mut keys = keys.query([tenant, statuses])?;
    let mut counted = 0;
    while let Some(key) = keys.next()? {
        counted += u64::from(reader.read(key.get(0)?)?.is_some());
    }
    Ok(counted)
}

/// Whether a query that names no threads has conditions besides the status.
fn has_other_conditions(query: &ThreadQuery) -> bool {
    query.graph.is_some()
        || !query.except.is_empty()
        || !query.metadata.is_empty()
        || !query.values.is_empty()
        || query.metadata_contains.is_some()
        || query.values_contains.is_some()
}

/// Returns the numbers of all threads that can match, if they are few.
fn candidates(
    connection: &Connection,
    tenant: i64,
    query: &ThreadQuery,
) -> rusqlite::Result<Option<BTreeSet<i64>>> {
    if let Some(ids) = &query.ids {
        let own = ids.iter().filter(|id| id.tenant() == query.tenant);
        return named(connection, tenant, own).map(Some);
    }
    let Some(mut terms) = rarest(connection, tenant, query, CANDIDATES_MAX)? else {
        return Ok(None);
    };
    terms.push(terms::overfull(tenant));
    let mut select = connection.prepare_cached("SELECT thread FROM term WHERE term = ?1")?;
    let mut threads = BTreeSet::new();
    for term in terms {
        let mut rows = select.query([term])?;
        while let Some(row) = rows.next()? {
            threads.insert(row.get(0)?);
        }
    }
    Ok(Some(threads))
}

/// Returns the terms of the condition that the fewest threads meet, if these are at most so many.
fn rarest(
    connection: &Connection,
    tenant: i64,
    query: &ThreadQuery,
    most: i64,
) -> rusqlite::Result<Option<Vec<i64>>> {
    let mut select = connection
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM term WHERE term = ?1 LIMIT ?2)")?;
    let mut count = |term: i64| -> rusqlite::Result<i64> {
        select.query_row([term, most + 1], |row| row.get(0))
    };
    let overfull = count(terms::overfull(tenant))?;
    let mut best = (most + 1, None);
    for terms in terms::of_query(tenant, query) {
        let mut found = overfull;
        for term in &terms {
            found += count(*term)?;
        }
        if found < best.0 {
            best = (found, Some(terms));
        }
    }
    Ok(best.1)
}

/// Returns the statement that lists the numbers of a tenant's threads in an order. Its second parameter has a bit for each wanted
/// status, none for any.
///
/// An index has the order by times and by names; only equal times are sorted. By status, the numbers of all threads are sorted.
const fn keys(sort: ThreadSort, is_ascending: bool) -> &'static str {
    macro_rules! of_line {
        ($index:literal, $order:literal) => {
            concat!(
                "SELECT l.thread FROM line l INDEXED BY ",
                $index,
                // A `+` keeps the planner from starting with the other table. A thread whose row is missing is not left out.
                " LEFT JOIN thread t ON t.id = +l.thread
                 WHERE l.tenant = ?1 AND (?2 = 0 OR coalesce(?2 >> t.status & 1, 1))
                 ORDER BY ",
                $order,
                ", t.name"
            )
        };
    }
    macro_rules! of_thread {
        ($order:literal) => {
            concat!(
                "SELECT t.id FROM thread t
                 WHERE t.tenant = ?1 AND t.status <> 6 AND (?2 = 0 OR ?2 >> t.status & 1)
                 ORDER BY ",
                $order
            )
        };
    }
    match (sort, is_ascending) {
        (ThreadSort::Updated, false) => of_line!("line_updated", "l.updated DESC"),
        (ThreadSort::Updated, true) => of_line!("line_updated", "l.updated"),
        (ThreadSort::Created, false) => of_line!("line_created", "l.created DESC"),
        (ThreadSort::Created, true) => of_line!("line_created", "l.created"),
        (ThreadSort::Id, false) => of_thread!("t.name DESC"),
        (ThreadSort::Id, true) => of_thread!("t.name"),
        (ThreadSort::Status, false) => of_thread!("t.status DESC, t.name"),
        (ThreadSort::Status, true) => of_thread!("t.status, t.name"),
    }
}

/// Returns the statement that lists the numbers of the threads that have one of the terms of its third parameter, in the order of the
/// query. A thread whose rows are missing is not left out.
fn keys_of_terms(query: &ThreadQuery) -> String {
    let column = match query.sort {
        ThreadSort::Updated => "l.updated",
        ThreadSort::Created => "l.created",
        ThreadSort::Id => "t.name",
        ThreadSort::Status => "t.status",
    };
    let direction = if query.is_ascending { "" } else { " DESC" };
    format!(
        "SELECT x.thread
         FROM (SELECT DISTINCT thread FROM term WHERE term IN (SELECT value FROM json_each(?3))) x
         LEFT JOIN line l ON l.thread = x.thread LEFT JOIN thread t ON t.id = x.thread
         WHERE coalesce(l.tenant, ?1) = ?1 AND (?2 = 0 OR coalesce(?2 >> t.status & 1, 1))
         ORDER BY {column}{direction}, t.name"
    )
}

/// Returns a number with a bit for each status.
fn status_mask(statuses: &[Status]) -> i64 {
    let bits = statuses.iter().map(|status| 1_i64 << (*status as u8));
    bits.fold(0, |mask, bit| mask | bit)
}

/// Reads rows one by one, and compares each with the query.
struct RowReader<'c> {
    select: CachedStatement<'c>,
    tenant: i64,
    query: &'c ThreadQuery,
}

impl<'c> RowReader<'c> {
    fn new(
        connection: &'c Connection,
        tenant: i64,
        query: &'c ThreadQuery,
    ) -> rusqlite::Result<Self> {
        let select = connection.prepare_cached(
            "SELECT t.epoch, t.seq, t.status, t.recoveries, t.answers, t.name, l.created, l.updated, l.tenant,
                    l.graph, l.metadata, l.state, l.lifetime_ms, l.at_end
             FROM line l LEFT JOIN head t ON t.id = l.thread
             WHERE l.thread = ?1",
        )?;
        Ok(Self {
            select,
            tenant,
            query,
        })
    }

    /// Returns the page of the query from the numbers of threads in its order.
    fn fill_page(&mut self, mut keys: Rows<'_>) -> Result<Vec<ThreadRow>, Fault> {
        let page = self.query.page;
        let mut found = Vec::new();
        let mut passed_over = 0;
        while found.len() < rows_max(page) {
            let Some(key) = keys.next()? else { break };
            let Some(thread) = self.read(key.get(0)?)? else {
                continue;
            };
            if passed_over < page.offset {
                passed_over += 1;
            } else {
                found.push(thread);
            }
        }
        Ok(found)
    }

    /// Returns those of the threads that match, in no order.
    fn matching(&mut self, threads: BTreeSet<i64>) -> Result<Vec<ThreadRow>, Fault> {
        let mut found = Vec::new();
        for thread in threads {
            found.extend(self.read(thread)?);
        }
        Ok(found)
    }

    /// Returns a thread if it matches.
    fn read(&mut self, thread: i64) -> Result<Option<ThreadRow>, Fault> {
        let mut rows = self.select.query([thread])?;
        // Both rows of a thread and its terms are deleted together.
        let missing = |what: &str| SqliteError::RowMissing {
            what: what.to_owned(),
        };
        let Some(row) = rows.next()? else {
            return Err(missing("the row of a thread in the list").into());
        };
        if row.get_ref(5)? == ValueRef::Null {
            return Err(missing("the row of a thread that is listed").into());
        }
        // Terms of two tenants can be the same hash.
        if row.get::<_, i64>(8)? != self.tenant {
            return Ok(None);
        }
        let line = ListRow::read(row, 9)?;
        let found = ThreadRow {
            thread: ThreadId::of_tenant(&self.query.tenant, row.get_ref(5)?.as_str()?)?,
            head: read::head(row)?,
            graph: line.graph,
            metadata: line.metadata,
            values: line.state,
            created: Timestamp(row.get(6)?),
            updated: Timestamp(row.get(7)?),
            lifetime: line.lifetime,
        };
        Ok(Some(found).filter(|found| self.query.matches(found)))
    }
}

/// Maximum number of rows to read by term; beyond it a search sorts the keys of rows and reads rows until its page is full.
const CANDIDATES_MAX: i64 = 1_024;
/// Maximum number of keys to sort; beyond it a search reads rows in the order of the list.
const SORTED_MAX: i64 = 8_192;

#[cfg(test)]
mod tests;
