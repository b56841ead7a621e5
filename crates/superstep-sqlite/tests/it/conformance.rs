//! The suite that every checkpointer and every store is held to.

use superstep_conformance::{block_on, budgets, checkpointer, store};
use superstep_sqlite::Sqlite;

#[test]
fn the_rules_of_a_checkpointer_hold() {
    let dir = tempfile::tempdir().unwrap();
    let files = std::cell::Cell::new(0);
    let fresh = async || {
        files.set(files.get() + 1);
        Sqlite::open(dir.path().join(files.get().to_string())).unwrap()
    };
    block_on(checkpointer(fresh)).assert();
}

#[test]
fn the_rules_of_a_checkpointer_hold_in_memory() {
    block_on(checkpointer(async || Sqlite::in_memory().unwrap())).assert();
}

#[test]
fn the_rules_of_a_store_hold() {
    let dir = tempfile::tempdir().unwrap();
    let files = std::cell::Cell::new(0);
    let fresh = async || {
        files.set(files.get() + 1);
        Sqlite::open(dir.path().join(files.get().to_string())).unwrap()
    };
    block_on(store(fresh)).assert();
}

#[test]
fn the_rules_of_budgets_hold() {
    let dir = tempfile::tempdir().unwrap();
    let files = std::cell::Cell::new(0);
    let fresh = async || {
        files.set(files.get() + 1);
        Sqlite::open(dir.path().join(files.get().to_string())).unwrap()
    };
    block_on(budgets(fresh)).assert();
}

#[test]
fn the_rules_of_budgets_hold_in_memory() {
    block_on(budgets(async || Sqlite::in_memory().unwrap())).assert();
}
