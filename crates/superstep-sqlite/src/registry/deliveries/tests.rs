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
                &[&zero as &dyn ToSql, &zero] as &[&dyn ToSql],
                &["delivery_due", "delivery_run"] as &[&str],
            ),
            (
                TAKEABLE_OF_TENANT,
                &[&zero, &zero, &zero],
                &["delivery_waiting", "delivery_run"],
            ),
            (NEXT_TENANT, &[&zero], &["delivery_waiting"]),
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

/// A tenant with a hundred thousand deliveries that are due, and another one with a single delivery that is due after them.
const WAITING: &str = "INSERT INTO tenant (id, name) VALUES (1, 'acme'), (2, 'globex');
     INSERT INTO delivery (tenant, id, run, thread, status, attempts, due, at, updated, address, event, error, body)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)
     SELECT 1, randomblob(16), randomblob(16), 'a', 0, 0, i, i, i, '', '', '', '{}' FROM n;
     INSERT INTO delivery (tenant, id, run, thread, status, attempts, due, at, updated, address, event, error, body)
     VALUES (2, randomblob(16), randomblob(16), 'b', 0, 0, 200000, 1, 1, '', '', '', '{}');";

#[test]
fn the_deliveries_of_a_skipped_tenant_are_not_read() {
    let connection = schema::open_in_memory().unwrap();
    connection.execute_batch(WAITING).unwrap();
    let now = Timestamp(300_000);
    let again = Timestamp(400_000);
    let skipped = ["acme".to_owned(), "nobody".to_owned()];
    let taken = take(&connection, now, again, 16, &skipped).unwrap();
    let tenants: Vec<_> = taken
        .iter()
        .map(|taken| taken.new.thread.tenant())
        .collect();
    assert_eq!(tenants, ["globex"]);

    // What it takes SQLite to find the tenants, and the deliveries of one: it reads none of the others.
    let mut statement = connection.prepare(NEXT_TENANT).unwrap();
    let next = |statement: &mut rusqlite::Statement<'_>, after: i64| {
        let next = statement.query_row([after], |row| row.get::<_, i64>(0));
        next.optional().unwrap()
    };
    assert_eq!(next(&mut statement, -1), Some(1));
    assert_eq!(next(&mut statement, 1), Some(2));
    assert_eq!(next(&mut statement, 2), None);
    let steps = statement.get_status(rusqlite::StatementStatus::VmStep);
    assert!(steps < 200, "{steps}");
}
