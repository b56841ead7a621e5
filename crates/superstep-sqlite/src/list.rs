//! Lists of threads and interrupts, and search by content.
//!
//! A thread's row in the list is found by *terms*: hashes of its status, its graph, and every top-level scalar of its
//! metadata and its state, each combined with the tenant. A search takes the rarest of its terms and reads the rows that have
//! it. If even the rarest one is common, it scans the rows from the newest on, which then fills the page soon. Either way
//! each row is compared with the query itself, so a hash collision never returns a wrong row.

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row, ToSql, params};
use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::{
    ArchivedListing, Filter, FilterValue, InterruptQuery, InterruptRow, Listing, Metadata, Page,
    Status, ThreadQuery, ThreadRow, UnfinishedThread,
};
use superstep_core::{Epoch, ThreadId, Timestamp, Value};
use xxhash_rust::xxh3::Xxh3;

use crate::fault::{Fault, SqliteError};
use crate::read::{self, StoredThread};

/// What a commit changes in a thread's row of the list.
pub(crate) struct Change<'a> {
    /// `None` for a thread that is created, or created again after a deletion.
    pub(crate) status_before: Option<Status>,
    pub(crate) listing: Option<&'a Listing>,
    pub(crate) at: Timestamp,
}

/// A thread's row of the list as stored, without its timestamps.
#[derive(Debug, Clone, Default)]
struct ListRow {
    graph: String,
    metadata: Metadata,
    state: Option<Value>,
}

/// Writes the row of a thread whose status changed or whose commit carries a new listing.
pub(crate) fn write(
    connection: &Connection,
    after: &StoredThread,
    change: &Change<'_>,
) -> Result<(), Fault> {
    let status = after.head.status;
    if change.listing.is_none() && change.status_before == Some(status) {
        return Ok(());
    }
    let before = line(connection, after.id)?;
    let old_terms = match (&before, change.status_before) {
        (Some(line), Some(status)) => line.terms(after.tenant, status),
        _ => BTreeSet::new(),
    };
    let line = before.unwrap_or_default().changed(change.listing);
    put(connection, after, &line, [change.at; 2])?;
    replace_terms(
        connection,
        after.id,
        &old_terms,
        &line.terms(after.tenant, status),
    )
}

/// Copies the row of the source, including its timestamps.
pub(crate) fn copy(
    connection: &Connection,
    from: &StoredThread,
    to: &StoredThread,
) -> Result<(), Fault> {
    let Some(line) = line(connection, from.id)? else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO line (thread, tenant, created, updated, graph, metadata, state)
             SELECT ?2, ?3, created, updated, graph, metadata, state FROM line WHERE thread = ?1",
        )?
        .execute([from.id, to.id, to.tenant])?;
    let terms = line.terms(to.tenant, to.head.status);
    replace_terms(connection, to.id, &BTreeSet::new(), &terms)
}

/// Reads the row of a thread for its archive.
pub(crate) fn archived(
    connection: &Connection,
    stand: &StoredThread,
) -> Result<ArchivedListing, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT graph, metadata, state, created, updated FROM line WHERE thread = ?1",
    )?;
    let mut rows = select.query([stand.id])?;
    let Some(row) = rows.next()? else {
        return Ok(ArchivedListing::default());
    };
    let line = ListRow::read(row, 0)?;
    Ok(ArchivedListing {
        graph: line.graph,
        metadata: line.metadata,
        values: line.state,
        created: Timestamp(row.get(3)?),
        updated: Timestamp(row.get(4)?),
    })
}

/// Writes the row of an imported thread, and creates its terms.
pub(crate) fn restore(
    connection: &Connection,
    stand: &StoredThread,
    listing: &ArchivedListing,
) -> Result<(), Fault> {
    let line = ListRow {
        graph: listing.graph.clone(),
        metadata: listing.metadata.clone(),
        state: listing.values.clone(),
    };
    put(connection, stand, &line, [listing.created, listing.updated])?;
    let terms = line.terms(stand.tenant, stand.head.status);
    replace_terms(connection, stand.id, &BTreeSet::new(), &terms)
}

/// Removes a thread from the list.
pub(crate) fn remove(connection: &Connection, stand: &StoredThread) -> Result<(), Fault> {
    let Some(line) = line(connection, stand.id)? else {
        return Ok(());
    };
    let terms = line.terms(stand.tenant, stand.head.status);
    replace_terms(connection, stand.id, &terms, &BTreeSet::new())?;
    connection
        .prepare_cached("DELETE FROM line WHERE thread = ?1")?
        .execute([stand.id])?;
    Ok(())
}

fn line(connection: &Connection, thread: i64) -> Result<Option<ListRow>, Fault> {
    let mut select =
        connection.prepare_cached("SELECT graph, metadata, state FROM line WHERE thread = ?1")?;
    let mut rows = select.query([thread])?;
    rows.next()?.map(|row| ListRow::read(row, 0)).transpose()
}

/// Writes a row. Keeps the creation time if the row exists.
fn put(
    connection: &Connection,
    stand: &StoredThread,
    line: &ListRow,
    [created, updated]: [Timestamp; 2],
) -> Result<(), Fault> {
    let metadata = match line.metadata.is_empty() {
        true => None,
        false => Some(serde_json::to_vec(&line.metadata)?),
    };
    let state = line.state.as_ref().map(Value::as_bytes);
    connection
        .prepare_cached(
            "INSERT INTO line (thread, tenant, created, updated, graph, metadata, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (thread) DO UPDATE SET updated = excluded.updated,
                 graph = excluded.graph, metadata = excluded.metadata, state = excluded.state",
        )?
        .execute(params![
            stand.id,
            stand.tenant,
            created.0,
            updated.0,
            line.graph,
            metadata,
            state
        ])?;
    Ok(())
}

fn replace_terms(
    connection: &Connection,
    thread: i64,
    old: &BTreeSet<i64>,
    new: &BTreeSet<i64>,
) -> Result<(), Fault> {
    let mut delete =
        connection.prepare_cached("DELETE FROM term WHERE term = ?1 AND thread = ?2")?;
    for term in old.difference(new) {
        delete.execute([*term, thread])?;
    }
    let mut insert =
        connection.prepare_cached("INSERT OR IGNORE INTO term (term, thread) VALUES (?1, ?2)")?;
    for term in new.difference(old) {
        insert.execute([*term, thread])?;
    }
    Ok(())
}

impl ListRow {
    /// Reads three columns, starting at `first`: graph, metadata, state.
    fn read(row: &Row<'_>, first: usize) -> Result<Self, Fault> {
        let metadata: Option<Vec<u8>> = row.get(first + 1)?;
        let state: Option<Vec<u8>> = row.get(first + 2)?;
        Ok(Self {
            graph: row.get(first)?,
            metadata: metadata.map_or(Ok(Metadata::new()), |json| serde_json::from_slice(&json))?,
            state: state.map(Value::from_bytes),
        })
    }

    fn changed(self, listing: Option<&Listing>) -> Self {
        let Some(listing) = listing.cloned() else {
            return self;
        };
        Self {
            graph: listing.graph,
            metadata: listing.metadata.unwrap_or(self.metadata),
            state: listing.values,
        }
    }

    /// Returns the fields of the state; empty if it is not an object, or not listed.
    fn state_fields(&self) -> Map<String, Json> {
        let fields = self.state.as_ref().and_then(|state| state.decode().ok());
        fields.unwrap_or_default()
    }

    fn terms(&self, tenant: i64, status: Status) -> BTreeSet<i64> {
        let state = self.state_fields();
        let metadata = self
            .metadata
            .iter()
            .map(|(field, value)| (Kind::Metadata, field, value));
        let state = state
            .iter()
            .map(|(field, value)| (Kind::State, field, value));
        let scalars = metadata
            .chain(state)
            .filter_map(|(kind, field, value)| Some((kind, field, FilterValue::of(value)?)));
        let mut terms =
            BTreeSet::from([status_term(tenant, status), graph_term(tenant, &self.graph)]);
        for (kind, field, value) in scalars {
            if terms.len() == TERMS_MAX {
                terms.insert(overfull_term(tenant));
                break;
            }
            terms.insert(term(tenant, kind, field, &value));
        }
        terms
    }

    fn is_wanted(&self, status: Status, query: &ThreadQuery) -> bool {
        query.status.is_none_or(|wanted| wanted == status)
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
}

/// What a term is about. The numbers are part of stored hashes.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Kind {
    Status = 0,
    Graph = 1,
    Metadata = 2,
    State = 3,
    /// The thread has more scalars than terms, so a search must also consider it for terms it lacks.
    Overfull = 4,
}

fn status_term(tenant: i64, status: Status) -> i64 {
    hash(tenant, Kind::Status, "", &[status as u8])
}

fn graph_term(tenant: i64, graph: &str) -> i64 {
    hash(tenant, Kind::Graph, graph, &[])
}

fn overfull_term(tenant: i64) -> i64 {
    hash(tenant, Kind::Overfull, "", &[])
}

fn term(tenant: i64, kind: Kind, field: &str, value: &FilterValue) -> i64 {
    hash(tenant, kind, field, &value.to_key())
}

fn hash(tenant: i64, kind: Kind, field: &str, value: &[u8]) -> i64 {
    let mut hasher = Xxh3::new();
    hasher.update(&tenant.to_le_bytes());
    hasher.update(&[kind as u8]);
    hasher.update(&(field.len() as u64).to_le_bytes());
    hasher.update(field.as_bytes());
    hasher.update(value);
    hasher.digest().cast_signed()
}

/// Lists threads, most recently changed first.
pub(crate) fn threads(
    connection: &Connection,
    query: &ThreadQuery,
) -> Result<Vec<ThreadRow>, Fault> {
    let Some(tenant) = read::tenant(connection, &query.tenant)? else {
        return Ok(Vec::new());
    };
    // A `+` hides an index from the planner: by thread in one query, by age in the other.
    match rarest(connection, tenant, query)? {
        Some(term) => page_of(
            connection,
            "SELECT t.epoch, t.seq, t.status, t.recoveries, t.answers, t.name, l.created, l.updated,
                    l.graph, l.metadata, l.state
             FROM line l LEFT JOIN head t ON t.id = l.thread
             WHERE l.thread IN (SELECT thread FROM term WHERE term IN (?2, ?3)) AND +l.tenant = ?1
             ORDER BY l.updated DESC, t.name",
            [tenant, term, overfull_term(tenant)],
            query,
        ),
        None => page_of(
            connection,
            "SELECT t.epoch, t.seq, t.status, t.recoveries, t.answers, t.name, l.created, l.updated,
                    l.graph, l.metadata, l.state
             FROM line l LEFT JOIN head t ON t.id = +l.thread
             WHERE l.tenant = ?1
             ORDER BY l.updated DESC, t.name",
            [tenant],
            query,
        ),
    }
}

/// Returns the term of a query that the fewest threads have, if they are few.
fn rarest(
    connection: &Connection,
    tenant: i64,
    query: &ThreadQuery,
) -> rusqlite::Result<Option<i64>> {
    let mut count = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM term WHERE term IN (?1, ?2) LIMIT ?3)",
    )?;
    let mut best = (CANDIDATES_MAX + 1, None);
    for term in terms_of(tenant, query) {
        let limit = CANDIDATES_MAX + 1;
        let found: i64 = count.query_row([term, overfull_term(tenant), limit], |row| row.get(0))?;
        if found < best.0 {
            best = (found, Some(term));
        }
    }
    Ok(best.1)
}

fn terms_of(tenant: i64, query: &ThreadQuery) -> impl Iterator<Item = i64> {
    let status = query.status.map(|status| status_term(tenant, status));
    let graph = query.graph.as_ref().map(|graph| graph_term(tenant, graph));
    let by = move |kind| move |filter: &Filter| term(tenant, kind, &filter.field, &filter.equals);
    let metadata = query.metadata.iter().map(by(Kind::Metadata));
    let state = query.values.iter().map(by(Kind::State));
    status.into_iter().chain(graph).chain(metadata).chain(state)
}

/// Reads rows in the order of the statement until the page is full.
fn page_of(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    query: &ThreadQuery,
) -> Result<Vec<ThreadRow>, Fault> {
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let limit = rows_max(query.page);
    let mut found = Vec::new();
    let mut passed_over = 0;
    while found.len() < limit {
        let Some(row) = rows.next()? else { break };
        let Some(thread) = wanted(row, query)? else {
            continue;
        };
        if passed_over < query.page.offset {
            passed_over += 1;
        } else {
            found.push(thread);
        }
    }
    Ok(found)
}

fn wanted(row: &Row<'_>, query: &ThreadQuery) -> Result<Option<ThreadRow>, Fault> {
    // The row of the thread must exist: both are deleted together.
    if row.get_ref(5)? == ValueRef::Null {
        let what = "the row of a thread that is listed".to_owned();
        return Err(SqliteError::RowMissing { what }.into());
    }
    let head = read::head(row)?;
    let line = ListRow::read(row, 8)?;
    if !line.is_wanted(head.status, query) {
        return Ok(None);
    }
    Ok(Some(ThreadRow {
        thread: ThreadId::of_tenant(&query.tenant, row.get_ref(5)?.as_str()?)?,
        head,
        graph: line.graph,
        metadata: line.metadata,
        values: line.state,
        created: Timestamp(row.get(6)?),
        updated: Timestamp(row.get(7)?),
    }))
}

/// Lists interrupts, oldest first.
pub(crate) fn interrupts(
    connection: &Connection,
    query: &InterruptQuery,
) -> Result<Vec<InterruptRow>, Fault> {
    let Some(tenant) = read::tenant(connection, &query.tenant)? else {
        return Ok(Vec::new());
    };
    let thread = match &query.thread {
        None => None,
        Some(thread) => match read::stand(connection, thread)? {
            Some(stand) => Some(stand.id),
            None => return Ok(Vec::new()),
        },
    };
    let due = query.due.map(|due| due.0);
    let limit = query.page.limit.min(PAGE_MAX);
    let mut params: Vec<&dyn ToSql> = vec![&tenant, &limit, &query.page.offset];
    let mut sql = INTERRUPTS.to_owned();
    if query.open_only {
        sql.push_str(" AND i.answer IS NULL AND i.closed IS NULL");
    }
    for (condition, value) in [
        (" AND i.thread = ?", &thread),
        (" AND i.deadline <= ?", &due),
    ] {
        if let Some(value) = value {
            params.push(value);
            sql.push_str(condition);
            sql.push_str(&params.len().to_string());
        }
    }
    // Few interrupts are due: find them by deadline and sort them, instead of scanning by age.
    let age = if due.is_some() || thread.is_some() {
        "+i.asked_at"
    } else {
        "i.asked_at"
    };
    sql.push_str(&format!(" ORDER BY {age}, t.name, i.id LIMIT ?2 OFFSET ?3"));

    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(params.as_slice())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let thread = ThreadId::of_tenant(&query.tenant, row.get_ref(8)?.as_str()?)?;
        found.push(read::interrupt(row, &thread)?);
    }
    Ok(found)
}

const INTERRUPTS: &str =
    "SELECT i.id, i.seq, i.asked_at, i.body, i.answer, i.answered_by, i.answered_at, i.closed, t.name
     FROM interrupt i LEFT JOIN thread t ON t.id = +i.thread
     WHERE i.tenant = ?1";

/// Returns the open interrupts of all tenants whose deadline has passed, earliest first.
pub(crate) fn overdue(
    connection: &Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<InterruptRow>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT i.id, i.seq, i.asked_at, i.body, i.answer, i.answered_by, i.answered_at, i.closed, t.name, n.name
         FROM interrupt i LEFT JOIN thread t ON t.id = i.thread LEFT JOIN tenant n ON n.id = i.tenant
         WHERE i.answer IS NULL AND i.closed IS NULL AND i.deadline IS NOT NULL AND i.deadline <= ?1
         ORDER BY i.deadline, n.name, t.name, i.id LIMIT ?2",
    )?;
    let mut rows = select.query(params![now.0, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, tenant) = (row.get_ref(8)?.as_str()?, row.get_ref(9)?.as_str()?);
        found.push(read::interrupt(row, &ThreadId::of_tenant(tenant, name)?)?);
    }
    Ok(found)
}

/// Returns threads that are running, or were when their process died, and paused ones with answers that their owner has not
/// seen.
pub(crate) fn unfinished(
    connection: &Connection,
    after: Option<&ThreadId>,
    limit: u32,
) -> Result<Vec<UnfinishedThread>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT n.name, t.name, t.epoch, iif(t.status = 1, t.lease, NULL)
         FROM thread t LEFT JOIN tenant n ON n.id = t.tenant
         WHERE t.id IN (
             SELECT id FROM thread WHERE status = 1
             UNION ALL
             SELECT id FROM thread WHERE status = 2 AND answers > seen
         ) AND (n.name, t.name) > (?1, ?2)
         ORDER BY n.name, t.name LIMIT ?3",
    )?;
    let (tenant, name) = after.map_or(("", ""), |after| (after.tenant(), after.name()));
    let mut rows = select.query(params![tenant, name, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (tenant, name) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
        found.push(UnfinishedThread {
            thread: ThreadId::of_tenant(tenant, name)?,
            epoch: Epoch(read::count(row, 2)?),
            lease: row.get::<_, Option<i64>>(3)?.map(Timestamp),
        });
    }
    Ok(found)
}

/// Returns the number of rows in a page.
pub(crate) fn rows_max(page: Page) -> usize {
    page.limit.min(PAGE_MAX) as usize
}

const PAGE_MAX: u32 = 1_000;
/// Maximum number of terms per thread, not counting the one that marks an overfull thread.
const TERMS_MAX: usize = 64;
/// Maximum number of rows to read by term; beyond it a search scans instead.
const CANDIDATES_MAX: i64 = 1_024;
