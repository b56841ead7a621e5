//! Connections that are killed, and a server that goes away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use free_ports::free_port;
use superstep_conformance::sample::{Owner, thread};
use superstep_core::checkpoint::{Checkpointer, Commit, Saved};
use superstep_core::error::CheckpointError;
use superstep_core::{Seq, ThreadId};
use superstep_postgres::{Options, Postgres};
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::kit::{Db, Schema, db};

/// As a driver does it: the same commit, until there is an answer.
async fn save_patiently(db: &Postgres, commit: &Commit, asked_again: &AtomicU64) -> Saved {
    for _ in 0..1_000 {
        match db.save(commit).await {
            Ok(saved) => return saved,
            Err(CheckpointError::Store { .. }) => {
                asked_again.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(other) => panic!("a commit that should have been saved was refused: {other:?}"),
        }
    }
    panic!("the store did not come back");
}

async fn run(db: Postgres, name: ThreadId, steps: u64, asked_again: Arc<AtomicU64>) {
    let mut owner = Owner::new(&name);
    for n in 0..steps {
        let commit = match n {
            0 => owner.start(),
            _ => owner.step(),
        };
        save_patiently(&db, &commit, &asked_again).await;
        owner.head = commit.head;
    }
}

/// Every entry once, in order, and the head at the last.
async fn assert_one_chain(db: &Postgres, name: &ThreadId, steps: u64) {
    let entries = db.entries(name, Seq(0), 100_000).await.unwrap();
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(seqs, (1..=steps).collect::<Vec<_>>());
    assert_eq!(db.load(name).await.unwrap().unwrap().head.seq, Seq(steps));
}

/// Kills the connections of a store that are in the middle of a statement, again and again, until it is told to stop.
async fn kill_connections(db: &Db, done: &AtomicBool) -> i64 {
    let client = db.schema.client().await;
    let mut killed = 0;
    while !done.load(Ordering::Relaxed) {
        let sql = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE application_name = $1 AND state = 'active'";
        let row = client.query_one(sql, &[&db.schema.name]).await.unwrap();
        killed += row.get::<_, i64>(0);
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    killed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_connection_was_killed_is_applied_once() {
    let db = db().await;
    let asked_again = Arc::new(AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let names: Vec<ThreadId> = (0..8).map(|n| thread(&format!("t{n}"))).collect();
    let mut runs = JoinSet::new();
    for name in &names {
        let (postgres, name) = (db.postgres.clone(), name.clone());
        runs.spawn(run(postgres, name, 60, Arc::clone(&asked_again)));
    }
    let all = async {
        while let Some(ended) = runs.join_next().await {
            ended.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    };
    let ((), killed) = tokio::join!(all, kill_connections(&db, &done));
    assert!(killed > 0, "nothing was killed");
    for name in &names {
        assert_one_chain(&db, name, 60).await;
    }
}

#[tokio::test]
async fn a_connection_that_was_killed_between_commits_is_made_anew() {
    let db = db().await;
    let mut owner = Owner::started(&*db, "a").await.unwrap();
    for _ in 0..5 {
        let client = db.schema.client().await;
        let sql =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        client.query(sql, &[&db.schema.name]).await.unwrap();
        let commit = owner.step();
        let asked_again = AtomicU64::new(0);
        save_patiently(&db, &commit, &asked_again).await;
        owner.head = commit.head;
        // A read is asked again by itself.
        assert_eq!(
            db.load(&owner.thread).await.unwrap().unwrap().head,
            owner.head
        );
    }
    assert_one_chain(&db, &owner.thread, 6).await;
}

#[tokio::test]
async fn a_caller_that_is_not_polled_keeps_nobody_from_the_database() {
    let schema = Schema::new();
    let mut options = schema.options();
    options.connections = 1;
    let db = Postgres::connect_with(&schema.named_url(), options).await;
    let db = db.unwrap();
    let owner = Owner::started(&db, "a").await.unwrap();
    let client = schema.client().await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    client.query(sql, &[&schema.name]).await.unwrap();
    // Until the end of the connection is noticed.
    tokio::time::sleep(Duration::from_millis(200)).await;
    // As the stream of a client that does not read.
    let mut frozen = db.load(&owner.thread);
    let polled = std::future::poll_fn(|cx| Poll::Ready(frozen.as_mut().poll(cx).is_ready()));
    assert!(!polled.await, "it opens a connection first");
    let loaded = tokio::time::timeout(Duration::from_secs(20), db.load(&owner.thread));
    assert_eq!(loaded.await.unwrap().unwrap().unwrap().head, owner.head);
    drop(frozen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_or_restarts_loses_and_doubles_nothing() {
    let cluster = Arc::new(Cluster::start());
    let mut options = Options::default();
    options.partitions = 2;
    options.patience = Duration::from_secs(30);
    let db = Postgres::connect_with(&cluster.url(), options)
        .await
        .unwrap();
    let asked_again = Arc::new(AtomicU64::new(0));
    let mut runs = JoinSet::new();
    for n in 0..16 {
        let name = thread(&format!("t{n}"));
        runs.spawn(run(db.clone(), name, 150, Arc::clone(&asked_again)));
    }
    let restarts = tokio::task::spawn_blocking({
        let cluster = Arc::clone(&cluster);
        move || {
            for _ in 0..2 {
                cluster.crash_and_start();
                cluster.restart();
            }
        }
    });
    while let Some(ended) = runs.join_next().await {
        ended.unwrap();
    }
    restarts.await.unwrap();
    for n in 0..16 {
        assert_one_chain(&db, &thread(&format!("t{n}")), 150).await;
    }
}

#[tokio::test]
async fn what_will_not_pass_is_told_apart_from_what_may() {
    let mut options = Options::default();
    options.patience = Duration::from_millis(50);
    // A port that nobody listens on.
    let url = format!("postgres://x@127.0.0.1:{}/x", free_port());
    let away = Postgres::connect_with(&url, options.clone()).await;
    assert!(away.unwrap_err().is_transient());

    let nowhere = format!("{}_no_such_database", crate::kit::url());
    let nowhere = Postgres::connect_with(&nowhere, options.clone()).await;
    assert!(matches!(nowhere, Err(CheckpointError::Unusable { .. })));
    let garbled = Postgres::connect_with("not an address", options.clone()).await;
    assert!(matches!(garbled, Err(CheckpointError::Unusable { .. })));
    options.schema = "x\"; DROP SCHEMA public; --".to_owned();
    let hostile = Postgres::connect_with(&crate::kit::url(), options).await;
    assert!(matches!(hostile, Err(CheckpointError::Unusable { .. })));
}
