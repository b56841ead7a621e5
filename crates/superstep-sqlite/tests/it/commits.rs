//! The group that commits share, and those who wait for it.

use std::time::Duration;

use superstep_conformance::sample::Owner;
use superstep_core::Seq;
use superstep_core::checkpoint::{Checkpointer, Commit, Head};
use superstep_core::error::CheckpointError;
use superstep_sqlite::{Options, Sqlite};

use crate::kit::db;

#[tokio::test]
async fn a_group_that_cannot_be_committed_fails_as_a_whole_and_may_be_tried_again() {
    let db = db();
    let owners = [
        Owner::started(&*db, "a").await.unwrap(),
        Owner::started(&*db, "b").await.unwrap(),
    ];
    let mut options = Options::default();
    options.busy_timeout = Duration::from_millis(20);
    let impatient = Sqlite::open_with(db.path(), options).unwrap();
    let other = rusqlite::Connection::open(db.path()).unwrap();

    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sound = owners[0].step();
    let stale = Commit {
        expect: Head::default(),
        ..owners[1].step()
    };
    let (a, b) = tokio::join!(impatient.save(&sound), impatient.save(&stale));
    assert!(a.unwrap_err().is_transient() && b.unwrap_err().is_transient());

    other.execute_batch("ROLLBACK").unwrap();
    impatient.save(&sound).await.unwrap();
    assert!(matches!(
        impatient.save(&stale).await,
        Err(CheckpointError::Fenced { .. })
    ));
}

/// The store remembers the numbers of the threads that it writes, and a forgotten thread's number goes to another one.
#[tokio::test]
async fn the_owner_of_a_forgotten_thread_does_not_write_the_thread_that_has_its_number() {
    let db = db();
    let former = Owner::started(&*db, "a").await.unwrap();
    db.delete(&former.thread).await.unwrap();
    db.forget(&former.thread).await.unwrap();
    // At the epoch and the entry at which the forgotten one was.
    let heir = Owner::started(&*db, "b").await.unwrap();

    let step = db.save(&former.step()).await;
    assert!(matches!(step, Err(CheckpointError::Fenced { .. })));
    let record = db.record(&former.record_of_bytes("key", b"record")).await;
    assert!(matches!(record, Err(CheckpointError::Fenced { .. })));

    let loaded = db.load(&heir.thread).await.unwrap().unwrap();
    assert_eq!((loaded.history.entries.len(), loaded.records.len()), (1, 0));
    db.save(&heir.step()).await.unwrap();
}

/// Only a thread of the store waits for another process; whatever else is on the executor goes on.
#[tokio::test]
async fn an_executor_does_not_wait_for_another_process() {
    let db = db();
    let owner = Owner::started(&*db, "a").await.unwrap();
    let other = rusqlite::Connection::open(db.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let step = owner.step();
    let mut save = std::pin::pin!(db.save(&step));
    let mut ticks = 0;
    while ticks < 20 {
        tokio::select! {
            biased;
            saved = &mut save => panic!("{saved:?} although another process writes"),
            () = tokio::time::sleep(Duration::from_millis(5)) => ticks += 1,
        }
    }
    other.execute_batch("ROLLBACK").unwrap();
    save.await.unwrap();
}

/// What was asked is done, also if the asker goes away before it could do it itself.
#[tokio::test]
async fn a_commit_whose_asker_went_away_is_made() {
    let db = db();
    let owner = Owner::started(&*db, "a").await.unwrap();
    // Somebody else asks too, so the asker waits for others before it serves.
    Owner::started(&*db, "b").await.unwrap();
    let step = owner.step();
    let mut save = Box::pin(db.save(&step));
    let first = std::future::poll_fn(|cx| std::task::Poll::Ready(save.as_mut().poll(cx))).await;
    assert!(first.is_pending());
    drop(save);
    while db.entries(&owner.thread, Seq(0), 10).await.unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
