//! Terms: what a search finds threads by.
//!
//! A term is a hash of a thread's status, of its graph, or of a top-level scalar of its metadata or its state, each combined with
//! the tenant. Different contents can have the same hash, so a search compares each row that it finds with the query itself.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};
use superstep_core::checkpoint::{Filter, FilterValue, Status, ThreadQuery};
use xxhash_rust::xxh3::Xxh3;

use crate::list::ListRow;

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

/// Returns the terms of a thread.
pub(crate) fn of_row(tenant: i64, status: Status, row: &ListRow) -> BTreeSet<i64> {
    // Empty if the state is not an object, or not listed.
    let state: Option<Map<String, Json>> = row.state.as_ref().and_then(|state| state.decode().ok());
    let state = state.unwrap_or_default();
    let metadata = row
        .metadata
        .iter()
        .map(|(field, value)| (Kind::Metadata, field, value));
    let state = state
        .iter()
        .map(|(field, value)| (Kind::State, field, value));
    let scalars = metadata
        .chain(state)
        .filter_map(|(kind, field, value)| Some((kind, field, FilterValue::of(value)?)));
    let mut terms = BTreeSet::from(of_every_row(tenant, status, &row.graph));
    for (kind, field, value) in scalars {
        if terms.len() == TERMS_MAX {
            terms.insert(overfull(tenant));
            break;
        }
        terms.insert(term(tenant, kind, field, &value));
    }
    terms
}

/// Returns the terms that a thread has whatever is in it.
pub(crate) fn of_every_row(tenant: i64, status: Status, graph: &str) -> [i64; 2] {
    [status_term(tenant, status), graph_term(tenant, graph)]
}

/// Returns the conditions of a query that can be looked up: a thread that matches has one of the terms of each, or is overfull.
pub(crate) fn of_query(tenant: i64, query: &ThreadQuery) -> Vec<Vec<i64>> {
    let statuses: Vec<i64> = (query.statuses.iter())
        .map(|status| status_term(tenant, *status))
        .collect();
    let graph = query
        .graph
        .iter()
        .map(|graph| vec![graph_term(tenant, graph)]);
    let by =
        move |kind| move |filter: &Filter| vec![term(tenant, kind, &filter.field, &filter.equals)];
    let metadata = query.metadata.iter().map(by(Kind::Metadata));
    let state = query.values.iter().map(by(Kind::State));
    let in_metadata = of_part(tenant, Kind::Metadata, query.metadata_contains.as_ref());
    let in_state = of_part(tenant, Kind::State, query.values_contains.as_ref());
    let all = [statuses]
        .into_iter()
        .chain(graph)
        .chain(metadata)
        .chain(state);
    let all = all.chain(in_metadata).chain(in_state);
    all.filter(|terms| !terms.is_empty()).collect()
}

/// Returns the terms of each field of a JSON object; none for a field that only the rows themselves can be compared with.
fn of_part(tenant: i64, kind: Kind, part: Option<&Json>) -> Vec<Vec<i64>> {
    let fields = part.and_then(Json::as_object).into_iter().flatten();
    let terms = |(field, value): (&String, &Json)| -> Vec<i64> {
        let equal = FilterValue::all_equal(value);
        let terms = equal.iter().map(|value| term(tenant, kind, field, value));
        terms.collect()
    };
    fields.map(terms).collect()
}

/// Returns the term of threads that have more scalars than terms.
pub(crate) fn overfull(tenant: i64) -> i64 {
    hash(tenant, Kind::Overfull, "", &[])
}

fn status_term(tenant: i64, status: Status) -> i64 {
    hash(tenant, Kind::Status, "", &[status as u8])
}

fn graph_term(tenant: i64, graph: &str) -> i64 {
    hash(tenant, Kind::Graph, graph, &[])
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

/// Maximum number of terms per thread, not counting the one that marks an overfull thread.
const TERMS_MAX: usize = 64;
