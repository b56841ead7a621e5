//! Threads as rows: creation without a run, annotations, and the end of a name.
//!
//! # Why no annotation is lost
//!
//! Terms are hashes that this process computes. So an annotation reads the row in the list, merges its fields here, and writes
//! the result with one statement that changes nothing unless the row still says what was read. If another transaction holds the
//! row, PostgreSQL waits, and then compares with the row's new version. If the row says something else, the annotation starts
//! again from there: another writer has succeeded meanwhile, so one of them always does.
//!
//! The statement first locks the row of the thread for key share. Deletions and claims lock that row for update. So a deletion
//! finds every term of an annotation that it waited for, and an annotation that waited for a deletion finds no thread. Other
//! commits do not wait there. They meet annotations at the row in the list, which both lock before they touch its terms; see
//! `commit.rs` for what that means for a commit.

use std::collections::BTreeSet;

use superstep_core::ThreadId;
use superstep_core::checkpoint::{Listing, Metadata, NewThread, Status, ThreadAnnotation};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::lifetime;
use crate::place::{Place, Places};
use crate::pool::Params;
use crate::terms::{self, ListRow};

/// Creates a thread unless it exists, and remembers its place. Returns whether it did not exist.
pub(crate) async fn create(
    places: &Places,
    thread: &ThreadId,
    new: &NewThread,
) -> Result<bool, Fault> {
    let (tenant, name) = (thread.tenant(), thread.name());
    let listing = Listing {
        graph: new.graph.clone(),
        metadata: Some(new.metadata.clone()),
        values: None,
    };
    let line = ListRow::of(tenant, &listing);
    let found_by = line.found_by(tenant, Status::Idle);
    let (lifetime_ms, at_end) = lifetime::columns(new.lifetime);
    let params: Params<'_> = &[
        &tenant,
        &name,
        &new.at.0,
        &line.graph,
        &line.metadata,
        &line.metadata_terms,
        &line.state_terms,
        &lifetime_ms,
        &at_end,
        &found_by,
    ];
    let sql = format!("{CREATE} SELECT {} FROM head", places.columns());
    let rows = places.pool.write(&sql, params).await?;
    let Some(row) = rows.first() else {
        return Ok(false);
    };
    places.learn(thread, row, 0);
    Ok(true)
}

/// Creates a row or takes that of a deleted thread; the rest depends on that row. A concurrent writer of the same name waits
/// for it, and this statement for that writer: PostgreSQL evaluates the condition with the current version of the row.
const CREATE: &str = "
    WITH head AS (
        INSERT INTO thread AS t
            (tenant, name, epoch, seq, recoveries, answers, seen, status, was, cancel)
        VALUES ($1, $2, 1, 0, 0, 0, 0, 0, 6, false)
        ON CONFLICT (tenant, name) DO UPDATE SET epoch = t.epoch + 1, seq = 0, recoveries = 0,
            answers = 0, seen = 0, status = 0, was = 6, cancel = false, lease = NULL
        WHERE t.status = 6
        RETURNING t.id, t.tableoid),
    line AS (
        INSERT INTO listing (thread, tenant, name, created, updated, graph, metadata,
            metadata_terms, state_terms, lifetime_ms, at_end)
        SELECT id, $1, $2, $3::int8, $3::int8, $4::bytea, $5::bytea, $6::int8[], $7::int8[],
            $8::int8, $9::int2
        FROM head),
    came AS (
        INSERT INTO term (term, thread) SELECT unnest($10::int8[]), id FROM head
        ON CONFLICT DO NOTHING)";

/// Merges an annotation into the row of a thread. Returns whether the thread exists.
pub(crate) async fn annotate(
    places: &Places,
    thread: &ThreadId,
    change: &ThreadAnnotation,
) -> Result<bool, Fault> {
    let Some(place) = places.find(thread).await? else {
        return Ok(false);
    };
    if annotate_at(places, place, thread, change).await? {
        return Ok(true);
    }
    // The thread is deleted, or the cached place is wrong; look it up again.
    places.forget(thread);
    match places.find(thread).await? {
        Some(place) => annotate_at(places, place, thread, change).await,
        None => Ok(false),
    }
}

async fn annotate_at(
    places: &Places,
    place: Place,
    thread: &ThreadId,
    change: &ThreadAnnotation,
) -> Result<bool, Fault> {
    let (tenant, name) = (thread.tenant(), thread.name());
    let sets_lifetime = change.lifetime.is_some();
    let (lifetime_ms, at_end) = lifetime::columns(change.lifetime.flatten());
    let (select, update) = (place.address(CONTENT), place.address(ANNOTATE));
    loop {
        let params: Params<'_> = &[&tenant, &name, &place.id];
        let rows = places.pool.read(&select, params).await?;
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        let old = RowContent::read(row);
        let new = old.after(tenant, change)?;
        let (gone, came) = (old.terms_not_in(&new), new.terms_not_in(&old));
        let params: Params<'_> = &[
            &tenant,
            &name,
            &place.id,
            &change.at.0,
            &new.graph,
            &new.metadata,
            &new.metadata_terms,
            &new.state_terms,
            &sets_lifetime,
            &lifetime_ms,
            &at_end,
            &old.graph,
            &old.metadata,
            &old.metadata_terms,
            &old.state_terms,
            &gone,
            &came,
        ];
        let rows = places.pool.write(&update, params).await?;
        match rows.first().map(|row| row.get::<_, i64>(0)) {
            None => return Ok(false),
            // Another writer changed the row since it was read.
            Some(0) => {}
            Some(_) => return Ok(true),
        }
    }
}

/// What an annotation reads and writes of a row in the list, as columns.
#[derive(Clone)]
struct RowContent {
    graph: Vec<u8>,
    metadata: Option<Vec<u8>>,
    metadata_terms: Vec<i64>,
    /// Terms of the state and of the graph.
    state_terms: Vec<i64>,
}

impl RowContent {
    /// Reads the columns that [`CONTENT`] selects.
    fn read(row: &Row) -> Self {
        Self {
            graph: row.get(0),
            metadata: row.get(1),
            metadata_terms: row.get(2),
            state_terms: row.get(3),
        }
    }

    /// Returns the content after a change. A thread that has a graph keeps it.
    fn after(&self, tenant: &str, change: &ThreadAnnotation) -> Result<Self, Fault> {
        let mut after = self.clone();
        if let Some(graph) = &change.graph
            && self.graph.is_empty()
        {
            let unnamed = terms::of_graph(tenant, "");
            after.state_terms.retain(|term| *term != unnamed);
            after.state_terms.push(terms::of_graph(tenant, graph));
            after.graph = graph.clone().into_bytes();
        }
        if !change.metadata.is_empty() {
            let stored = self.metadata.as_deref();
            let mut metadata: Metadata =
                stored.map_or(Ok(Metadata::new()), serde_json::from_slice)?;
            metadata.extend(change.metadata.clone());
            after.metadata_terms = terms::of_metadata(tenant, &metadata);
            after.metadata = Some(serde_json::to_vec(&metadata)?);
        }
        Ok(after)
    }

    fn terms_not_in(&self, other: &Self) -> Vec<i64> {
        let (terms, others) = (self.terms(), other.terms());
        terms.difference(&others).copied().collect()
    }

    fn terms(&self) -> BTreeSet<i64> {
        let terms = self.metadata_terms.iter().chain(&self.state_terms);
        terms.copied().collect()
    }
}

const CONTENT: &str = "
    SELECT l.graph, l.metadata, l.metadata_terms, l.state_terms
    FROM thread t JOIN @listing l ON l.thread = t.id
    WHERE t.tenant = $1 AND t.name = $2 AND t.id = $3 AND t.status <> 6 AND l.thread = $3";

/// No row: the thread does not exist. Zero: its row does not say what was read.
const ANNOTATE: &str = "
    WITH head AS MATERIALIZED (
        SELECT id FROM thread
        WHERE tenant = $1 AND name = $2 AND id = $3 AND status <> 6
        FOR KEY SHARE),
    line AS (
        UPDATE @listing SET updated = $4::int8, graph = $5::bytea, metadata = $6::bytea,
            metadata_terms = $7::int8[], state_terms = $8::int8[],
            lifetime_ms = CASE WHEN $9::bool THEN $10::int8 ELSE lifetime_ms END,
            at_end = CASE WHEN $9::bool THEN $11::int2 ELSE at_end END
        WHERE thread = $3 AND EXISTS (SELECT FROM head)
          AND graph = $12::bytea AND metadata IS NOT DISTINCT FROM $13::bytea
          AND metadata_terms = $14::int8[] AND state_terms = $15::int8[]
        RETURNING thread),
    gone AS (
        DELETE FROM @term
        WHERE thread = $3 AND EXISTS (SELECT FROM line) AND term = ANY ($16::int8[])),
    came AS (
        INSERT INTO @term (term, thread) SELECT unnest($17::int8[]), thread FROM line
        ON CONFLICT DO NOTHING)
    SELECT (SELECT count(*) FROM line) FROM head";

/// Deletes the row that remembers the epoch of a deleted thread.
pub(crate) async fn forget(places: &Places, thread: &ThreadId) -> Result<(), Fault> {
    let sql = "DELETE FROM thread WHERE tenant = $1 AND name = $2 AND status = 6";
    let params: Params<'_> = &[&thread.tenant(), &thread.name()];
    places.pool.write(sql, params).await?;
    places.forget(thread);
    Ok(())
}
