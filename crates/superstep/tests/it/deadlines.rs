//! Scans for overdue interrupts: what is unreadable, waits or fails does not keep the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use superstep::checkpoint::{
    BoxFuture, CheckpointResult, Checkpointer, InterruptRow, Memory, OverdueCursor,
};
use superstep::prelude::*;
use superstep::{Clock, DeadlineScan, Timestamp};

use crate::kit::{Log, LogUpdate, wrote};

/// A store that counts the interrupts that scans read, and damages those of threads whose name begins with `damaged`.
#[derive(Clone, Default)]
struct Counting {
    inner: Memory,
    read: Arc<AtomicUsize>,
}

impl Checkpointer for Counting {
    fn overdue<'a>(
        &'a self,
        now: Timestamp,
        after: Option<&'a OverdueCursor>,
        limit: u32,
    ) -> BoxFuture<'a, CheckpointResult<Vec<InterruptRow>>> {
        Box::pin(async move {
            let mut rows = self.inner.overdue(now, after, limit).await?;
            self.read.fetch_add(rows.len(), Ordering::SeqCst);
            for row in &mut rows {
                if row.thread.name().starts_with("damaged") {
                    row.body.truncate(3);
                }
            }
            Ok(rows)
        })
    }

    superstep_conformance::forward! {
        create annotate save record answer load load_at entries glance request_cancel unfinished renew threads count_threads sizes
        interrupts copy delete forget prune expire expired export import
    }
}

/// A runtime on such a store, with a clock that the test sets.
struct Scanned {
    store: Counting,
    now: Arc<AtomicI64>,
    runtime: Runtime,
}

impl Scanned {
    fn new() -> Self {
        let (store, now) = (Counting::default(), Arc::new(AtomicI64::new(0)));
        let read = now.clone();
        let clock = Clock::new(move || Timestamp(read.load(Ordering::SeqCst)));
        let runtime = Runtime::builder(store.clone()).clock(clock).build();
        Self {
            store,
            now,
            runtime,
        }
    }

    fn set_time(&self, ms: i64) {
        self.now.store(ms, Ordering::SeqCst);
    }

    /// Starts a thread that asks, with a deadline in a minute.
    async fn ask(&self, graph: &Graph<Log>, name: &str) {
        let thread = self.runtime.thread(graph, name).unwrap();
        thread.start(LogUpdate::default()).await.unwrap();
    }

    async fn ran(&self, graph: &Graph<Log>, name: &str) -> Vec<String> {
        let thread = self.runtime.thread(graph, name).unwrap();
        thread.values().await.unwrap().unwrap().ran
    }

    /// Returns the names of the threads that a scan finds, and how many interrupts it reads.
    async fn names(&self, scan: &mut DeadlineScan, threads_max: usize) -> (Vec<String>, usize) {
        let before = self.store.read.load(Ordering::SeqCst);
        let found = scan.next(threads_max).await.unwrap();
        let names = found
            .iter()
            .map(|overdue| overdue.thread().name().to_owned());
        let read = self.store.read.load(Ordering::SeqCst) - before;
        (names.collect(), read)
    }
}

/// A graph that asks, and answers itself if `answers`.
fn asking(name: &str, answers: bool) -> Graph<Log> {
    Graph::builder(name)
        .node("node", move |_: View<Log>, cx: NodeCx| async move {
            let question = Interrupt::new("q", "?").within(Duration::from_secs(60));
            let question = match answers {
                true => question.or_answer("none"),
                false => question,
            };
            let answer: String = cx.interrupt(question).await?;
            Ok::<_, NodeError>(wrote(answer))
        })
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn interrupts_behind_a_page_of_unreadable_ones_are_answered() {
    let scanned = Scanned::new();
    let graph = asking("asking", true);
    for number in 0..1_001 {
        scanned.ask(&graph, &format!("damaged-{number}")).await;
    }
    scanned.set_time(1);
    scanned.ask(&graph, "whole").await;
    scanned.set_time(60_001);
    let failed = scanned.runtime.expire_interrupts().await.unwrap_err();
    assert_eq!(failed.code(), "checkpoint-format");
    assert_eq!(scanned.ran(&graph, "whole").await, ["none"]);
}

#[tokio::test]
async fn a_scan_does_not_read_again_what_only_waits() {
    let scanned = Scanned::new();
    let (waits, answers) = (asking("waits", false), asking("answers", true));
    for number in 0..5 {
        scanned.ask(&waits, &format!("waits-{number}")).await;
    }
    scanned.set_time(70_000);
    let mut scan = DeadlineScan::new(&scanned.runtime);
    assert_eq!(scanned.names(&mut scan, 10).await, (vec![], 5));
    assert_eq!(scanned.names(&mut scan, 10).await, (vec![], 0));
    // What comes later is found, and all is read again after half a minute.
    scanned.set_time(20_000);
    scanned.ask(&answers, "answers").await;
    scanned.set_time(80_000);
    let found = scanned.names(&mut scan, 10).await;
    assert_eq!(found, (vec!["answers".to_owned()], 1));
    scanned.set_time(100_000);
    let found = scanned.names(&mut scan, 10).await;
    assert_eq!(found, (vec!["answers".to_owned()], 6));
}

#[tokio::test]
async fn a_scan_takes_as_many_threads_as_there_is_room_for_and_leaves_out_what_failed() {
    let scanned = Scanned::new();
    let graph = asking("asking", true);
    for (at, name) in [(0, "a"), (1, "b"), (2, "c")] {
        scanned.set_time(at);
        scanned.ask(&graph, name).await;
    }
    scanned.set_time(60_002);
    let mut scan = DeadlineScan::new(&scanned.runtime);
    let mut taken = scan.next(2).await.unwrap();
    let names: Vec<&str> = taken
        .iter()
        .map(|overdue| overdue.thread().name())
        .collect();
    assert_eq!(names, ["a", "b"]);
    // Those are taken, also for other scans of the runtime.
    assert_eq!(scanned.names(&mut scan, 2).await.0, ["c"]);
    let failed = taken.pop().unwrap();
    scan.defer(failed.thread().clone());
    drop(failed);
    assert_eq!(taken.pop().unwrap().expire().await.unwrap(), 1);
    assert_eq!(scanned.ran(&graph, "a").await, ["none"]);
    assert_eq!(scanned.names(&mut scan, 2).await.0, ["c"]);
    scanned.set_time(95_000);
    assert_eq!(scanned.names(&mut scan, 2).await.0, ["b", "c"]);
}
