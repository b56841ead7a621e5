//! Reports of how much threads take, which may last longer than other requests.

use superstep_core::checkpoint::{Checkpointer, SizeQuery};

use crate::kit::{db, wait_for_waiting};

#[tokio::test]
async fn a_report_whose_caller_is_gone_is_cancelled() {
    let db = db().await;
    let other = db.schema.client().await;
    let lock = "BEGIN; LOCK TABLE log IN ACCESS EXCLUSIVE MODE";
    other.batch_execute(lock).await.unwrap();
    let query = SizeQuery::default();
    let report = db.postgres.sizes(&query);
    // Drops the report, which waits for the lock.
    tokio::select! {
        ended = report => panic!("the table is locked, and still: {ended:?}"),
        () = wait_for_waiting(&db, 1) => {}
    }
    wait_for_waiting(&db, 0).await;
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(db.postgres.sizes(&query).await.unwrap(), []);
}
