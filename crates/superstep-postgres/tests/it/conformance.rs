//! The suite that every checkpointer and every store is held to.

use std::cell::RefCell;

use superstep_conformance::{checkpointer, store};

use crate::kit::Schema;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_a_checkpointer_hold() {
    let schemas = RefCell::new(Vec::new());
    let fresh = async || {
        let schema = Schema::new();
        let postgres = schema.connect().await;
        schemas.borrow_mut().push(schema);
        postgres
    };
    checkpointer(fresh).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_a_store_hold() {
    let schemas = RefCell::new(Vec::new());
    let fresh = async || {
        let schema = Schema::new();
        let postgres = schema.connect().await;
        schemas.borrow_mut().push(schema);
        postgres
    };
    store(fresh).await.assert();
}
