//! What a thread is found by: hashes of its status, its graph, and every scalar at the top of its metadata
//! and its state, each together with the tenant.
//!
//! Terms only narrow a search; each line is compared with the query itself, so two texts of one hash
//! never give a wrong row. The terms of the metadata are kept apart from the others, because a commit
//! may leave the metadata as it is without saying what it is.

use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::{Filter, FilterValue, Listing, Status, ThreadQuery};
use superstep_core::{ThreadId, Timestamp, Value};
use tokio_postgres::{Row, Transaction};
use xxhash_rust::xxh3::Xxh3;

use crate::fault::Fault;
use crate::read::text;

/// A line of the list of threads on its way into the store.
pub(crate) struct Line {
    pub(crate) graph: Vec<u8>,
    pub(crate) metadata: Option<Vec<u8>>,
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) metadata_terms: Vec<i64>,
    /// And the graph's.
    pub(crate) state_terms: Vec<i64>,
}

impl Line {
    pub(crate) fn of(tenant: &str, listing: &Listing) -> Self {
        let metadata = listing.metadata.as_ref();
        let state: Map<String, Json> = (listing.values.as_ref())
            .and_then(|state| state.decode().ok())
            .unwrap_or_default();
        let metadata_terms = metadata
            .map(|fields| of_fields(tenant, Kind::Metadata, fields))
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

/// Whose line it is, and where it stands among the others.
pub(crate) struct Owner<'a> {
    pub(crate) number: i64,
    pub(crate) thread: &'a ThreadId,
    pub(crate) status: Status,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
}

impl Line {
    /// A line in three columns: graph, metadata, state. Its terms are made for this tenant.
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

    /// Writes the line of a thread that has none, and what it is found by.
    pub(crate) async fn insert(
        self,
        transaction: &Transaction<'_>,
        owner: &Owner<'_>,
    ) -> Result<(), Fault> {
        let (tenant, name) = (owner.thread.tenant(), owner.thread.name());
        transaction
            .execute(
                "INSERT INTO listing (thread, tenant, name, created, updated, graph, metadata, state,
                     metadata_terms, state_terms)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
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
                ],
            )
            .await?;
        let mut found_by = [self.metadata_terms, self.state_terms].concat();
        found_by.push(of_every_status(tenant)[owner.status as usize]);
        transaction
            .execute(
                "INSERT INTO term (term, thread) SELECT unnest($2::int8[]), $1 ON CONFLICT DO NOTHING",
                &[&owner.number, &found_by],
            )
            .await?;
        Ok(())
    }
}

/// Terms of the scalars of an object, and one that says so if there would be more.
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

/// What a term speaks of. The numbers are stored, inside hashes.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Kind {
    Status = 0,
    Graph = 1,
    Metadata = 2,
    State = 3,
    /// The thread has more scalars than terms, and may be found by what is not among them.
    Overfull = 4,
}

/// The terms of the statuses, each at its number.
pub(crate) fn of_every_status(tenant: &str) -> Vec<i64> {
    let numbers = 0..=Status::Deleted as u8;
    numbers
        .map(|status| hash(tenant, Kind::Status, "", &[status]))
        .collect()
}

fn of_graph(tenant: &str, graph: &str) -> i64 {
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

/// The terms that every thread a query looks for has, unless it is overfull.
pub(crate) fn of_query(query: &ThreadQuery) -> Vec<i64> {
    let tenant = &query.tenant;
    let status = query
        .status
        .map(|status| hash(tenant, Kind::Status, "", &[status as u8]));
    // A thread without a line of its own has no graph, and no term for that.
    let graph = query.graph.as_ref().filter(|graph| !graph.is_empty());
    let graph = graph.map(|graph| of_graph(tenant, graph));
    let by = |kind| move |filter: &Filter| of_value(tenant, kind, &filter.field, &filter.equals);
    let metadata = query.metadata.iter().map(by(Kind::Metadata));
    let state = query.values.iter().map(by(Kind::State));
    status
        .into_iter()
        .chain(graph)
        .chain(metadata)
        .chain(state)
        .collect()
}

/// How many terms metadata or state give, besides the one that says there would be more.
const TERMS_MAX: usize = 32;
