//! Threads as rows: created before their first run, annotated, counted, swept.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use superstep::checkpoint::{
    AtLifetimeEnd, BoxFuture, CheckpointResult, Metadata, NewThread, Status, ThreadAnnotation,
    ThreadLifetime, ThreadQuery,
};
use superstep::error::CheckpointError;
use superstep::prelude::*;
use superstep::{Checkpointer, Clock, Seq, ThreadId, Timestamp};

use crate::kit::{Log, LogUpdate, asks, says, wrote};
use crate::lost_replies::Forgetful;

fn graph() -> Graph<Log> {
    Graph::builder("rows")
        .node("first", says("first"))
        .node("ask", asks("ask"))
        .edge(START, "first")
        .edge("first", "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

fn metadata(user: &str) -> Metadata {
    [("user".to_owned(), json!(user))].into()
}

fn id(name: &str) -> ThreadId {
    ThreadId::new(name).unwrap()
}

#[tokio::test]
async fn a_created_thread_is_listed_and_its_first_run_keeps_its_metadata() {
    let runtime = crate::runtime();
    let new = NewThread {
        metadata: metadata("ann"),
        at: Timestamp(5),
        ..NewThread::default()
    };
    assert!(runtime.create_thread(&id("t"), &new).await.unwrap());
    assert!(!runtime.create_thread(&id("t"), &new).await.unwrap());
    let thread = runtime.thread(&graph(), "t").unwrap();
    assert!(thread.state().await.unwrap().is_none());
    let annotated = ThreadAnnotation {
        metadata: [("team".to_owned(), json!(7))].into(),
        at: Timestamp(6),
        ..ThreadAnnotation::default()
    };
    let found = runtime.annotate_thread(&id("t"), &annotated).await;
    assert!(found.unwrap());
    let missing = runtime.annotate_thread(&id("missing"), &annotated).await;
    assert!(!missing.unwrap());

    let paused = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(paused.state.ran, ["first"]);
    let rows = runtime.threads(&ThreadQuery::default()).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].graph, "rows");
    assert_eq!(rows[0].head.status, Status::Paused);
    assert_eq!(rows[0].created, Timestamp(5));
    let both = [metadata("ann"), annotated.metadata].into_iter().flatten();
    assert_eq!(rows[0].metadata, both.collect::<Metadata>());
    let counted = runtime.count_threads(&ThreadQuery::default()).await;
    assert_eq!(counted.unwrap(), 1);

    let finished = thread.resume_with("yes").await.unwrap();
    assert_eq!(finished.outcome, Outcome::Finished);
    assert_eq!(finished.state.ran, ["first", "ask=yes"]);
}

#[tokio::test]
async fn a_created_thread_can_be_updated_before_its_first_run() {
    let runtime = crate::runtime();
    let (thread, new) = (id("t"), NewThread::default());
    assert!(runtime.create_thread(&thread, &new).await.unwrap());
    let thread = runtime.thread(&graph(), "t").unwrap();
    thread.update_as("first", wrote("instead")).await.unwrap();
    let paused = thread.resume().await.unwrap();
    assert_eq!(paused.state.ran, ["instead"]);
    assert_eq!(paused.interrupts().len(), 1);
}

/// A runtime whose replies get lost, and its clock.
fn forgetful() -> (Runtime, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(1_000));
    let told = time.clone();
    let clock = Clock::new(move || Timestamp(told.load(Ordering::SeqCst)));
    let runtime = Runtime::builder(Forgetful::default()).clock(clock);
    (runtime.build(), time)
}

#[tokio::test]
async fn a_sweep_applies_what_threads_specify_for_their_end() {
    let (runtime, time) = forgetful();
    for (name, lifetime) in [
        ("deleted", Some((500, AtLifetimeEnd::Delete))),
        ("pruned", Some((500, AtLifetimeEnd::KeepLatest))),
        ("young", Some((5_000, AtLifetimeEnd::Delete))),
        ("endless", None),
    ] {
        let lifetime = lifetime.map(|(ms, at_end)| ThreadLifetime { ms, at_end });
        let new = NewThread {
            lifetime,
            at: runtime.now(),
            ..NewThread::default()
        };
        // The reply to the first attempt is lost, so this may say that the thread exists.
        runtime.create_thread(&id(name), &new).await.unwrap();
        let thread = runtime.thread(&graph(), name).unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
        thread.resume_with("yes").await.unwrap();
    }
    assert_eq!(runtime.sweep_threads(100).await.unwrap(), 0);
    time.store(2_000, Ordering::SeqCst);
    assert_eq!(runtime.sweep_threads(1).await.unwrap(), 1);
    assert_eq!(runtime.sweep_threads(100).await.unwrap(), 1);
    assert_eq!(runtime.sweep_threads(100).await.unwrap(), 0);

    let mut rows = runtime.threads(&ThreadQuery::default()).await.unwrap();
    rows.sort_by(|a, b| a.thread.cmp(&b.thread));
    let left: Vec<_> = rows.iter().map(|row| row.thread.name()).collect();
    assert_eq!(left, ["endless", "pruned", "young"]);
    assert_eq!(rows[1].lifetime, None);
    let pruned = runtime.thread(&graph(), "pruned").unwrap();
    let state = pruned.state().await.unwrap().unwrap();
    assert!(state.seq > Seq(0));
    let deleted = runtime.thread(&graph(), "deleted").unwrap();
    assert!(deleted.state().await.unwrap().is_none());
}

/// A store that cannot delete threads with a certain name.
struct Stuck {
    inner: Memory,
}

impl Checkpointer for Stuck {
    fn delete<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, CheckpointResult<()>> {
        match thread.name().starts_with("stuck") {
            true => Box::pin(async {
                let why = "it is a test".to_owned();
                Err(CheckpointError::Unusable { why })
            }),
            false => self.inner.delete(thread),
        }
    }

    superstep_conformance::forward! {
        create annotate save record answer load load_at entries glance request_cancel unfinished renew threads
        count_threads sizes interrupts overdue copy forget prune expire expired export import
    }
}

#[tokio::test]
async fn a_sweep_reaches_threads_behind_many_that_cannot_be_deleted() {
    let store = Stuck {
        inner: Memory::new(),
    };
    let clock = Clock::new(|| Timestamp(9_000));
    let runtime = Runtime::builder(store).clock(clock).build();
    let stuck = (0..1_100).map(|n| (format!("stuck-{n}"), 1_000));
    let others = (0..3).map(|n| (format!("other-{n}"), 2_000));
    for (name, at) in stuck.chain(others) {
        let new = NewThread {
            lifetime: Some(ThreadLifetime {
                ms: 500,
                at_end: AtLifetimeEnd::Delete,
            }),
            at: Timestamp(at),
            ..NewThread::default()
        };
        assert!(runtime.create_thread(&id(&name), &new).await.unwrap());
    }
    let count = async || {
        let all = ThreadQuery::default();
        runtime.count_threads(&all).await.unwrap()
    };
    let failed = runtime.sweep_threads(2).await.unwrap_err();
    assert_eq!(failed.code(), "checkpoint-unusable");
    assert_eq!(count().await, 1_101);
    runtime.sweep_threads(100).await.unwrap_err();
    assert_eq!(count().await, 1_100);
}
