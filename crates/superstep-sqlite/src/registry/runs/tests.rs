use serde_json::json;

use super::*;
use crate::schema;

/// Ten thousand runs that have ended, on a hundred threads.
const ENDED: &str = "INSERT INTO run (tenant, id, thread, assistant, principal, status, attempts, created, updated, due,
         metadata, error, arguments, request)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)
     SELECT 0, randomblob(16), 'thread-' || (i % 100), zeroblob(16), '', 2, 1, i, i, i,
            '{}', 'null', '{}', x'00' FROM n";

fn database() -> Connection {
    let connection = schema::open_in_memory().unwrap();
    assert_eq!(connection.execute(ENDED, []).unwrap(), 10_000);
    connection
}

fn new_run(id: u8, thread: &str) -> NewRun {
    NewRun {
        id: RunId::from_bytes([id; 16]),
        thread: ThreadId::new(thread).unwrap(),
        assistant: AssistantId::from_bytes([0; 16]),
        principal: String::new(),
        request: vec![id],
        arguments: json!({}),
        metadata: json!({}),
        when_busy: WhenBusy::Enqueue,
        at: Timestamp(0),
        due: Timestamp(0),
    }
}

/// The lines of a statement's plan.
fn plan(connection: &Connection, sql: &str, params: &[&dyn ToSql]) -> Vec<String> {
    let mut explain = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    explain
        .query_map(params, |row| row.get(3))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap()
}

/// Asserts that a statement reads runs, and finds each of them in one of these ways.
fn assert_finds_by(ways: &[&str], connection: &Connection, sql: &str, params: &[&dyn ToSql]) {
    let plan = plan(connection, sql, params);
    let reads_runs = |line: &&String| {
        let mut words = line.split(' ');
        matches!(words.next(), Some("SCAN" | "SEARCH"))
            && matches!(words.next(), Some("run" | "r" | "a"))
    };
    let reads: Vec<&String> = plan.iter().filter(reads_runs).collect();
    assert!(!reads.is_empty(), "{plan:?}");
    for line in reads {
        let is_expected = ways.iter().any(|way| line.contains(way));
        assert!(is_expected, "`{line}` of {plan:?}");
    }
}

#[test]
fn the_queue_reads_no_run_that_has_ended() {
    let connection = database();
    for id in 1..=5 {
        create(&connection, &new_run(id, "thread-1")).unwrap();
    }
    let (due, active) = ("INDEX run_due", "INDEX run_active");
    let (zero, thread) = (0_i64, "thread-1");
    // Before and after SQLite has counted the rows.
    for statistics in ["", "ANALYZE"] {
        connection.execute_batch(statistics).unwrap();
        assert_finds_by(
            &[due, active],
            &connection,
            TAKEABLE,
            &[&zero, &zero, &"[]"],
        );
        assert_finds_by(&[active], &connection, ACTIVE, &[&zero, &thread]);
        assert_finds_by(&[due], &connection, NEXT_DUE, &[]);
        let by_number = "INTEGER PRIMARY KEY";
        assert_finds_by(&[active, by_number], &connection, RELEASE, &[&zero, &"[]"]);
    }
    let taken = take(&connection, Timestamp(0), 10, &[]).unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].request, [1]);
}

#[test]
fn a_list_is_read_from_the_index_that_has_its_order() {
    let connection = database();
    let thread = ThreadId::new("thread-1").unwrap();
    let by_thread = RunQuery {
        thread: Some(thread.clone()),
        ..RunQuery::default()
    };
    let by_id = RunQuery {
        ids: Some(vec![RunId::from_bytes([1; 16])]),
        ..by_thread.clone()
    };
    let active = RunQuery {
        statuses: vec![RunStatus::Pending, RunStatus::Running],
        ..by_thread.clone()
    };
    for (query, index) in [
        (RunQuery::default(), "INDEX run_tenant"),
        (by_thread, "INDEX run_thread"),
        (by_id, "INDEX run_id"),
        (active, "INDEX run_active"),
    ] {
        let conditions = Conditions::of(&query).unwrap();
        let zero = 0_i64;
        let mut params: Vec<&dyn ToSql> = vec![&zero, &zero, &zero];
        let sql = conditions.sql(&mut params);
        assert_finds_by(&[index], &connection, &sql, &params);
        let is_sorted = plan(&connection, &sql, &params)
            .iter()
            .any(|line| line.contains("TEMP B-TREE"));
        let is_in_order = matches!(index, "INDEX run_tenant" | "INDEX run_thread");
        assert_eq!(is_sorted, !is_in_order, "{sql}");
    }
}
