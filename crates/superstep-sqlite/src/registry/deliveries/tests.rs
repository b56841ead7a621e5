use super::*;
use crate::schema;

/// Ten thousand deliveries that were confirmed, of a thousand runs.
const DELIVERED: &str = "INSERT INTO delivery (tenant, id, run, thread, status, attempts, due, at, updated, address, event,
         error, body)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)
     SELECT 0, randomblob(16), unhex(printf('%032d', i % 1000)), 'a', 1, 1, i, i, i, '', '', '', '{}' FROM n";

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

#[test]
fn the_outbox_reads_no_delivery_that_was_confirmed() {
    let connection = schema::open_in_memory().unwrap();
    assert_eq!(connection.execute(DELIVERED, []).unwrap(), 10_000);
    let (zero, run) = (0_i64, [0_u8; 16]);
    // Before and after SQLite has counted the rows.
    for statistics in ["", "ANALYZE"] {
        connection.execute_batch(statistics).unwrap();
        for (sql, params, indexes) in [
            (
                TAKEABLE,
                &[&zero as &dyn ToSql, &zero, &"[]"] as &[&dyn ToSql],
                &["delivery_due", "delivery_run"] as &[&str],
            ),
            (NEXT_DUE, &[], &["delivery_due", "delivery_run"]),
            (SWEEP, &[&zero, &zero], &["delivery_delivered"]),
            (LISTED, &[&zero, &zero, &zero, &"[]"], &["delivery_tenant"]),
            (
                LISTED_OF_RUN,
                &[&zero, &zero, &zero, &"[]", &run],
                &["delivery_run"],
            ),
        ] {
            let plan = plan(&connection, sql, params);
            for index in indexes {
                let is_used = plan
                    .iter()
                    .any(|line| line.contains(&format!("INDEX {index}")));
                assert!(is_used, "{index}: {plan:?}");
            }
            let is_sorted = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            assert!(!is_sorted, "{plan:?}");
        }
    }
    let taken = take(&connection, Timestamp(i64::MAX), Timestamp(0), 10, &[]).unwrap();
    assert!(taken.is_empty());
    assert_eq!(next_due(&connection).unwrap(), None);
}
