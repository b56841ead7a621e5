//! Search terms of threads: hashes of status, graph, and every top-level scalar of metadata and state, each combined with the
//! tenant.
//!
//! Terms only narrow a search; each row is compared with the query itself, so a hash collision never returns a wrong row.
//! Terms of the metadata are stored separately, because a commit may keep the metadata without carrying it.

use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::{
    Filter, FilterValue, Listing, Metadata, Status, ThreadLifetime, ThreadQuery,
};
use superstep_core::{ThreadId, Timestamp, Value};
use tokio_postgres::{Row, Transaction};
use xxhash_rust::xxh3::Xxh3;

use crate::fault::Fault;
use crate::lifetime;
use crate::read::text;

/// A row of the list of threads, to be written.
pub(crate) struct ListRow {
    pub(crate) graph: Vec<u8>,
    pub(crate) metadata: Option<Vec<u8>>,
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) metadata_terms: Vec<i64>,
    /// Terms of the state and of the graph.
    pub(crate) state_terms: Vec<i64>,
}

impl ListRow {
    pub(crate) fn of(tenant: &str, listing: &Listing) -> Self {
        let metadata = listing.metadata.as_ref();
        let state: Map<String, Json> = (listing.values.as_ref())
            .and_then(|state| state.decode().ok())
            .unwrap_or_default();
        let metadata_terms = metadata
            .map(|fields| of_metadata(tenant, fields))
            .unwrap_or_default();
        let mut state_terms = of_fields(tenant, Kind::State, &state);
        state_terms.push(of_graph(tenant, &listing.graph));
        Self {
            graph: listing.graph.clone().into_bytes(),
            metadata: metadata
                .map(|fields| serde_json::to_vec(fields).expect("JSON values always encode")),
            state: listing
                .values
                .as_ref()
                .map(|state| state.as_bytes().to_vec()),
            metadata_terms,
            state_terms,
        }
    }
}

/// The thread that a row belongs to, with its status, timestamps and lifetime.
pub(crate) struct Owner<'a> {
    pub(crate) number: i64,
    pub(crate) thread: &'a ThreadId,
    pub(crate) status: Status,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
    pub(crate) lifetime: Option<ThreadLifetime>,
}

impl ListRow {
    /// Returns all terms of a thread with this row.
    pub(crate) fn found_by(&self, tenant: &str, status: Status) -> Vec<i64> {
        let of_row = self.metadata_terms.iter().chain(&self.state_terms);
        let status = of_status(tenant, status);
        of_row.copied().chain([status]).collect()
    }

    /// Reads a row from three columns: graph, metadata, state. Computes its terms for this tenant.
    pub(crate) fn stored(tenant: &str, row: &Row) -> Result<Self, Fault> {
        let metadata: Option<&[u8]> = row.get(1);
        let state: Option<Vec<u8>> = row.get(2);
        let listing = Listing {
            graph: text(row, 0)?,
            metadata: metadata.map(serde_json::from_slice).transpose()?,
            values: state.map(Value::from_bytes),
        };
        Ok(Self::of(tenant, &listing))
    }

    /// Writes the row of a thread that has none, and its terms.
    pub(crate) async fn insert(
        self,
        transaction: &Transaction<'_>,
        owner: &Owner<'_>,
    ) -> Result<(), Fault> {
        let (tenant, name) = (owner.thread.tenant(), owner.thread.name());
        let (lifetime_ms, at_end) = lifetime::columns(owner.lifetime);
        transaction
            .execute(
                "INSERT INTO listing (thread, tenant, name, created, updated, graph, metadata, state,
                     metadata_terms, state_terms, lifetime_ms, at_end)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
                &[
                    &owner.number,
                    &tenant,
                    &name,
                    &owner.created.0,
                    &owner.updated.0,
                    &self.graph,
                    &self.metadata,
                    &self.state,
                    &self.metadata_terms,
                    &self.state_terms,
                    &lifetime_ms,
                    &at_end,
                ],
            )
            .await?;
        let found_by = self.found_by(tenant, owner.status);
        transaction
            .execute(
                "INSERT INTO term (term, thread) SELECT unnest($2::int8[]), $1 ON CONFLICT DO NOTHING",
                &[&owner.number, &found_by],
            )
            .await?;
        Ok(())
    }
}

/// Returns the terms of metadata, as they are stored with it.
pub(crate) fn of_metadata(tenant: &str, metadata: &Metadata) -> Vec<i64> {
    of_fields(tenant, Kind::Metadata, metadata)
}

/// Returns the terms of an object's scalars, plus a marker if there are too many.
fn of_fields<'a>(
    tenant: &str,
    kind: Kind,
    fields: impl IntoIterator<Item = (&'a String, &'a Json)>,
) -> Vec<i64> {
    let mut terms = Vec::new();
    for (field, value) in fields {
        let Some(value) = FilterValue::of(value) else {
            continue;
        };
        if terms.len() == TERMS_MAX {
            terms.push(overfull(tenant));
            break;
        }
        terms.push(of_value(tenant, kind, field, &value));
    }
    terms
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

/// Returns the terms of all statuses, each at its number.
pub(crate) fn of_every_status(tenant: &str) -> Vec<i64> {
    let numbers = 0..=Status::Deleted as u8;
    numbers
        .map(|status| hash(tenant, Kind::Status, "", &[status]))
        .collect()
}

fn of_status(tenant: &str, status: Status) -> i64 {
    hash(tenant, Kind::Status, "", &[status as u8])
}

pub(crate) fn of_graph(tenant: &str, graph: &str) -> i64 {
    hash(tenant, Kind::Graph, graph, &[])
}

pub(crate) fn overfull(tenant: &str) -> i64 {
    hash(tenant, Kind::Overfull, "", &[])
}

fn of_value(tenant: &str, kind: Kind, field: &str, value: &FilterValue) -> i64 {
    hash(tenant, kind, field, &value.to_key())
}

fn hash(tenant: &str, kind: Kind, field: &str, value: &[u8]) -> i64 {
    let mut hasher = Xxh3::new();
    for text in [tenant, field] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(&[kind as u8]);
    hasher.update(value);
    hasher.digest().cast_signed()
}

/// Returns the conditions of a query that can be looked up: a thread that matches has one of the terms of each, unless it is
/// overfull.
pub(crate) fn of_query(query: &ThreadQuery) -> Vec<Vec<i64>> {
    let tenant = &query.tenant;
    let statuses = query.statuses.iter();
    let statuses: Vec<i64> = statuses.map(|status| of_status(tenant, *status)).collect();
    // A thread whose row was created without a listing has no graph, and no term for it.
    let graph = query.graph.as_ref().filter(|graph| !graph.is_empty());
    let graph = graph.map(|graph| of_graph(tenant, graph));
    let by = |kind| move |filter: &Filter| of_value(tenant, kind, &filter.field, &filter.equals);
    let metadata = query.metadata.iter().map(by(Kind::Metadata));
    let state = query.values.iter().map(by(Kind::State));
    let in_metadata = of_part(tenant, Kind::Metadata, query.metadata_contains.as_ref());
    let in_state = of_part(tenant, Kind::State, query.values_contains.as_ref());
    let single = (graph.into_iter())
        .chain(metadata)
        .chain(state)
        .chain(in_metadata)
        .chain(in_state)
        .map(|term| vec![term]);
    let all = [statuses].into_iter().chain(single);
    all.filter(|terms| !terms.is_empty()).collect()
}

/// Returns the terms of those fields of a JSON object that a row contains only as they are. Numbers are not among them: `1` and
/// `1.0` contain each other and have different terms.
fn of_part(tenant: &str, kind: Kind, part: Option<&Json>) -> Vec<i64> {
    let fields = part.and_then(Json::as_object).into_iter().flatten();
    let term = |(field, value): (&String, &Json)| {
        let scalar = FilterValue::of(value).filter(|_| !value.is_number())?;
        Some(of_value(tenant, kind, field, &scalar))
    };
    fields.filter_map(term).collect()
}

/// Maximum number of terms of metadata and of state each, not counting the overfull marker.
const TERMS_MAX: usize = 32;
