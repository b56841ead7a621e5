use std::collections::BTreeMap;

use superstep_core::checkpoint::{Commit, Head, Listing, Released, Status};
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

/// The key of a statement must determine its text and its number of parameters, or a commit would run another's statement.
#[test]
fn the_key_of_a_statement_stands_for_one_text() {
    let released = |which| Released {
        task: TaskId::from_bytes([3; 16]),
        which,
    };
    let mut seen: BTreeMap<u16, (String, usize)> = BTreeMap::new();
    for kind in [Kind::Make, Kind::Step, Kind::Move, Kind::Claim] {
        for bits in 0_u8..128 {
            let has = |bit: u8| bits >> bit & 1 == 1;
            let mut commit = step();
            commit.entry = has(0).then(|| vec![0]);
            commit.snapshot = has(1).then(|| vec![1]);
            let question = AskedRow {
                id: InterruptId::from_bytes([1; 16]),
                task: TaskId::from_bytes([1; 16]),
                deadline: None,
                body: vec![2],
            };
            commit.asked.extend(has(2).then_some(question));
            let closed = has(3).then(|| InterruptId::from_bytes([2; 16]));
            commit.closed.extend(closed);
            let all = has(4).then(|| released(ReleasedRecords::All));
            let result = has(5).then(|| released(ReleasedRecords::Result));
            commit.released.extend(all.into_iter().chain(result));
            commit.listing = has(6).then(|| Listing {
                graph: "g".into(),
                metadata: None,
                values: None,
            });
            let values = Values::of(&commit, kind, 7);
            let (sql, with_text) = statement(&values, &commit, kind);
            let count = params(&values, &commit, kind).len();
            assert_eq!(count, with_text.len());
            let before = seen.insert(parts(&values, &commit, kind), (sql, count));
            assert_eq!(before, None, "two statements have the same key");
        }
    }
    // More of the same does not change the text.
    let mut commit = step();
    commit.released = vec![released(ReleasedRecords::All); 3];
    let values = Values::of(&commit, Kind::Step, 8);
    let known = &seen[&parts(&values, &commit, Kind::Step)];
    assert_eq!(known.0, statement(&values, &commit, Kind::Step).0);
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
