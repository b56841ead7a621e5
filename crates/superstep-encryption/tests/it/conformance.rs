//! The suites that every checkpointer, store, registry and cache is held to, over wrapped ones.

use std::cell::Cell;
use std::sync::Arc;

use superstep_conformance::{Report, block_on, checkpointer, node_cache, registry, store};
use superstep_core::Checkpointer;
use superstep_core::checkpoint::Memory;
use superstep_core::registry::MemoryRegistry;
use superstep_core::store::{MemoryStore, Store};
use superstep_encryption::{
    EncryptedCheckpointer, EncryptedNodeCache, EncryptedRegistry, EncryptedStore, SearchableFields,
};
use superstep_sqlite::Sqlite;

use crate::kit::encryption;

fn wrapped(
    inner: impl Checkpointer,
    store: Arc<dyn Store>,
    searchable: SearchableFields,
) -> EncryptedCheckpointer {
    let encryption = encryption(store).with_searchable(searchable);
    EncryptedCheckpointer::new(Arc::new(inner), encryption)
}

fn wrapped_store(inner: Arc<dyn Store>, searchable: SearchableFields) -> EncryptedStore {
    let encryption = encryption(inner.clone()).with_searchable(searchable);
    EncryptedStore::new(inner, encryption)
}

/// What a wrapper cannot keep: sizes are those of the ciphertext, and the suite compares them with a plain archive.
pub(crate) const SIZES: &[&str] = &[
    "sizes::sizes_are_those_of_what_is_stored",
    "sizes::sizes_are_of_one_tenant_or_thread",
    "sizes::sizes_by_page",
];

/// Asserts that exactly these clauses do not hold: what is expected to fail and does not is as suspicious as the other way round.
pub(crate) fn assert_but(report: &Report, exceptions: &[&str]) {
    let mut failed: Vec<_> = report.failed.iter().map(|(clause, _)| *clause).collect();
    let mut exceptions = exceptions.to_vec();
    failed.sort_unstable();
    exceptions.sort_unstable();
    assert_eq!(failed, exceptions, "{report}");
}

/// Files for the clauses, one after the other.
struct Files(tempfile::TempDir, Cell<u32>);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), Cell::new(0))
    }

    fn next(&self) -> Sqlite {
        self.1.set(self.1.get() + 1);
        Sqlite::open(self.0.path().join(self.1.get().to_string())).unwrap()
    }
}

#[test]
fn the_rules_of_a_checkpointer_hold_in_memory() {
    let make = async || {
        let keys = Arc::new(MemoryStore::new());
        wrapped(Memory::new(), keys, SearchableFields::all())
    };
    assert_but(&block_on(checkpointer(make)), SIZES);
}

#[test]
fn the_rules_of_a_checkpointer_hold_on_sqlite() {
    let files = Files::new();
    let make = async || {
        let db = files.next();
        wrapped(db.clone(), Arc::new(db), SearchableFields::all())
    };
    assert_but(&block_on(checkpointer(make)), SIZES);
}

/// Clauses that search by fields, which are refused where fields are encrypted.
const SEARCHES: &[&str] = &[
    "archive::found_no_longer_by_what_has_changed",
    "archive::imported_thread_is_listed_and_found",
    "list::filters_compare_type_and_value",
    "list::filters_need_the_field",
    "list::largest_values_are_kept_whole",
    "list::listing_is_replaced_but_metadata_is_kept",
    "list::long_texts_are_not_searched",
    "list::threads_by_values_and_metadata",
    "search::deleted_thread_is_found_by_nothing",
    "search::empty_texts_and_nul_are_only_texts",
    "search::many_fields_are_all_found",
    "search::search_follows_the_values",
    "security::hostile_searches_find_what_a_model_finds",
    "security::tenants_are_apart_in_lists",
    "threads::count_is_of_all_pages",
    "threads::pages_of_every_order_have_no_gaps",
    "threads::search_follows_annotations",
    "threads::tenants_are_apart_in_rows",
    "threads::threads_are_sorted_both_ways",
    "threads::threads_by_ids_and_exceptions",
    "threads::threads_that_contain_json_as_the_model",
];

#[test]
fn the_rules_of_a_checkpointer_hold_with_every_field_encrypted_apart_from_searches() {
    let make = async || {
        let keys = Arc::new(MemoryStore::new());
        wrapped(Memory::new(), keys, SearchableFields::default())
    };
    let report = block_on(checkpointer(make));
    assert_but(&report, &[SIZES, SEARCHES].concat());
    let searches = report
        .failed
        .iter()
        .filter(|(clause, _)| SEARCHES.contains(clause));
    for (clause, why) in searches {
        assert!(why.contains("cannot be searched"), "{clause}: {why}");
    }
}

#[test]
fn the_rules_of_a_store_hold_in_memory() {
    let make = async || wrapped_store(Arc::new(MemoryStore::new()), SearchableFields::all());
    block_on(store(make)).assert();
}

#[test]
fn the_rules_of_a_store_hold_on_sqlite() {
    let files = Files::new();
    let make = async || wrapped_store(Arc::new(files.next()), SearchableFields::all());
    block_on(store(make)).assert();
}

/// Clauses that search by fields, which are refused where fields are encrypted.
const STORE_SEARCHES: &[&str] = &[
    "store::hostile_filters_are_only_texts",
    "store::search_by_filters_as_the_model",
    "store::search_compares_nested_values",
    "store::search_filters_before_it_pages",
    "store::search_of_mixed_types_does_not_fail",
    "store::tenants_have_their_own_lists",
];

#[test]
fn the_rules_of_a_store_hold_with_every_field_encrypted_apart_from_searches() {
    let make = async || wrapped_store(Arc::new(MemoryStore::new()), SearchableFields::default());
    let report = block_on(store(make));
    assert_but(&report, STORE_SEARCHES);
    for (clause, why) in &report.failed {
        assert!(why.contains("cannot be searched"), "{clause}: {why}");
    }
}

#[test]
fn the_rules_of_a_registry_hold_in_memory() {
    let make = async || {
        let keys = encryption(Arc::new(MemoryStore::new()));
        let inner = Arc::new(MemoryRegistry::new());
        EncryptedRegistry::new(inner, keys.with_searchable(SearchableFields::all()))
    };
    block_on(registry(make)).assert();
}

#[test]
fn the_rules_of_a_registry_hold_on_sqlite() {
    let files = Files::new();
    let make = async || {
        let db = files.next();
        let keys = encryption(Arc::new(db.clone()));
        EncryptedRegistry::new(Arc::new(db), keys.with_searchable(SearchableFields::all()))
    };
    block_on(registry(make)).assert();
}

/// Clauses that search by fields, which are refused where fields are encrypted.
const REGISTRY_SEARCHES: &[&str] = &[
    "crons::crons_by_metadata",
    "crons::hostile_texts_of_crons_survive",
    "crons::tenants_are_apart_in_crons",
    "registry::assistants_by_graph_and_metadata",
    "registry::hostile_texts_of_assistants_survive",
    "registry::hostile_texts_of_runs_survive",
    "registry::runs_are_filtered_before_they_are_paged",
    "registry::runs_by_metadata_as_the_model",
    "registry::tenants_are_apart_in_runs",
];

#[test]
fn the_rules_of_a_registry_hold_with_every_field_encrypted_apart_from_searches() {
    let make = async || {
        let keys = encryption(Arc::new(MemoryStore::new()));
        EncryptedRegistry::new(Arc::new(MemoryRegistry::new()), keys)
    };
    let report = block_on(registry(make));
    assert_but(&report, REGISTRY_SEARCHES);
    for (clause, why) in &report.failed {
        assert!(why.contains("cannot be searched"), "{clause}: {why}");
    }
}

#[test]
fn the_rules_of_a_node_cache_hold_on_sqlite() {
    let files = Files::new();
    let make = async || {
        let db = files.next();
        let keys = encryption(Arc::new(db.clone()));
        EncryptedNodeCache::new(Arc::new(db), keys)
    };
    block_on(node_cache(make)).assert();
}
