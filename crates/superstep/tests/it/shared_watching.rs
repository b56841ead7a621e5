//! Many watchers of one thread: the log is read and decoded once for all of them, and each sees what it would see alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use superstep::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, Memory, StoredBody};
use superstep::prelude::*;
use superstep::run::{StreamEvent, StreamEventBody, StreamMode};
use superstep::{Event, Events, Seq, ThreadId};
use tokio::task::JoinSet;

use crate::kit::{Log, LogUpdate, NodeFuture, wrote};

/// Counts how often the log is read. Each read takes a while, as one of a database does.
#[derive(Clone, Default)]
struct CountedLog {
    inner: Memory,
    reads: Arc<AtomicUsize>,
}

impl Checkpointer for CountedLog {
    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(async move {
            self.reads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.inner.entries(thread, after, limit).await
        })
    }

    superstep_conformance::forward! {
        create annotate save record answer load load_at glance request_cancel unfinished renew threads count_threads sizes
        interrupts overdue copy delete forget prune expire expired export import
    }
}

const STEPS: usize = 200;

/// A loop that lets its watchers see each superstep.
fn looping() -> Graph<Log> {
    let turn = |log: View<Log>, _: NodeCx| -> NodeFuture {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(wrote(format!("turn {}", log.ran.len())))
        })
    };
    let again = |log: &Log| match log.ran.len() % STEPS {
        0 => END,
        _ => "turn",
    };
    Graph::builder("looping")
        .node("turn", turn)
        .edge(START, "turn")
        .route("turn", &["turn", END], again)
        .build()
        .unwrap()
}

/// Returns the log items up to the stop of a run.
async fn until_stop(events: &mut Events) -> Vec<StreamEvent> {
    let mut seen = Vec::new();
    loop {
        if let Event::Logged(item) = events.next().await.unwrap() {
            let is_stop = matches!(item.what, StreamEventBody::Stopped(_));
            seen.push(item);
            if is_stop {
                return seen;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_watchers_read_the_log_about_once() {
    let store = CountedLog::default();
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&looping(), "t").unwrap();
    let mut watchers = JoinSet::new();
    for number in 0..100 {
        let events = thread.events(Seq(0));
        let mut events = match number % 2 {
            0 => events.only([StreamMode::Updates]),
            _ => events.only([StreamMode::Values]),
        };
        watchers.spawn(async move { (number, until_stop(&mut events).await) });
    }
    thread.start(LogUpdate::default()).await.unwrap();
    let watched = watchers.join_all().await;
    // Each of them reads its first entries alone.
    let reads = store.reads.load(Ordering::SeqCst);
    assert!(reads < 8 * STEPS, "{reads} reads of {STEPS} supersteps");
    for (number, seen) in watched {
        let mode = match number % 2 {
            0 => StreamMode::Updates,
            _ => StreamMode::Values,
        };
        let alone = thread.events(Seq(0)).only([mode]).stored().await.unwrap();
        assert!(seen == alone, "watcher {number} saw something else");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_sees_everything_and_delays_nobody() {
    let thread = Runtime::new(Memory::new());
    let thread = thread.thread(&looping(), "t").unwrap();
    let mut slow = thread.events(Seq(0)).only([StreamMode::Updates]);
    let mut quick = JoinSet::new();
    for _ in 0..3 {
        let mut events = thread.events(Seq(0)).only([StreamMode::Updates]);
        quick.spawn(async move { until_stop(&mut events).await });
    }
    let running = thread.start(LogUpdate::default());
    let watching = async {
        // It shares the log, and stops in the middle of waiting.
        for _ in 0..20 {
            slow.next().await.unwrap();
        }
        let mut nobody = Context::from_waker(Waker::noop());
        let mut next = std::pin::pin!(slow.next());
        assert!(next.as_mut().poll(&mut nobody).is_pending());
        quick.join_all().await
    };
    let (stopped, quick) = tokio::join!(running, watching);
    stopped.unwrap();
    let alone = thread.events(Seq(0)).only([StreamMode::Updates]);
    let alone = alone.stored().await.unwrap();
    assert!(alone.len() > STEPS);
    assert!(quick.iter().all(|seen| *seen == alone));
    let rest = until_stop(&mut slow).await;
    assert!(rest == alone[20..], "{} of {}", rest.len(), alone.len());
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_is_created_again_has_other_watchers() {
    let store = Memory::new();
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&looping(), "t").unwrap();
    let mut former = thread.events(Seq(0));
    let (stopped, first) =
        tokio::join!(thread.start(LogUpdate::default()), until_stop(&mut former));
    stopped.unwrap();
    store.delete(&ThreadId::new("t").unwrap()).await.unwrap();
    let mut watchers = JoinSet::new();
    for _ in 0..3 {
        let mut events = thread.events(Seq(0));
        watchers.spawn(async move { until_stop(&mut events).await });
    }
    thread.start(LogUpdate::default()).await.unwrap();
    let alone = thread.events(Seq(0)).stored().await.unwrap();
    assert_ne!(alone, first);
    for seen in watchers.join_all().await {
        assert!(seen == alone, "a watcher saw the deleted thread");
    }
    drop(former);
}

#[tokio::test(start_paused = true)]
async fn watchers_follow_a_fork() {
    let runtime = Runtime::new(Memory::new());
    let thread = runtime.thread(&looping(), "t").unwrap();
    let mut watchers = JoinSet::new();
    for _ in 0..5 {
        let mut events = thread.events(Seq(0));
        watchers.spawn(async move {
            let mut seen = until_stop(&mut events).await;
            seen.extend(until_stop(&mut events).await);
            seen
        });
    }
    thread.start(LogUpdate::default()).await.unwrap();
    thread.fork(Seq(50)).await.unwrap();
    thread.resume().await.unwrap();
    let alone = thread.events(Seq(0)).stored().await.unwrap();
    for seen in watchers.join_all().await {
        assert!(seen == alone, "a watcher saw something else after the fork");
    }
}
