//! Fences, idempotence, records, and the group that requests share.

use std::time::Duration;

use superstep_core::checkpoint::{
    Checkpointer, Commit, Head, RecordWrite, Released, ReleasedRecords, Status,
};
use superstep_core::error::CheckpointError;
use superstep_core::{Epoch, Seq, TaskId};
use superstep_sqlite::{Options, Sqlite};

use crate::kit::{Owner, db, entry, thread};

#[tokio::test]
async fn a_commit_is_loaded_as_it_was_saved() {
    let db = db();
    let mut owner = Owner::started(&db, "a").await;
    owner.save_steps(&db, 4).await;

    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.head, owner.head);
    assert_eq!(loaded.history.snapshot.unwrap().seq, Seq(3));
    let seqs: Vec<_> = loaded
        .history
        .entries
        .iter()
        .map(|entry| entry.seq.0)
        .collect();
    assert_eq!(seqs, [4, 5]);
    assert_eq!(
        loaded.history.entries[1].body,
        entry(&owner.thread, Seq(5), "")
    );
    assert!(db.load(&thread("b")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_stale_owner_is_fenced_and_writes_nothing() {
    let db = db();
    let old = Owner::started(&db, "a").await;
    let mut new = old.clone();
    new.save(&db, new.claim()).await.unwrap();

    let stale = Commit {
        entry: Some(entry(&old.thread, Seq(2), "stale")),
        ..old.step()
    };
    let fenced = db.save(&stale).await;
    assert!(matches!(
        fenced,
        Err(CheckpointError::Fenced {
            epoch: Epoch(1),
            ..
        })
    ));
    assert_eq!(db.load(&old.thread).await.unwrap().unwrap().head, new.head);
    assert_eq!(db.entries(&old.thread, Seq(0), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_same_commit_twice_is_applied_once() {
    let db = db();
    let mut owner = Owner::started(&db, "a").await;
    let commit = owner.step();
    let first = owner.save(&db, commit.clone()).await.unwrap();
    assert_eq!(db.save(&commit).await.unwrap(), first);

    let claim = owner.claim();
    let first = owner.save(&db, claim.clone()).await.unwrap();
    assert_eq!(db.save(&claim).await.unwrap(), first);
    assert_eq!(
        db.load(&owner.thread).await.unwrap().unwrap().head,
        owner.head
    );
}

#[tokio::test]
async fn of_two_different_starts_one_wins() {
    let db = db();
    let start = Owner::new(thread("a")).start();
    let other = Commit {
        entry: Some(entry(&thread("a"), Seq(1), "other")),
        ..start.clone()
    };
    let (a, b) = tokio::join!(db.save(&start), db.save(&other));
    assert!(a.is_ok() != b.is_ok());
    assert_eq!(db.entries(&thread("a"), Seq(0), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_bare_claim_makes_a_thread_without_entries() {
    let db = db();
    let claim = Owner::new(thread("a")).claim();
    db.save(&claim).await.unwrap();
    let loaded = db.load(&thread("a")).await.unwrap().unwrap();
    assert_eq!(loaded.head, claim.head);
    assert!(loaded.history.entries.is_empty());
}

#[tokio::test]
async fn a_wish_to_cancel_reaches_the_owner_and_a_claim_clears_it() {
    let db = db();
    let mut owner = Owner::started(&db, "a").await;
    db.request_cancel(&owner.thread).await.unwrap();
    let commit = owner.step();
    assert!(owner.save(&db, commit).await.unwrap().cancel);
    let claim = owner.claim();
    assert!(!owner.save(&db, claim).await.unwrap().cancel);
    let commit = owner.step();
    assert!(!owner.save(&db, commit).await.unwrap().cancel);
}

#[tokio::test]
async fn a_zombie_cannot_write_a_thread_that_was_deleted_or_made_again() {
    let db = db();
    let mut zombie = Owner::started(&db, "a").await;
    zombie.save_steps(&db, 2).await;
    db.record(&zombie.record("k", b"kept")).await.unwrap();
    db.delete(&zombie.thread).await.unwrap();

    let loaded = db.load(&zombie.thread).await.unwrap().unwrap();
    let gone = Head {
        epoch: zombie.head.epoch.next(),
        status: Status::Deleted,
        ..Head::default()
    };
    assert_eq!(loaded.head, gone);
    assert!(loaded.records.is_empty() && loaded.history.entries.is_empty());
    for commit in [zombie.step(), zombie.claim(), zombie.start()] {
        assert!(matches!(
            db.save(&commit).await,
            Err(CheckpointError::Fenced { .. })
        ));
    }
    assert!(db.record(&zombie.record("k", b"late")).await.is_err());
    // One who still believes the thread is new, or holds its old epoch at the start.
    assert!(
        db.save(&Owner::new(zombie.thread.clone()).start())
            .await
            .is_err()
    );
    let unclaimed = Commit {
        expect: gone,
        head: Head {
            seq: Seq(1),
            ..zombie.head
        },
        ..zombie.step()
    };
    assert!(db.save(&unclaimed).await.is_err());

    let mut heir = Owner {
        head: loaded.head,
        ..zombie.clone()
    };
    heir.save(&db, heir.start()).await.unwrap();
    assert_eq!((heir.head.epoch, heir.head.seq), (Epoch(3), Seq(1)));
    assert!(matches!(
        db.save(&zombie.step()).await,
        Err(CheckpointError::Fenced { .. })
    ));
    assert!(db.record(&zombie.record("k", b"late")).await.is_err());
}

#[tokio::test]
async fn the_first_record_wins_and_only_for_the_owner() {
    let db = db();
    let owner = Owner::started(&db, "a").await;
    assert_eq!(
        db.record(&owner.record("k", b"first")).await.unwrap(),
        b"first"
    );
    assert_eq!(
        db.record(&owner.record("k", b"second")).await.unwrap(),
        b"first"
    );

    let mut new = owner.clone();
    new.save(&db, new.claim()).await.unwrap();
    let fenced = db.record(&owner.record("k", b"first")).await;
    assert!(matches!(fenced, Err(CheckpointError::Fenced { .. })));
    assert_eq!(
        db.record(&new.record("k", b"third")).await.unwrap(),
        b"first"
    );
}

#[tokio::test]
async fn records_are_released_with_a_commit() {
    let db = db();
    let mut owner = Owner::started(&db, "a").await;
    for key in ["=result", "step"] {
        db.record(&owner.record(key, key.as_bytes())).await.unwrap();
    }
    let keys = async || -> Vec<String> {
        let loaded = db.load(&thread("a")).await.unwrap().unwrap();
        loaded
            .records
            .into_iter()
            .map(|record| record.key)
            .collect()
    };
    let task = TaskId::from_bytes([1; 16]);
    for (which, left) in [
        (ReleasedRecords::Result, vec!["step"]),
        (ReleasedRecords::All, vec![]),
    ] {
        let commit = Commit {
            released: vec![Released { task, which }],
            ..owner.step()
        };
        owner.save(&db, commit).await.unwrap();
        assert_eq!(keys().await, left);
    }
}

#[tokio::test]
async fn only_what_is_released_goes_also_when_that_is_much() {
    let db = db();
    let mut owner = Owner::started(&db, "a").await;
    let tasks: Vec<_> = (0..40).map(|n| TaskId::from_bytes([n; 16])).collect();
    for &task in &tasks {
        let record = RecordWrite {
            task,
            ..owner.record("=result", b"done")
        };
        db.record(&record).await.unwrap();
    }
    for (released, left) in [(&tasks[..30], &tasks[30..]), (&tasks[30..], &[])] {
        let all = |&task: &TaskId| Released {
            task,
            which: ReleasedRecords::All,
        };
        let commit = Commit {
            released: released.iter().map(all).collect(),
            ..owner.step()
        };
        owner.save(&db, commit).await.unwrap();
        let loaded = db.load(&owner.thread).await.unwrap().unwrap();
        let kept: Vec<_> = loaded.records.iter().map(|record| record.task).collect();
        assert_eq!(kept, left);
    }
}

#[tokio::test]
async fn a_crowd_of_records_keeps_the_fenced_apart() {
    let db = db();
    let owner = Owner::started(&db, "a").await;
    let mut records: Vec<_> = (0..200)
        .map(|n| owner.record(&format!("step {n}"), b"done"))
        .collect();
    for stale in records.iter_mut().step_by(3) {
        stale.epoch = Epoch(9);
    }
    let stored = join_all(records.iter().map(|record| db.record(record)).collect()).await;
    for (record, stored) in records.iter().zip(stored) {
        match stored {
            Ok(body) => assert_eq!((record.epoch, body), (Epoch(1), b"done".to_vec())),
            Err(CheckpointError::Fenced { epoch, .. }) => assert_eq!(epoch, Epoch(9)),
            Err(error) => panic!("{error}"),
        }
    }
    let loaded = db.load(&owner.thread).await.unwrap().unwrap();
    assert_eq!(loaded.records.len(), 133);
}

#[tokio::test]
async fn a_group_keeps_failures_apart() {
    let db = db();
    let mut commits = Vec::new();
    for n in 0..200 {
        let owner = Owner::started(&db, &format!("t{n}")).await;
        let stale = Commit {
            expect: Head {
                epoch: Epoch(9),
                ..owner.head
            },
            ..owner.step()
        };
        commits.push(if n % 3 == 0 { stale } else { owner.step() });
    }
    // All are sent before the first is answered, so that they meet in the writer's queue.
    let mut saves = Vec::new();
    for commit in &commits {
        saves.push(db.save(commit));
    }
    let saved = join_all(saves).await;
    for (n, saved) in saved.iter().enumerate() {
        let entries = db
            .entries(&commits[n].thread, Seq(0), 10)
            .await
            .unwrap()
            .len();
        match n % 3 {
            0 => assert!(matches!(saved, Err(CheckpointError::Fenced { .. })) && entries == 1),
            _ => assert!(saved.is_ok() && entries == 2),
        }
    }
}

#[tokio::test]
async fn a_group_that_cannot_be_committed_fails_as_a_whole_and_may_be_tried_again() {
    let db = db();
    let owners = [
        Owner::started(&db, "a").await,
        Owner::started(&db, "b").await,
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

/// Only a thread of the store waits for another process; whatever else is on the executor goes on.
#[tokio::test]
async fn an_executor_does_not_wait_for_another_process() {
    let db = db();
    let owner = Owner::started(&db, "a").await;
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
    let owner = Owner::started(&db, "a").await;
    // Somebody else asks too, so the asker waits for others before it serves.
    Owner::started(&db, "b").await;
    let step = owner.step();
    let mut save = Box::pin(db.save(&step));
    let first = std::future::poll_fn(|cx| std::task::Poll::Ready(save.as_mut().poll(cx))).await;
    assert!(first.is_pending());
    drop(save);
    while db.entries(&owner.thread, Seq(0), 10).await.unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn join_all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let std::task::Poll::Ready(ready) = std::pin::Pin::new(future).poll(cx)
            {
                *output = Some(ready);
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
