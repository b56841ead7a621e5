//! Events of a thread as a `Stream`: what comes before an error comes first, an error ends it, and dropping it stops its work.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_core::Stream;
use superstep::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, Memory, StoredBody};
use superstep::prelude::*;
use superstep::run::{StreamEvent, StreamEventBody};
use superstep::{DriveError, Event, Events, Seq, ThreadId};

use crate::kit::{Log, LogUpdate, row, wrote};

/// Reads the log as told: slowly, never, or with a damaged entry.
#[derive(Clone, Default)]
struct OddLog {
    inner: Memory,
    /// Time that a read takes.
    delay: Duration,
    hangs: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
    damaged: Option<Seq>,
}

struct Reading(Arc<AtomicUsize>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Checkpointer for OddLog {
    fn entries<'a>(
        &'a self,
        thread: &'a ThreadId,
        after: Seq,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<StoredBody>>> {
        Box::pin(async move {
            self.reads.fetch_add(1, Ordering::SeqCst);
            let _reading = Reading(self.reads.clone());
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(self.delay).await;
            let mut entries = self.inner.entries(thread, after, limit).await?;
            for entry in &mut entries {
                if Some(entry.seq) == self.damaged {
                    entry.body.truncate(3);
                }
            }
            Ok(entries)
        })
    }

    superstep_conformance::forward! {
        create annotate save record answer load load_at glance request_cancel unfinished renew threads count_threads sizes
        interrupts overdue copy delete forget prune expire expired export import
    }
}

async fn polled(events: &mut Events) -> Option<Result<Event, DriveError>> {
    std::future::poll_fn(|cx| Pin::new(&mut *events).poll_next(cx)).await
}

fn logged(event: Event) -> StreamEvent {
    match event {
        Event::Logged(logged) => logged,
        other => panic!("{other:?}"),
    }
}

async fn ran(store: &OddLog) -> Thread<Log> {
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&row(&["a", "b", "c"]), "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    thread
}

#[tokio::test]
async fn an_error_comes_after_what_was_read_before_it_and_ends_the_stream() {
    let mut store = OddLog::default();
    let all = ran(&store).await.events(Seq(0)).stored().await.unwrap();
    store.damaged = Some(Seq(3));
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&row(&["a", "b", "c"]), "t").unwrap();

    let mut events = thread.events(Seq(0));
    let mut seen = Vec::new();
    let error = loop {
        match polled(&mut events).await.expect("an error comes first") {
            Ok(event) => seen.push(logged(event)),
            Err(error) => break error,
        }
    };
    let before: Vec<_> = all.iter().filter(|event| event.seq < Seq(3)).collect();
    assert!(!before.is_empty());
    assert_eq!(seen.iter().collect::<Vec<_>>(), before);
    assert_eq!(error.code(), "checkpoint-format", "{error:?}");
    assert!(polled(&mut events).await.is_none());
    assert!(polled(&mut events).await.is_none());
    // A caller that asks on gets the error again, and no event out of order.
    assert!(events.next().await.is_err());
}

#[tokio::test]
async fn what_is_stored_while_the_log_is_read_comes_after_what_its_nodes_showed() {
    let store = OddLog {
        delay: Duration::from_millis(50),
        ..OddLog::default()
    };
    let graph = Graph::builder("shows")
        .node("a", async |_: View<Log>, cx: NodeCx| {
            cx.emit_live("token")?;
            Ok::<_, NodeError>(wrote("a"))
        })
        .edge(START, "a")
        .edge("a", END)
        .build()
        .unwrap();
    let thread = Runtime::new(store).thread(&graph, "t").unwrap();
    let mut watcher = thread.events(Seq(0));
    let watch = async {
        let mut seen = Vec::new();
        loop {
            match watcher.next().await.unwrap() {
                Event::Live(_) => seen.push("token"),
                Event::Logged(logged) => match logged.what {
                    StreamEventBody::Update { .. } => seen.push("ended"),
                    StreamEventBody::Stopped(_) => break seen,
                    _ => {}
                },
                Event::Replaced { task } => panic!("{task} was not run twice"),
            }
        }
    };
    let (seen, stopped) = tokio::join!(watch, thread.start(LogUpdate::default()));
    stopped.unwrap();
    assert_eq!(seen, ["token", "ended"]);
}

#[tokio::test]
async fn dropping_the_stream_drops_the_read_that_it_waits_for() {
    let store = OddLog::default();
    let thread = ran(&store).await;
    store.hangs.store(true, Ordering::SeqCst);
    let mut events = thread.events(Seq(0));
    let wait = tokio::time::timeout(Duration::from_millis(20), polled(&mut events));
    assert!(wait.await.is_err());
    assert_eq!(store.reads.load(Ordering::SeqCst), 1);
    drop(events);
    assert_eq!(store.reads.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_caller_that_gives_up_waiting_again_and_again_still_sees_everything_once() {
    let store = OddLog {
        delay: Duration::from_millis(20),
        ..OddLog::default()
    };
    let thread = ran(&store).await;
    let all = thread.events(Seq(0)).stored().await.unwrap();
    let mut events = thread.events(Seq(0));
    let mut seen = Vec::new();
    let watching = async {
        while seen.len() < all.len() {
            // Shorter than a read of the log takes.
            let wait = Duration::from_millis(2);
            if let Ok(event) = tokio::time::timeout(wait, events.next()).await {
                seen.push(logged(event.unwrap()));
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), watching)
        .await
        .expect("reading makes progress");
    assert_eq!(seen, all);
}

#[tokio::test]
async fn what_is_stored_is_what_a_watcher_has_not_seen_yet() {
    let store = OddLog::default();
    let thread = ran(&store).await;
    let all = thread.events(Seq(0)).stored().await.unwrap();
    for seen in 0..=all.len() {
        let mut events = thread.events(Seq(0));
        for expected in &all[..seen] {
            assert_eq!(logged(events.next().await.unwrap()), *expected);
        }
        if seen == all.len() {
            // Waits for more, which does not come.
            let wait = tokio::time::timeout(Duration::from_millis(5), events.next());
            assert!(wait.await.is_err());
        }
        assert_eq!(events.stored().await.unwrap(), all[seen..], "after {seen}");
    }
}
