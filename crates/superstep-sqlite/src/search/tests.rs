use serde_json::json;
use superstep_core::checkpoint::{NewThread, Page};

use super::*;
use crate::{admin, schema};

/// Five thousand threads of one tenant: one in a thousand is rare, one in two is not, all are common.
fn database() -> Connection {
    let connection = schema::open_in_memory().unwrap();
    connection.execute_batch("BEGIN").unwrap();
    for n in 0..5_000 {
        let id = ThreadId::new(&format!("thread-{n:04}")).unwrap();
        let metadata = json!({ "n": n % 1_000, "common": true, "is_even": n % 2 == 0 });
        let new = NewThread {
            graph: "graph".to_owned(),
            metadata: serde_json::from_value(metadata).unwrap(),
            lifetime: None,
            at: Timestamp(n % 7),
        };
        assert!(admin::create(&connection, &id, &new).unwrap());
    }
    connection.execute_batch("COMMIT").unwrap();
    connection
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut explain = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    explain
        .query_map([0, 0], |row| row.get(3))
        .unwrap()
        .collect::<rusqlite::Result<_>>()
        .unwrap()
}

#[test]
fn lists_by_time_and_by_name_are_read_from_their_indexes() {
    let connection = database();
    for statistics in ["", "ANALYZE"] {
        connection.execute_batch(statistics).unwrap();
        for is_ascending in [false, true] {
            for (sort, index) in [
                (ThreadSort::Updated, "INDEX line_updated"),
                (ThreadSort::Created, "INDEX line_created"),
                (ThreadSort::Id, "INDEX sqlite_autoindex_thread_1"),
            ] {
                let plan = plan(&connection, keys(sort, is_ascending));
                assert!(plan[0].contains(index), "{plan:?}");
                // At most the threads of one time are sorted.
                let sorts_all = |line: &String| line == "USE TEMP B-TREE FOR ORDER BY";
                assert!(!plan.iter().any(sorts_all), "{plan:?}");
            }
        }
    }
}

#[test]
fn every_way_to_search_finds_what_a_scan_of_all_rows_finds() {
    let connection = database();
    let all = ThreadQuery {
        page: Page {
            limit: 1_000,
            offset: 0,
        },
        ..ThreadQuery::default()
    };
    let rare = ThreadQuery {
        metadata_contains: Some(json!({ "n": 7.0, "common": true })),
        ..all.clone()
    };
    let common = ThreadQuery {
        metadata_contains: Some(json!({ "common": true })),
        ..all.clone()
    };
    let even = ThreadQuery {
        metadata_contains: Some(json!({ "is_even": true, "common": true })),
        page: Page {
            limit: 20,
            offset: 2_490,
        },
        ..all.clone()
    };
    let named = ThreadQuery {
        ids: Some(vec![ThreadId::new("thread-0007").unwrap()]),
        ..common.clone()
    };
    let idle = ThreadQuery {
        statuses: vec![Status::Idle, Status::Failed],
        ..all.clone()
    };
    let failed = ThreadQuery {
        statuses: vec![Status::Failed],
        ..all.clone()
    };
    for (query, few, counted) in [
        (all, None, 5_000),
        (common, None, 5_000),
        (rare, Some(5), 5),
        (even, None, 2_500),
        (named, Some(1), 1),
        (idle, None, 5_000),
        (failed, Some(0), 0),
    ] {
        let found = candidates(&connection, 0, &query).unwrap();
        assert_eq!(found.map(|found| found.len()), few, "{query:?}");
        assert_eq!(count(&connection, &query).unwrap(), counted, "{query:?}");
        let mut rows = RowReader::new(&connection, 0, &query).unwrap();
        let rows = rows.matching((1..=5_000).collect()).unwrap();
        assert_eq!(rows.len() as u64, counted, "{query:?}");
        for sort in [
            ThreadSort::Updated,
            ThreadSort::Created,
            ThreadSort::Id,
            ThreadSort::Status,
        ] {
            for is_ascending in [false, true] {
                let query = ThreadQuery {
                    sort,
                    is_ascending,
                    ..query.clone()
                };
                let wanted = query.page_of(rows.clone());
                assert_eq!(threads(&connection, &query).unwrap(), wanted, "{query:?}");
            }
        }
    }
}

#[test]
fn a_scan_of_a_condition_reads_no_other_threads() {
    let connection = database();
    let even = ThreadQuery {
        metadata_contains: Some(json!({ "is_even": true })),
        ..ThreadQuery::default()
    };
    let plan = plan_of_terms(&connection, &even);
    assert!(!plan.iter().any(|line| line.contains("SCAN l")), "{plan:?}");
    assert!(!plan.iter().any(|line| line.contains("SCAN t")), "{plan:?}");
    assert!(
        plan.iter().any(|line| line.contains("SEARCH term")),
        "{plan:?}"
    );
}

fn plan_of_terms(connection: &Connection, query: &ThreadQuery) -> Vec<String> {
    let sql = format!("EXPLAIN QUERY PLAN {}", keys_of_terms(query));
    let mut explain = connection.prepare(&sql).unwrap();
    let lines = explain.query_map((0, 0, "[]"), |row| row.get(3)).unwrap();
    lines.collect::<rusqlite::Result<_>>().unwrap()
}
