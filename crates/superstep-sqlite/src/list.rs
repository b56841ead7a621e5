//! The rows of threads in their list, and lists of interrupts, of unfinished threads and of those whose lifetime is over.
//!
//! A thread's row is found by its [terms](crate::terms), which are written with it. [`search`](crate::search) reads both.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, ToSql, params};
use superstep_core::checkpoint::{
    ArchivedListing, AtLifetimeEnd, ExpiredThread, InterruptQuery, InterruptRow, Listing, Metadata,
    NewThread, OverdueCursor, Page, Status, ThreadAnnotation, ThreadLifetime, UnfinishedThread,
};
use superstep_core::{Epoch, ThreadId, Timestamp, Value};

use crate::fault::{Fault, SqliteError};
use crate::read::{self, StoredThread, number};
use crate::terms;

/// What a commit changes in a thread's row of the list.
pub(crate) struct Change<'a> {
    /// `None` for a thread that is created, or created again after a deletion.
    pub(crate) status_before: Option<Status>,
    pub(crate) listing: Option<&'a Listing>,
    pub(crate) at: Timestamp,
}

/// A thread's row of the list as stored, without its timestamps.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRow {
    pub(crate) graph: String,
    pub(crate) metadata: Metadata,
    pub(crate) state: Option<Value>,
    pub(crate) lifetime: Option<ThreadLifetime>,
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

/// Writes the row of a thread on which nothing has happened.
pub(crate) fn create(
    connection: &Connection,
    stand: &StoredThread,
    new: &NewThread,
) -> Result<(), Fault> {
    let line = ListRow {
        graph: new.graph.clone(),
        metadata: new.metadata.clone(),
        state: None,
        lifetime: new.lifetime,
    };
    put(connection, stand, &line, [new.at; 2])?;
    let terms = line.terms(stand.tenant, stand.head.status);
    replace_terms(connection, stand.id, &BTreeSet::new(), &terms)
}

/// Changes what the row of a thread says besides its state.
pub(crate) fn annotate(
    connection: &Connection,
    stand: &StoredThread,
    change: &ThreadAnnotation,
) -> Result<(), Fault> {
    let Some(mut line) = line(connection, stand.id)? else {
        let what = "the row of a thread in the list".to_owned();
        return Err(SqliteError::RowMissing { what }.into());
    };
    let old_terms = line.terms(stand.tenant, stand.head.status);
    change.apply(&mut line.graph, &mut line.metadata, &mut line.lifetime);
    put(connection, stand, &line, [change.at; 2])?;
    let terms = line.terms(stand.tenant, stand.head.status);
    replace_terms(connection, stand.id, &old_terms, &terms)
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
            "INSERT INTO line (thread, tenant, created, updated, graph, metadata, state, lifetime_ms, at_end)
             SELECT ?2, ?3, created, updated, graph, metadata, state, lifetime_ms, at_end
             FROM line WHERE thread = ?1",
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
        "SELECT graph, metadata, state, lifetime_ms, at_end, created, updated
         FROM line WHERE thread = ?1",
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
        created: Timestamp(row.get(5)?),
        updated: Timestamp(row.get(6)?),
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
        lifetime: None,
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

/// Returns what is wrong if a thread cannot be found by its status or its graph. To SQLite a term is a number like any other, so its
/// integrity check does not notice a changed one, and a search would leave the thread out.
pub(crate) fn lost_thread(connection: &Connection) -> Result<Option<String>, Fault> {
    let mut threads = connection.prepare(
        "SELECT thread.id, thread.tenant, thread.status, line.graph
         FROM line JOIN thread ON thread.id = line.thread",
    )?;
    let mut terms = connection.prepare("SELECT 1 FROM term WHERE term = ?1 AND thread = ?2")?;
    let mut rows = threads.query([])?;
    while let Some(row) = rows.next()? {
        let (thread, tenant): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (status, graph): (_, String) = (read::status(row.get(2)?)?, row.get(3)?);
        for term in terms::of_every_row(tenant, status, &graph) {
            if !terms.exists([term, thread])? {
                return Ok(Some(
                    "a thread is missing in the index of searches".to_owned(),
                ));
            }
        }
    }
    Ok(None)
}

fn line(connection: &Connection, thread: i64) -> Result<Option<ListRow>, Fault> {
    let mut select = connection.prepare_cached(
        "SELECT graph, metadata, state, lifetime_ms, at_end FROM line WHERE thread = ?1",
    )?;
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
            "INSERT INTO line (thread, tenant, created, updated, graph, metadata, state, lifetime_ms, at_end)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (thread) DO UPDATE SET updated = excluded.updated,
                 graph = excluded.graph, metadata = excluded.metadata, state = excluded.state,
                 lifetime_ms = excluded.lifetime_ms, at_end = excluded.at_end",
        )?
        .execute(params![
            stand.id,
            stand.tenant,
            created.0,
            updated.0,
            line.graph,
            metadata,
            state,
            line.lifetime.map(|lifetime| number(lifetime.ms)),
            line.lifetime.map(|lifetime| lifetime.at_end as u8),
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
    /// Reads five columns, starting at `first`: graph, metadata, state, milliseconds and end of the lifetime.
    pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<Self, Fault> {
        let metadata: Option<Vec<u8>> = row.get(first + 1)?;
        let state: Option<Vec<u8>> = row.get(first + 2)?;
        let ms: Option<i64> = row.get(first + 3)?;
        let lifetime = match ms {
            Some(ms) => Some(ThreadLifetime {
                ms: ms.unsigned_abs(),
                at_end: at_end(row.get(first + 4)?)?,
            }),
            None => None,
        };
        Ok(Self {
            graph: row.get(first)?,
            metadata: metadata.map_or(Ok(Metadata::new()), |json| serde_json::from_slice(&json))?,
            state: state.map(Value::from_bytes),
            lifetime,
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
            lifetime: self.lifetime,
        }
    }

    fn terms(&self, tenant: i64, status: Status) -> BTreeSet<i64> {
        terms::of_row(tenant, status, self)
    }
}

fn at_end(number: i64) -> Result<AtLifetimeEnd, SqliteError> {
    let known = u8::try_from(number)
        .ok()
        .and_then(AtLifetimeEnd::from_number);
    known.ok_or(SqliteError::Unknown {
        what: "end of a lifetime",
        number,
    })
}

/// Returns threads of all tenants that are not running and whose lifetime is over, longest ago first.
pub(crate) fn expired(
    connection: &Connection,
    now: Timestamp,
    after: Option<&ExpiredThread>,
    limit: u32,
) -> Result<Vec<ExpiredThread>, Fault> {
    // A thread whose row is missing is not left out: its name is null, which is damage.
    let mut select = connection.prepare_cached(EXPIRED)?;
    let ended = after.map_or(i64::MIN, |after| after.ended.0);
    let (tenant, name) = after.map_or(("", ""), |after| {
        (after.thread.tenant(), after.thread.name())
    });
    let running = Status::Running as u8;
    let mut rows = select.query(params![now.0, running, limit, ended, tenant, name])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (tenant, name) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
        found.push(ExpiredThread {
            ended: Timestamp(row.get(3)?),
            thread: ThreadId::of_tenant(tenant, name)?,
            at_end: at_end(row.get(2)?)?,
        });
    }
    Ok(found)
}

/// The first comparison with the cursor is for the index, the second one decides among equal ends.
const EXPIRED: &str = "SELECT n.name, t.name, l.at_end, l.updated + l.lifetime_ms
     FROM line l LEFT JOIN thread t ON t.id = l.thread LEFT JOIN tenant n ON n.id = l.tenant
     WHERE l.lifetime_ms IS NOT NULL AND l.updated + l.lifetime_ms <= ?1 AND t.status IS NOT ?2
         AND l.updated + l.lifetime_ms >= ?4
         AND (l.updated + l.lifetime_ms > ?4 OR (n.name, t.name) > (?5, ?6))
     ORDER BY l.updated + l.lifetime_ms, n.name, t.name LIMIT ?3";

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
    // Bound as a JSON text, so that one statement serves lists of any length.
    let threads = match query.threads.is_empty() {
        true => None,
        false => {
            let own = query.threads.iter();
            let own = own.filter(|thread| thread.tenant() == query.tenant);
            Some(serde_json::to_string(&named(connection, tenant, own)?)?)
        }
    };
    let due = query.due.map(|due| due.0);
    let limit = query.page.limit.min(PAGE_MAX);
    let mut params: Vec<&dyn ToSql> = vec![&tenant, &limit, &query.page.offset];
    let mut sql = INTERRUPTS.to_owned();
    if let Some(threads) = &threads {
        params.push(threads);
        // A `+` keeps the planner from reading all interrupts of the tenant.
        sql = sql.replace("i.tenant", "+i.tenant");
        sql.push_str(" AND i.thread IN (SELECT value FROM json_each(?4))");
    }
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
    let age = if due.is_some() || thread.is_some() || threads.is_some() {
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
    after: Option<&OverdueCursor>,
    limit: u32,
) -> Result<Vec<InterruptRow>, Fault> {
    // The first comparison with the cursor is for the index, the second one decides among equal deadlines.
    let mut select = connection.prepare_cached(
        "SELECT i.id, i.seq, i.asked_at, i.body, i.answer, i.answered_by, i.answered_at, i.closed, t.name, n.name
         FROM interrupt i LEFT JOIN thread t ON t.id = i.thread LEFT JOIN tenant n ON n.id = i.tenant
         WHERE i.answer IS NULL AND i.closed IS NULL AND i.deadline IS NOT NULL AND i.deadline <= ?1
             AND i.deadline >= ?3 AND (i.deadline, n.name, t.name, i.id) > (?3, ?4, ?5, ?6)
         ORDER BY i.deadline, n.name, t.name, i.id LIMIT ?2",
    )?;
    let (tenant, name) = after.map_or(("", ""), |after| {
        (after.thread.tenant(), after.thread.name())
    });
    let deadline = after.map_or(i64::MIN, |after| after.deadline.0);
    let id = after.map_or([0; 16], |after| after.id.to_bytes());
    let mut rows = select.query(params![now.0, limit, deadline, tenant, name, id])?;
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

/// Returns the numbers of those threads that exist.
pub(crate) fn named<'a>(
    connection: &Connection,
    tenant: i64,
    ids: impl Iterator<Item = &'a ThreadId>,
) -> rusqlite::Result<BTreeSet<i64>> {
    let mut select = connection
        .prepare_cached("SELECT id FROM thread WHERE tenant = ?1 AND name = ?2 AND status <> 6")?;
    let mut threads = BTreeSet::new();
    for id in ids {
        let mut rows = select.query((tenant, id.name()))?;
        if let Some(row) = rows.next()? {
            threads.insert(row.get(0)?);
        }
    }
    Ok(threads)
}

/// Returns the number of rows in a page.
pub(crate) fn rows_max(page: Page) -> usize {
    page.limit.min(PAGE_MAX) as usize
}

/// A server reads one row more than its longest page has, to see whether another page follows.
pub(crate) const PAGE_MAX: u32 = 1_001;
