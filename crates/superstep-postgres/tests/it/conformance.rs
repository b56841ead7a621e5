//! The suites that every checkpointer, store, cache and registry is held to, and the one that stores in SQL databases share.

use superstep_conformance::{checkpointer, node_cache, registry, sql, store};

use crate::kit::{Schema, db};

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
        "cache",
        "run",
        "assistant",
        "cron",
        "delivery",
        "api_key",
        "request_key",
        "audit",
        "audit_head",
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
async fn the_rules_of_a_node_cache_hold() {
    let schema = Schema::new();
    node_cache(async || emptied(&schema).await).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_of_a_registry_hold() {
    let schema = Schema::new();
    registry(async || emptied(&schema).await).await.assert();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stores_in_sql_share_holds() {
    sql(async || db().await).await.assert();
}
