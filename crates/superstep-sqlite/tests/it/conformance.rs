//! The suites that every checkpointer, store, registry and cache is held to, and the one that stores in SQL databases share.

use std::cell::Cell;

use superstep_conformance::{block_on, checkpointer, node_cache, registry, sql, store};
use superstep_sqlite::Sqlite;
use tempfile::TempDir;

use crate::kit::db;

/// Where each clause finds a file of its own.
struct Files {
    dir: TempDir,
    made: Cell<u32>,
}

impl Files {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            made: Cell::new(0),
        }
    }

    fn next(&self) -> Sqlite {
        self.made.set(self.made.get() + 1);
        Sqlite::open(self.dir.path().join(self.made.get().to_string())).unwrap()
    }
}

#[test]
fn the_rules_of_a_checkpointer_hold() {
    let files = Files::new();
    block_on(checkpointer(async || files.next())).assert();
}

#[test]
fn the_rules_of_a_checkpointer_hold_in_memory() {
    block_on(checkpointer(async || Sqlite::in_memory().unwrap())).assert();
}

#[test]
fn the_rules_of_a_store_hold() {
    let files = Files::new();
    block_on(store(async || files.next())).assert();
}

#[test]
fn the_rules_of_a_registry_hold() {
    let files = Files::new();
    block_on(registry(async || files.next())).assert();
}

#[test]
fn the_rules_of_a_registry_hold_in_memory() {
    block_on(registry(async || Sqlite::in_memory().unwrap())).assert();
}

#[test]
fn the_rules_of_a_node_cache_hold() {
    let files = Files::new();
    block_on(node_cache(async || files.next())).assert();
}

#[test]
fn what_stores_in_sql_share_holds() {
    block_on(sql(async || db())).assert();
}
