use superstep_core::checkpoint::{Commit, Head, Listing, Status};
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp};
use tokio_postgres::{Client, NoTls};

use super::*;
use crate::place::Place;
use crate::{Options, Postgres};

fn step() -> Commit {
    let head = |seq| Head {
        epoch: Epoch(1),
        seq: Seq(seq),
        status: Status::Running,
        ..Head::default()
    };
    Commit {
        thread: ThreadId::new("a").unwrap(),
        expect: head(1),
        head: head(2),
        at: Timestamp(0),
        entry: Some(vec![0]),
        snapshot: None,
        asked: Vec::new(),
        closed: Vec::new(),
        released: Vec::new(),
        listing: None,
        lease: None,
    }
}

fn sql(commit: &Commit, kind: Kind) -> String {
    let sql = statement(&Values::of(commit, kind, 7), commit, kind).0;
    Place::unnamed(0).address(&sql) + " FROM head"
}

#[test]
fn a_superstep_is_two_parts() {
    let sql = sql(&step(), Kind::of(&step()));
    assert_eq!(Kind::of(&step()), Kind::Step);
    assert_eq!(sql.matches(" AS (").count(), 2);
    assert!(sql.contains("$11::bytea") && !sql.contains("$12"));
}

#[test]
fn what_a_commit_carries_is_in_its_one_statement() {
    let full = Commit {
        snapshot: Some(vec![1]),
        asked: vec![AskedRow {
            id: InterruptId::from_bytes([1; 16]),
            task: TaskId::from_bytes([1; 16]),
            deadline: None,
            body: vec![2],
        }],
        closed: vec![InterruptId::from_bytes([2; 16])],
        listing: Some(Listing {
            graph: "g".into(),
            metadata: None,
            values: None,
        }),
        ..step()
    };
    let sql = sql(&full, Kind::Move);
    for table in ["thread", "log", "snapshot", "interrupt", "listing", "term"] {
        assert!(sql.contains(&format!(" {table} ")), "{table}");
    }
}

/// Checks that a planned statement still reads only one partition.
#[tokio::test]
async fn a_commit_touches_one_partition_of_the_threads() {
    let schema = format!("test_plan_{}", std::process::id());
    let mut options = Options::default();
    options.schema.clone_from(&schema);
    Postgres::connect_with(&superstep_conformance::services::url("postgres"), options)
        .await
        .unwrap();
    let (client, connection) =
        tokio_postgres::connect(&superstep_conformance::services::url("postgres"), NoTls)
            .await
            .unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);

    let plan = plan_of_a_step(&client, &schema).await;
    client
        .batch_execute(&format!(
            "SET client_min_messages = error; DROP SCHEMA {schema} CASCADE"
        ))
        .await
        .unwrap();
    assert!(plan.contains("Subplans Removed: 3"), "{plan}");
    assert_eq!(
        plan.matches("Index Scan using thread_").count(),
        1,
        "{plan}"
    );
    assert!(!plan.contains("Seq Scan"), "{plan}");
}

async fn plan_of_a_step(client: &Client, schema: &str) -> String {
    let prepare = format!(
        "SET search_path TO {schema}; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
         PREPARE step AS {}",
        sql(&step(), Kind::Step)
    );
    client.batch_execute(&prepare).await.unwrap();
    let explain = r"EXPLAIN EXECUTE step('', 'a', 1, 2, 0, 0, 1::int2, 1, 1, 7, '\x00')";
    let rows = client.simple_query(explain).await.unwrap();
    let lines = rows.iter().filter_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}
