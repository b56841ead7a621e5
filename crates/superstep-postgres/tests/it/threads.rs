//! Copies, pruning, expiry.

use superstep_core::checkpoint::format::{Body, Entry, Snapshot};
use superstep_core::checkpoint::{Checkpointer, Status, ThreadQuery};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq, Timestamp};

use crate::kit::{Owner, db, thread};

#[tokio::test]
async fn a_copy_has_the_same_content_under_its_own_name() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    owner.save_steps(&db, 299).await;
    db.copy(&owner.thread, Some(Seq(200)), &thread("b"))
        .await
        .unwrap();

    let (from, to) = (owner.thread.clone(), thread("b"));
    let originals = db.entries(&from, Seq(0), 200).await.unwrap();
    let copies = db.entries(&to, Seq(0), 1_000).await.unwrap();
    assert_eq!(copies.len(), 200);
    for (original, copy) in originals.iter().zip(&copies) {
        let original = Entry::unseal(&original.body, &from, original.seq).unwrap();
        assert_eq!(Entry::unseal(&copy.body, &to, copy.seq).unwrap(), original);
    }
    let loaded = db.load(&to).await.unwrap().unwrap();
    assert_eq!(
        (loaded.head.epoch, loaded.head.seq, loaded.head.status),
        (Epoch(1), Seq(200), Status::Idle)
    );
    let snapshot = loaded.history.snapshot.unwrap();
    assert_eq!(snapshot.seq, Seq(198));
    Snapshot::unseal(&snapshot.body, &to, snapshot.seq).unwrap();
    let listed = db.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(listed.iter().filter(|row| row.graph == "graph").count(), 2);
}

#[tokio::test]
async fn a_copy_is_nobodys_commit() {
    let db = db().await;
    let owner = Owner::started(&db, "a").await;
    db.copy(&owner.thread, None, &thread("b")).await.unwrap();
    let exists = db.copy(&owner.thread, None, &thread("b")).await;
    assert!(matches!(exists, Err(CheckpointError::ThreadExists { .. })));

    // The copy's first entry is what a start of `b` would write, and yet that start must not believe it did.
    let start = Owner::new(thread("b")).start();
    assert!(matches!(
        db.save(&start).await,
        Err(CheckpointError::Fenced { .. })
    ));

    db.delete(&thread("b")).await.unwrap();
    db.copy(&owner.thread, None, &thread("b")).await.unwrap();
    assert_eq!(
        db.load(&thread("b")).await.unwrap().unwrap().head.epoch,
        Epoch(3)
    );
}

#[tokio::test]
async fn a_copy_of_what_is_not_there_is_refused() {
    let db = db().await;
    let owner = Owner::started(&db, "a").await;
    let refused = db.copy(&owner.thread, Some(Seq(2)), &thread("b")).await;
    assert!(matches!(
        refused,
        Err(CheckpointError::NoCheckpoint { seq: Seq(2), .. })
    ));
    let refused = db.copy(&thread("x"), None, &thread("b")).await;
    assert!(matches!(refused, Err(CheckpointError::NoThread { .. })));
    assert!(db.load(&thread("b")).await.unwrap().is_none());
}

#[tokio::test]
async fn what_pruning_keeps_can_be_loaded() {
    let db = db().await;
    let mut owner = Owner::started(&db, "a").await;
    assert_eq!(db.prune(&owner.thread, 1).await.unwrap(), 0);
    owner.save_steps(&db, 10).await;
    let before: Vec<_> = load_all(&db, &owner, 7..=11).await;

    // The five newest begin at 7, and what they are read from is the snapshot at 6.
    assert_eq!(db.prune(&owner.thread, 5).await.unwrap(), 5);
    assert_eq!(load_all(&db, &owner, 7..=11).await, before);
    db.load_at(&owner.thread, Seq(6)).await.unwrap();
    for gone in [0, 1, 5, 12, u64::MAX] {
        let refused = db.load_at(&owner.thread, Seq(gone)).await;
        assert!(matches!(refused, Err(CheckpointError::NoCheckpoint { .. })));
    }
    assert_eq!(db.prune(&owner.thread, 5).await.unwrap(), 0);
    assert_eq!(
        db.entries(&owner.thread, Seq(u64::MAX), 10).await.unwrap(),
        []
    );
}

async fn load_all(
    db: &superstep_postgres::Postgres,
    owner: &Owner,
    seqs: std::ops::RangeInclusive<u64>,
) -> Vec<String> {
    let mut loaded = Vec::new();
    for seq in seqs {
        loaded.push(format!(
            "{:?}",
            db.load_at(&owner.thread, Seq(seq)).await.unwrap()
        ));
    }
    loaded
}

#[tokio::test]
async fn threads_expire_unless_they_run() {
    let db = db().await;
    for (at, name) in [(10, "old"), (20, "acme/old"), (90, "new")] {
        let mut owner = Owner::new(thread(name));
        owner.at = Timestamp(at);
        owner.save(&db, owner.start()).await.unwrap();
        owner.save(&db, owner.stop(Status::Idle)).await.unwrap();
    }
    let mut running = Owner::new(thread("running"));
    running.at = Timestamp(1);
    running.save(&db, running.start()).await.unwrap();

    assert_eq!(db.expire(Timestamp(50), 1).await.unwrap(), 1);
    assert_eq!(db.expire(Timestamp(50), 10).await.unwrap(), 1);
    assert_eq!(db.expire(Timestamp(50), 10).await.unwrap(), 0);
    let status = async |name| db.load(&thread(name)).await.unwrap().unwrap().head.status;
    assert_eq!(status("old").await, Status::Deleted);
    assert_eq!(status("acme/old").await, Status::Deleted);
    assert_eq!(status("new").await, Status::Idle);
    assert_eq!(status("running").await, Status::Running);
}
