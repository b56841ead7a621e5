//! The suite that every checkpointer and every store is held to.

use superstep_conformance::{budgets, checkpointer, store};

use crate::kit::Schema;

/// A schema takes a while to make, so one is emptied for every clause.
async fn emptied(schema: &Schema) -> superstep_postgres::Postgres {
    let postgres = schema.connect().await;
    let client = schema.client().await;
    let tables = [
        "thread",
        "log",
        "snapshot",
        "record",
        "interrupt",
        "listing",
        "term",
        "item",
    ];
    let sql = tables.map(|table| format!("DELETE FROM {table};")).concat();
    client.batch_execute(&sql).await.unwrap();
    postgres
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_a_checkpointer_hold() {
    let schema = Schema::new();
    checkpointer(async || emptied(&schema).await).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_a_store_hold() {
    let schema = Schema::new();
    store(async || emptied(&schema).await).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_budgets_hold() {
    let schema = Schema::new();
    budgets(async || emptied(&schema).await).await.assert();
}
