//! Recovery while a commit of the former owner is still on its way into the database: queued by a process that died, or made by
//! one that is alive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use superstep::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, Commit, Memory, Saved};
use superstep::error::CheckpointError;
use superstep::prelude::*;

use crate::kit::{Log, LogUpdate, says};

/// A store that keeps one commit back until another process claims the thread.
#[derive(Clone, Default)]
struct Late {
    inner: Memory,
    saves: Arc<AtomicU64>,
    claims: Arc<AtomicU64>,
    /// Which save is kept back; none if this is 0.
    kept: u64,
    late: Arc<Mutex<Option<Commit>>>,
    /// Whether every claim is refused, as if the owner had committed just before it.
    refuses_claims: bool,
}

impl Checkpointer for Late {
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        Box::pin(async move {
            if self.saves.fetch_add(1, Ordering::SeqCst) + 1 == self.kept {
                *self.late.lock().unwrap() = Some(commit.clone());
                // Its process dies before it hears of it.
                std::future::pending::<()>().await;
            }
            if commit.is_claim() {
                self.claims.fetch_add(1, Ordering::SeqCst);
                let late = self.late.lock().unwrap().take();
                if let Some(late) = late {
                    self.inner.save(&late).await?;
                }
                if self.refuses_claims {
                    let (thread, epoch) = (commit.thread.clone(), commit.expect.epoch);
                    return Err(CheckpointError::Fenced { thread, epoch });
                }
            }
            self.inner.save(commit).await
        })
    }

    superstep_conformance::forward! {
        create annotate record answer load load_at entries glance request_cancel unfinished renew threads
        count_threads sizes interrupts overdue copy delete forget prune expire expired export import
    }
}

fn graph() -> Graph<Log> {
    Graph::builder("late")
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", "c")
        .edge("c", END)
        .build()
        .unwrap()
}

/// Runs until this save, which does not arrive yet, and dies.
async fn dies_at(save: u64) -> Late {
    let store = Late {
        kept: save,
        ..Late::default()
    };
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&graph(), "t").unwrap();
    let run = thread.start(LogUpdate::default());
    let ended = tokio::time::timeout(Duration::from_millis(200), run).await;
    assert!(ended.is_err(), "save {save} was kept back");
    assert!(store.late.lock().unwrap().is_some());
    Late { kept: 0, ..store }
}

#[tokio::test]
async fn a_commit_of_the_dead_owner_that_arrives_before_the_claim_does_not_make_the_thread_busy() {
    for save in 2..=3 {
        for by_thread in [true, false] {
            let store = dies_at(save).await;
            let next = Runtime::new(store.clone());
            let thread = next.thread(&graph(), "t").unwrap();
            if by_thread {
                let stopped = thread.recover().await.unwrap();
                assert_eq!(stopped.outcome, Outcome::Finished);
            } else {
                next.register(&graph());
                let recovered = next.recover().await.unwrap();
                assert!(
                    matches!(&recovered[..], [(_, Ok(Outcome::Finished))]),
                    "{recovered:?}"
                );
            }
            assert_eq!(
                store.claims.load(Ordering::SeqCst),
                3,
                "the first, and two to recover"
            );
            let state = thread.state().await.unwrap().unwrap();
            let log: Log = state.values.decode().unwrap();
            assert_eq!(log.ran, ["a", "b", "c"]);
        }
    }
}

#[tokio::test]
async fn a_thread_that_another_process_claimed_first_is_busy() {
    let dead = dies_at(2).await;
    dead.late.lock().unwrap().take();
    // Another process claims it, and its claim arrives just before ours.
    let other = Late {
        kept: dead.saves.load(Ordering::SeqCst) + 1,
        ..dead.clone()
    };
    let elsewhere = Runtime::new(other.clone()).thread(&graph(), "t").unwrap();
    let claimed = tokio::time::timeout(Duration::from_millis(200), elsewhere.recover()).await;
    assert!(claimed.is_err(), "its claim was kept back");
    assert!(other.late.lock().unwrap().as_ref().unwrap().is_claim());

    let thread = Runtime::new(dead.clone()).thread(&graph(), "t").unwrap();
    let claims = dead.claims.load(Ordering::SeqCst);
    let refused = thread.recover().await.unwrap_err();
    assert_eq!(refused.code(), "open-busy", "{refused}");
    assert_eq!(
        dead.claims.load(Ordering::SeqCst),
        claims + 1,
        "it is not tried again"
    );
}

#[tokio::test]
async fn a_takeover_from_an_owner_that_never_rests_ends() {
    let dead = dies_at(2).await;
    let busy = Late {
        refuses_claims: true,
        ..dead
    };
    let thread = Runtime::new(busy.clone()).thread(&graph(), "t").unwrap();
    let claims = busy.claims.load(Ordering::SeqCst);
    let refused = thread.recover().await.unwrap_err();
    assert_eq!(refused.code(), "open-busy", "{refused}");
    assert_eq!(busy.claims.load(Ordering::SeqCst), claims + 8);
}
