//! Whoever takes a thread from its owner waits for the step that is under way, and the step for them. Each of these stops
//! one in the middle and lets the other come.

use std::time::Duration;

use serde_json::json;
use superstep_conformance::sample::{Owner, noted, thread};
use superstep_core::checkpoint::{CheckpointResult, Checkpointer, Commit, Saved, ThreadQuery};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{Client, Transaction};

use crate::kit::{Db, db, wait_for_waiting};

/// Has a commit saved by a task of its own.
fn save(db: &Db, commit: Commit) -> JoinSet<CheckpointResult<Saved>> {
    let (postgres, mut saving) = (db.postgres.clone(), JoinSet::new());
    saving.spawn(async move { postgres.save(&commit).await });
    saving
}

async fn told(mut saving: JoinSet<CheckpointResult<Saved>>) -> CheckpointResult<Saved> {
    let told = timeout(Duration::from_secs(60), saving.join_next()).await;
    told.expect("nobody waits for good").unwrap().unwrap()
}

/// Stops whoever adds the next entry after they have the thread's row: somebody else is about to add it, and will not.
async fn stop_at_entry<'a>(client: &'a mut Client, seq: Seq) -> Transaction<'a> {
    let stop = client.transaction().await.unwrap();
    let sql = "INSERT INTO log (thread, seq, epoch, body) SELECT id, $1, 0, '' FROM thread";
    let seq = i64::try_from(seq.0).unwrap();
    stop.execute(sql, &[&seq]).await.unwrap();
    stop
}

fn claims(owner: &Owner) -> [Commit; 2] {
    [owner.claim(), noted(owner.start(), json!("claim"))]
}

fn assert_fenced(told: &CheckpointResult<Saved>) {
    let is_fenced = matches!(told, Err(CheckpointError::Fenced { .. }));
    assert!(is_fenced, "{told:?}");
}

#[tokio::test]
async fn a_claim_that_waited_for_a_step_is_refused() {
    for which in 0..2 {
        let db = db().await;
        let mut owner = Owner::started(&*db, "a").await.unwrap();
        owner.save(&*db, owner.step()).await.unwrap();
        let mut client = db.schema.client().await;
        let stop = stop_at_entry(&mut client, owner.head.seq.next()).await;
        let (step, claim) = (owner.step(), claims(&owner)[which].clone());
        let step_saved = save(&db, step.clone());
        wait_for_waiting(&db, 1).await;
        let claim_saved = save(&db, claim.clone());
        wait_for_waiting(&db, 2).await;
        stop.rollback().await.unwrap();
        told(step_saved).await.unwrap();
        assert_fenced(&told(claim_saved).await);
        let loaded = db.load(&owner.thread).await.unwrap().unwrap();
        assert_eq!(loaded.head, step.head);
        // Who looks again takes it over.
        owner.head = loaded.head;
        owner
            .save(&*db, claims(&owner)[which].clone())
            .await
            .unwrap();
        assert_eq!(owner.head.epoch, Epoch(2));
    }
}

#[tokio::test]
async fn a_step_that_waited_for_a_claim_is_refused() {
    let db = db().await;
    let mut old = Owner::started(&*db, "a").await.unwrap();
    old.save(&*db, old.step()).await.unwrap();
    let mut client = db.schema.client().await;
    let stop = stop_at_entry(&mut client, old.head.seq.next()).await;
    let claim = claims(&old)[1].clone();
    let claim_saved = save(&db, claim.clone());
    wait_for_waiting(&db, 1).await;
    let step_saved = save(&db, old.step());
    wait_for_waiting(&db, 2).await;
    stop.rollback().await.unwrap();
    told(claim_saved).await.unwrap();
    assert_fenced(&told(step_saved).await);
    let loaded = db.load(&old.thread).await.unwrap().unwrap();
    assert_eq!(loaded.head, claim.head);
    let newest = loaded.history.entries.last().unwrap();
    assert_eq!(Some(&newest.body), claim.entry.as_ref());
}

/// As a claim without an entry does it, and is not committed yet: nothing but the row says so.
#[tokio::test]
async fn a_step_that_waited_for_a_bare_claim_is_refused() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut client = db.schema.client().await;
    let claim = client.transaction().await.unwrap();
    claim
        .batch_execute("SELECT FROM thread FOR UPDATE; UPDATE thread SET epoch = 2, recoveries = 1")
        .await
        .unwrap();
    let step_saved = save(&db, owner.step());
    wait_for_waiting(&db, 1).await;
    claim.commit().await.unwrap();
    assert_fenced(&told(step_saved).await);
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!((loaded.head.epoch, loaded.head.seq), (Epoch(2), Seq(1)));
}

#[tokio::test]
async fn a_deletion_that_waited_for_a_step_deletes_it_too() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut client = db.schema.client().await;
    let stop = stop_at_entry(&mut client, Seq(2)).await;
    let step_saved = save(&db, owner.step());
    wait_for_waiting(&db, 1).await;
    let (postgres, id) = (db.postgres.clone(), owner.thread.clone());
    let mut deleting = JoinSet::new();
    deleting.spawn(async move { postgres.delete(&id).await });
    wait_for_waiting(&db, 2).await;
    stop.rollback().await.unwrap();
    told(step_saved).await.unwrap();
    deleting.join_next().await.unwrap().unwrap().unwrap();
    assert!(
        db.entries(&owner.thread, Seq(0), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert_fenced(&db.save(&owner.step()).await);
}

#[tokio::test]
async fn a_thread_that_runs_is_shown_where_its_log_ends() {
    let db = db().await;
    let mut owner = Owner::started(&*db, "a").await.unwrap();
    owner.save_steps(&*db, 5).await.unwrap();
    let listed = db.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(listed[0].head, owner.head);
    assert_eq!(db.export(&owner.thread).await.unwrap().head, owner.head);
    db.copy(&owner.thread, None, &thread("b")).await.unwrap();
    let copy = db.load(&thread("b")).await.unwrap().unwrap();
    assert_eq!(copy.head.seq, owner.head.seq);
}

#[tokio::test]
async fn a_late_copy_of_a_step_that_was_pruned_is_refused() {
    let db = db().await;
    let mut owner = Owner::started(&*db, "a").await.unwrap();
    let late = owner.step();
    owner.save_steps(&*db, 8).await.unwrap();
    assert_eq!(db.prune(&owner.thread, 1).await.unwrap(), 8);
    assert_fenced(&db.save(&late).await);
    let entries = db.entries(&owner.thread, Seq(0), 10).await.unwrap();
    assert_eq!(entries.len(), 1);
    owner.save(&*db, owner.step()).await.unwrap();
}
