//! Many who want the same thread at once, each with connections of its own.

use std::sync::Arc;

use serde_json::json;
use superstep_conformance::sample::{Owner, answer_by, noted, thread};
use superstep_core::checkpoint::Checkpointer;
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::kit::{Db, db};

/// Takes the thread over and goes on from where it stands, as often as it can.
async fn fight(db: superstep_postgres::Postgres, me: usize, start: Arc<Barrier>) -> u64 {
    start.wait().await;
    let mut saved = 0;
    for round in 0..15 {
        let head = db.load(&thread("a")).await.unwrap().unwrap().head;
        let mut owner = Owner::new(&thread("a"));
        owner.head = head;
        let claim = noted(owner.start(), json!([me, round, "claim"]));
        match owner.save(&db, claim).await {
            Ok(_) => saved += 1,
            Err(CheckpointError::Fenced { .. }) => continue,
            Err(other) => panic!("{other:?}"),
        }
        for step in 0..3 {
            let commit = noted(owner.step(), json!([me, round, step]));
            match owner.save(&db, commit).await {
                Ok(_) => saved += 1,
                Err(CheckpointError::Fenced { .. }) => break,
                Err(other) => panic!("{other:?}"),
            }
        }
    }
    saved
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_who_race_make_one_chain() {
    let db = db().await;
    Owner::started(&*db, "a").await.unwrap();
    let start = Arc::new(Barrier::new(5));
    let mut racers = JoinSet::new();
    for me in 0..5 {
        racers.spawn(fight(db.schema.connect().await, me, Arc::clone(&start)));
    }
    let saved: u64 = racers.join_all().await.into_iter().sum();
    let entries = db.entries(&thread("a"), Seq(0), 10_000).await.unwrap();
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(seqs, (1..=saved + 1).collect::<Vec<_>>());
    assert_epochs_rise(&db).await;
}

async fn assert_epochs_rise(db: &Db) {
    let sql = "SELECT count(*) FROM log a JOIN log b ON b.seq = a.seq + 1 WHERE b.epoch < a.epoch";
    let client = db.schema.client().await;
    let back: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(back, 0);
}

/// What was acknowledged to the former owner is told to the next one, or was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_record_slips_in_behind_a_claim() {
    let db = db().await;
    let other = db.schema.connect().await;
    for round in 0..40 {
        let name = format!("t{round}");
        let old = Owner::started(&*db, &name).await.unwrap();
        let mut records = JoinSet::new();
        for n in 0..6 {
            let (postgres, record) = (
                other.clone(),
                old.record_of_bytes(&format!("k{n}"), b"done"),
            );
            records
                .spawn(async move { postgres.record(&record).await.is_ok().then_some(record.key) });
        }
        let mut new = old.clone();
        let told = new.save(&*db, new.claim()).await.unwrap().records;
        let told: Vec<String> = told.into_iter().map(|record| record.key).collect();
        for key in records.join_all().await.into_iter().flatten() {
            assert!(told.contains(&key), "{key} was acknowledged and not told");
        }
        let late = db.record(&old.record_of_bytes("late", b"late")).await;
        assert!(matches!(
            late,
            Err(CheckpointError::Fenced {
                epoch: Epoch(1),
                ..
            })
        ));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_deleted_thread_nothing_is_left() {
    let db = db().await;
    let other = db.schema.connect().await;
    for round in 0..20 {
        let mut owner = Owner::started(&*db, &format!("t{round}")).await.unwrap();
        owner.save_steps(&*db, 3).await.unwrap();
        let (step, record) = (
            owner.step_with_snapshot(),
            owner.record_of_bytes("k", b"late"),
        );
        let (deleted, _, _) = tokio::join!(
            db.delete(&owner.thread),
            other.save(&step),
            other.record(&record)
        );
        deleted.unwrap();
    }
    let client = db.schema.client().await;
    for table in ["log", "snapshot", "record", "interrupt", "listing", "term"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = client.query_one(&sql, &[]).await.unwrap().get(0);
        assert_eq!(left, 0, "rows in {table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_racing_answers_one_wins() {
    let db = db().await;
    for round in 0..10 {
        let name = format!("t{round}");
        let mut owner = Owner::started(&*db, &name).await.unwrap();
        owner.save(&*db, owner.pause(&[1, 2])).await.unwrap();
        let mut racers = JoinSet::new();
        for n in 0..8 {
            // Each a process of its own.
            let (postgres, name) = (db.schema.connect().await, name.clone());
            racers.spawn(async move {
                let by = n.to_string();
                let both = [answer_by(1, &by), answer_by(2, &by)];
                (n, postgres.answer(&thread(&name), &both).await)
            });
        }
        let ends = racers.join_all().await;
        let winners: Vec<_> = ends.iter().filter(|(_, end)| end.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{ends:?}");
        let refused = |end: &Result<_, _>| matches!(end, Err(CheckpointError::NotOpen { .. }));
        assert_eq!(ends.iter().filter(|(_, end)| refused(end)).count(), 7);
        let loaded = db.load(&owner.thread).await.unwrap().unwrap();
        let by = winners[0].0.to_string();
        assert!(loaded.interrupts.iter().all(|row| row.answered_by == by));
        assert_eq!(loaded.head.answers, 2);
    }
}
