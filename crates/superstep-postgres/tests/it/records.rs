//! Records that come alone, many at once, and in trouble.

use std::collections::BTreeSet;
use std::future::{poll_fn, ready};
use std::task::Poll;
use std::time::Duration;

use superstep_conformance::sample::Owner;
use superstep_core::checkpoint::{CheckpointResult, Checkpointer, RecordWrite};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, TaskId};
use superstep_postgres::Postgres;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{Client, Transaction};

use crate::kit::{Db, db, wait_for_waiting};

/// The record of one of many tasks.
fn result_of(owner: &Owner, n: u32) -> RecordWrite {
    let mut task = [0; 16];
    task[..4].copy_from_slice(&n.to_be_bytes());
    RecordWrite {
        task: TaskId::from_bytes(task),
        ..owner.record_of_bytes("=result", format!("result {n}").as_bytes())
    }
}

type Told = (RecordWrite, CheckpointResult<Vec<u8>>);

/// Has all of them recorded at once: each has asked when this returns.
async fn ask_all(db: &Postgres, records: impl IntoIterator<Item = RecordWrite>) -> JoinSet<Told> {
    let mut asked = JoinSet::new();
    for record in records {
        let db = db.clone();
        let mut asking = Box::pin(async move {
            let told = db.record(&record).await;
            (record, told)
        });
        // On a busy machine an answer may be there before the first look at it is over.
        match poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await {
            Poll::Ready(told) => drop(asked.spawn(ready(told))),
            Poll::Pending => drop(asked.spawn(asking)),
        }
    }
    asked
}

async fn told_all(asked: JoinSet<Told>) -> Vec<Told> {
    timeout(Duration::from_secs(60), asked.join_all())
        .await
        .expect("nobody waits for good")
}

/// Keeps records of the thread waiting, as a claim does that is not committed yet.
async fn hold<'a>(client: &'a mut Client, owner: &Owner) -> Transaction<'a> {
    let held = client.transaction().await.unwrap();
    let sql = "SELECT FROM thread WHERE name = $1 FOR UPDATE";
    let name = owner.thread.name();
    held.query(sql, &[&name]).await.unwrap();
    held
}

/// Everybody is told what they wrote themselves.
fn assert_own_bytes(told: Vec<Told>) {
    for (record, told) in told {
        assert_eq!(told.unwrap(), record.body);
    }
}

async fn stored(db: &Db) -> u64 {
    let sql = "SELECT count(*) FROM record";
    let row = db.schema.client().await.query_one(sql, &[]).await.unwrap();
    row.get::<_, i64>(0).unsigned_abs()
}

/// In how many transactions the stored records were written.
async fn transactions(db: &Db) -> u64 {
    let sql = "SELECT count(DISTINCT xmin::text) FROM record";
    let row = db.schema.client().await.query_one(sql, &[]).await.unwrap();
    row.get::<_, i64>(0).unsigned_abs()
}

#[tokio::test]
async fn a_record_that_is_alone_is_stored_and_the_first_one_stays() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let first = db
        .record(&owner.record_of_bytes("key", b"first"))
        .await
        .unwrap();
    assert_eq!(first, b"first");
    let second = db
        .record(&owner.record_of_bytes("key", b"second"))
        .await
        .unwrap();
    assert_eq!(second, b"first");
    assert_eq!(stored(&db).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_are_told_their_own_bytes_after_few_transactions() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut client = db.schema.client().await;
    let held = hold(&mut client, &owner).await;
    // One goes out at once; when it is known to wait, the rest comes.
    let first = ask_all(&db, [result_of(&owner, 0)]).await;
    wait_for_waiting(&db, 1).await;
    let rest = ask_all(&db, (1..1_000).map(|n| result_of(&owner, n))).await;
    held.rollback().await.unwrap();
    assert_own_bytes(told_all(first).await);
    assert_own_bytes(told_all(rest).await);
    assert_eq!(stored(&db).await, 1_000);
    // The first, and 999 in batches of 256.
    assert_eq!(transactions(&db).await, 5);
}

#[tokio::test]
async fn records_that_are_large_do_not_share_a_statement() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let large = |n| RecordWrite {
        body: vec![b'x'; 700 * 1024],
        ..result_of(&owner, n)
    };
    let told = told_all(ask_all(&db, (0..4).map(large)).await).await;
    assert_own_bytes(told);
    assert_eq!(transactions(&db).await, 4);
}

#[tokio::test]
async fn the_same_key_many_times_at_once_tells_everybody_the_same() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let of = |n: u32| owner.record_of_bytes("key", format!("from {n}").as_bytes());
    let others = (0..20).map(|n| result_of(&owner, n));
    let told = told_all(ask_all(&db, (0..20).map(of).chain(others)).await).await;
    let (same, others): (Vec<Told>, Vec<Told>) = told
        .into_iter()
        .partition(|(record, _)| record.key == "key");
    let same: BTreeSet<Vec<u8>> = same.into_iter().map(|(_, told)| told.unwrap()).collect();
    assert_eq!(same.len(), 1);
    assert_own_bytes(others);
    assert_eq!(stored(&db).await, 21);
}

/// Two stores do not know of each other's batches, and their records come in no common order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_two_processes_with_the_same_keys_agree() {
    let db = db().await;
    let other = db.schema.connect().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let from = |who: &str, n| RecordWrite {
        body: who.as_bytes().to_vec(),
        ..result_of(&owner, n)
    };
    let ours = ask_all(&db, (0..300).map(|n| from("ours", n))).await;
    let theirs = ask_all(&other, (0..300).rev().map(|n| from("theirs", n))).await;
    let (mut ours, mut theirs) = (told_all(ours).await, told_all(theirs).await);
    ours.sort_by_key(|(record, _)| record.task);
    theirs.sort_by_key(|(record, _)| record.task);
    for (our, their) in ours.into_iter().zip(theirs) {
        assert_eq!(our.1.unwrap(), their.1.unwrap());
    }
}

#[tokio::test]
async fn a_batch_behind_a_claim_is_fenced_as_a_whole() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut new = owner.clone();
    new.save(&*db, new.claim()).await.unwrap();
    let old = ask_all(&db, (0..50).map(|n| result_of(&owner, n))).await;
    let now = ask_all(&db, (50..100).map(|n| result_of(&new, n))).await;
    for (_, told) in told_all(old).await {
        let fenced = matches!(
            told,
            Err(CheckpointError::Fenced {
                epoch: Epoch(1),
                ..
            })
        );
        assert!(fenced, "{told:?}");
    }
    assert!(told_all(now).await.iter().all(|(_, told)| told.is_ok()));
    assert_eq!(stored(&db).await, 50);
}

#[tokio::test]
async fn a_batch_whose_connection_was_killed_is_asked_for_again() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut client = db.schema.client().await;
    let held = hold(&mut client, &owner).await;
    let first = ask_all(&db, [result_of(&owner, 0)]).await;
    wait_for_waiting(&db, 1).await;
    let rest = ask_all(&db, (1..100).map(|n| result_of(&owner, n))).await;
    kill_waiting(&db).await;
    assert_transient(told_all(first).await);
    // Now the others are under way, in one statement.
    wait_for_waiting(&db, 1).await;
    kill_waiting(&db).await;
    let lost = told_all(rest).await;
    held.rollback().await.unwrap();
    let again: Vec<RecordWrite> = lost.iter().map(|(record, _)| record.clone()).collect();
    assert_transient(lost);
    let told = told_all(ask_all(&db, again).await).await;
    assert_own_bytes(told);
    assert_eq!(stored(&db).await, 99);
}

async fn kill_waiting(db: &Db) {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = $1 AND wait_event_type = 'Lock'";
    let client = db.schema.client().await;
    client.query(sql, &[&db.schema.name]).await.unwrap();
}

fn assert_transient(told: Vec<Told>) {
    for (_, told) in told {
        assert!(told.unwrap_err().is_transient());
    }
}

#[tokio::test]
async fn askers_who_go_away_keep_nobody_waiting() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut client = db.schema.client().await;
    let held = hold(&mut client, &owner).await;
    let mut first = ask_all(&db, [result_of(&owner, 0)]).await;
    wait_for_waiting(&db, 1).await;
    let mut gone = ask_all(&db, (1..50).map(|n| result_of(&owner, n))).await;
    let stay = ask_all(&db, (50..100).map(|n| result_of(&owner, n))).await;
    // The one whose statement is under way, and half of those who wait behind it.
    first.shutdown().await;
    gone.shutdown().await;
    held.rollback().await.unwrap();
    let told = told_all(stay).await;
    assert_own_bytes(told);
    let late = db.record(&result_of(&owner, 100)).await.unwrap();
    assert_eq!(late, b"result 100");
    assert_eq!(stored(&db).await, 101);
}

/// As in a node that begins a step and then waits for something else.
#[tokio::test]
async fn an_asker_who_is_not_polled_keeps_nobody_waiting() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    // On a busy machine an answer may be there at the first look; then nobody waits, and another one asks.
    for at in (0..20).step_by(2) {
        let (first, second) = (result_of(&owner, at), result_of(&owner, at + 1));
        let mut asking = db.record(&first);
        if poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).is_ready())).await {
            continue;
        }
        let behind = timeout(Duration::from_secs(60), db.record(&second)).await;
        assert_eq!(behind.unwrap().unwrap(), second.body);
        assert_eq!(asking.await.unwrap(), first.body);
        return;
    }
    panic!("nobody ever had to wait");
}

/// The runtime of a store's first asker may stop before the others do.
#[tokio::test]
async fn a_runtime_that_stops_in_the_middle_keeps_nobody_waiting() {
    let db = db().await;
    let owner = Owner::started(&*db, "a").await.unwrap();
    let mut client = db.schema.client().await;
    let held = hold(&mut client, &owner).await;
    let elsewhere = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (postgres, record) = (db.postgres.clone(), result_of(&owner, 0));
    let first = elsewhere.spawn(async move { postgres.record(&record).await });
    wait_for_waiting(&db, 1).await;
    let behind = ask_all(&db, [result_of(&owner, 1)]).await;
    elsewhere.shutdown_background();
    assert!(first.await.is_err());
    assert_transient(told_all(behind).await);
    held.rollback().await.unwrap();
    let again = db.record(&result_of(&owner, 1)).await.unwrap();
    assert_eq!(again, b"result 1");
}
