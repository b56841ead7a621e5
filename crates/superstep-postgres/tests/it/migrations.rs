//! How a database comes to have its tables.

use serde_json::json;
use superstep_conformance::sample::Owner;
use superstep_core::Timestamp;
use superstep_core::checkpoint::Checkpointer;
use superstep_core::error::CheckpointError;
use superstep_core::store::{Namespace, PutItem, Store};
use superstep_postgres::Postgres;
use tokio::task::JoinSet;

use crate::kit::Schema;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_may_start_at_once() {
    for _ in 0..3 {
        let schema = Schema::new();
        let mut starts = JoinSet::new();
        for n in 0..5 {
            let (url, options) = (schema.named_url(), schema.options());
            starts.spawn(async move {
                let postgres = Postgres::connect_with(&url, options).await.unwrap();
                Owner::started(&postgres, &format!("t{n}")).await.unwrap();
            });
        }
        while let Some(ended) = starts.join_next().await {
            ended.unwrap();
        }
        let found = schema.connect().await.unfinished(None, 10).await.unwrap();
        assert_eq!(found.len(), 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_killed_in_the_middle_leaves_the_schema_before() {
    let schema = Schema::new();
    let url = schema.named_url();
    for wait_ms in [5, 15, 30, 60, 90] {
        let started = tokio::time::timeout(
            std::time::Duration::from_millis(wait_ms),
            Postgres::connect_with(&url, schema.options()),
        );
        // Dropping the future drops its connection, as a process that dies would.
        let _ = started.await;
    }
    let postgres = schema.connect().await;
    Owner::started(&postgres, "a").await.unwrap();
    let client = schema.client().await;
    let row = client
        .query_one("SELECT version, partitions FROM meta", &[])
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (13, 5));
}

fn item(n: usize) -> PutItem {
    PutItem {
        namespace: Namespace::new(["apis"]).unwrap(),
        key: format!("api-{n}"),
        value: json!({ "origin": format!("https://api-{n}.example") }),
        ttl: None,
    }
}

#[tokio::test]
async fn items_of_an_older_schema_get_checksums_and_stay_readable() {
    let schema = Schema::new();
    let postgres = schema.connect().await;
    // More than are filled in at a time.
    for n in 0..1_100 {
        Store::put(&postgres, &item(n), Timestamp(1)).await.unwrap();
    }
    drop(postgres);
    let client = schema.client().await;
    client
        .batch_execute(
            "DROP TRIGGER item_unsealed ON item; DROP FUNCTION item_unsealed;
             ALTER TABLE item DROP COLUMN checksum; ALTER TABLE cache DROP COLUMN checksum;
             ALTER TABLE thread DROP COLUMN lease;
             DROP FUNCTION create_run(text, uuid, text, uuid, bytea, bigint, bigint, bytea, bytea, bytea, boolean);
             DROP FUNCTION create_run(text, uuid, text, uuid, bytea, bigint, bigint, bytea, bytea, bytea, boolean, boolean);
             DROP FUNCTION take_runs(bigint, bigint);
             DROP FUNCTION take_runs(bigint, bigint, text[]);
             DROP TABLE run, assistant_version, assistant, cron;
             DROP TABLE delivery, api_key, request_key, audit, audit_head;
             DROP INDEX inbox_of_tenant;
             DROP INDEX listing_created;
             ALTER TABLE listing DROP COLUMN lifetime_ms, DROP COLUMN at_end;
             UPDATE meta SET version = 4",
        )
        .await
        .unwrap();
    let postgres = schema.connect().await;
    let sql = "SELECT count(*) FROM item WHERE checksum IS NULL";
    let without = client.query_one(sql, &[]).await.unwrap();
    assert_eq!(without.get::<_, i64>(0), 0);
    let found = Store::get(&postgres, &item(7).namespace, "api-7", Timestamp(2)).await;
    assert_eq!(found.unwrap().unwrap().value, item(7).value);
}

/// Workers are replaced one by one: one of the version before writes without checksums for a while.
#[tokio::test]
async fn an_item_that_an_older_worker_changes_is_not_taken_for_damaged() {
    let schema = Schema::new();
    let postgres = schema.connect().await;
    Store::put(&postgres, &item(1), Timestamp(1)).await.unwrap();
    let client = schema.client().await;
    client
        .batch_execute("UPDATE item SET value = '{\"by\":\"old\"}'")
        .await
        .unwrap();
    let namespace = item(1).namespace;
    let found = Store::get(&postgres, &namespace, "api-1", Timestamp(2)).await;
    let found = found.unwrap().unwrap().value;
    assert_eq!(found, json!({ "by": "old" }));
    // The next write of ours has a checksum again.
    let stored = postgres.put_if(Some(&found), &item(1), Timestamp(3)).await;
    assert!(stored.unwrap());
    let sql = "SELECT count(*) FROM item WHERE checksum IS NOT NULL";
    let with = client.query_one(sql, &[]).await.unwrap();
    assert_eq!(with.get::<_, i64>(0), 1);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let schema = Schema::new();
    schema.connect().await;
    let client = schema.client().await;
    client
        .batch_execute("UPDATE meta SET version = 99")
        .await
        .unwrap();
    let refused = Postgres::connect_with(&schema.named_url(), schema.options()).await;
    assert!(matches!(
        refused,
        Err(CheckpointError::NewerDatabase { found: 99, .. })
    ));
}

#[tokio::test]
async fn tables_of_another_program_are_refused() {
    for table in ["CREATE TABLE other ()", "CREATE TABLE meta (version text)"] {
        let schema = Schema::new();
        let client = schema.client().await;
        client
            .batch_execute(&format!("CREATE SCHEMA {}; {table}", schema.name))
            .await
            .unwrap();
        let refused = Postgres::connect_with(&schema.named_url(), schema.options()).await;
        assert!(matches!(refused, Err(CheckpointError::Unusable { .. })));
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
        let tables = client.query_one(tables, &[&schema.name]).await.unwrap();
        assert_eq!(tables.get::<_, i64>(0), 1);
    }
}

#[tokio::test]
async fn the_number_of_partitions_is_decided_once() {
    let schema = Schema::new();
    schema.connect().await;
    let mut options = schema.options();
    options.partitions = 7;
    let again = Postgres::connect_with(&schema.named_url(), options)
        .await
        .unwrap();
    Owner::started(&again, "a").await.unwrap();
    let client = schema.client().await;
    let sql = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'log'::regclass";
    let partitions: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(partitions, 5);
}
