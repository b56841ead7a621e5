//! The owner of the queue of runs: one of all processes that share a schema.

use std::time::Duration;

use superstep_postgres::{Postgres, QueueOwner};

use crate::kit::{Db, db};

/// Tries until the server has noticed that the former owner is gone.
async fn own_soon(postgres: &Postgres) -> QueueOwner {
    for _ in 0..4_000 {
        if let Some(owner) = postgres.try_own_queue().await.unwrap() {
            return owner;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the queue still has an owner");
}

async fn kill_connections(db: &Db) {
    let client = db.schema.client().await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    client.query(sql, &[&db.schema.name]).await.unwrap();
}

#[tokio::test]
async fn one_process_owns_the_queue_until_it_gives_it_up() {
    let db = db().await;
    let other = db.schema.connect().await;
    let owner = db.try_own_queue().await.unwrap().unwrap();
    assert!(!owner.is_lost());
    assert!(other.try_own_queue().await.unwrap().is_none());
    // A process that asks again is not the owner twice.
    assert!(db.try_own_queue().await.unwrap().is_none());
    drop(owner);
    let owner = own_soon(&other).await;
    assert!(!owner.is_lost());
    assert!(db.try_own_queue().await.unwrap().is_none());
}

#[tokio::test]
async fn of_racing_processes_one_owns_the_queue() {
    let db = db().await;
    let other = db.schema.connect().await;
    let (a, b, c, d) = tokio::join!(
        db.try_own_queue(),
        other.try_own_queue(),
        db.try_own_queue(),
        other.try_own_queue()
    );
    let owners = [a, b, c, d].map(|owner| owner.unwrap());
    assert_eq!(owners.iter().flatten().count(), 1, "{owners:?}");
}

#[tokio::test]
async fn an_owner_whose_connection_ended_has_lost_the_queue() {
    let db = db().await;
    let other = db.schema.connect().await;
    let owner = db.try_own_queue().await.unwrap().unwrap();
    kill_connections(&db).await;
    let next = own_soon(&other).await;
    for _ in 0..4_000 {
        if owner.is_lost() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(owner.is_lost());
    // What the former owner drops does not touch the next one.
    drop(owner);
    assert!(!next.is_lost());
    assert!(db.try_own_queue().await.unwrap().is_none());
}

#[tokio::test]
async fn the_queue_is_kept_while_connections_end_and_lost_to_another_process() {
    let db = db().await;
    let other = db.schema.connect().await;
    let owner = db.try_own_queue().await.unwrap().unwrap();
    let keeper = db.schema.connect().await;
    let keeps = keeper.keep_queue(owner);
    tokio::pin!(keeps);
    kill_connections(&db).await;
    let some_time = Duration::from_secs(2);
    let kept = tokio::time::timeout(some_time, &mut keeps).await;
    assert!(kept.is_err(), "the queue was given up");
    assert!(other.try_own_queue().await.unwrap().is_none());
    // It is not looked after now, so the other process is first.
    kill_connections(&db).await;
    let _owner = own_soon(&other).await;
    let lost = tokio::time::timeout(Duration::from_secs(20), keeps).await;
    assert!(lost.is_ok(), "the loss was not noticed");
}

#[tokio::test]
async fn each_schema_has_a_queue_of_its_own() {
    let (one, two) = (db().await, db().await);
    let first = one.try_own_queue().await.unwrap().unwrap();
    let second = two.try_own_queue().await.unwrap().unwrap();
    assert!(!first.is_lost() && !second.is_lost());
}
