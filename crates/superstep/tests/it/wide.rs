//! Wide supersteps: which of their tasks run at the same time, and what becomes of those that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use superstep::graph::Siblings;
use superstep::prelude::*;

use crate::kit::{Count, Log, LogUpdate, failures, memory, wrote};

const BRANCH: SendTo<u32> = SendTo::new("branch");
const LONG: Duration = Duration::from_secs(10);

/// A superstep of so many tasks.
fn wide(width: u32, branch: impl Node<Log, u32>) -> Graph<Log> {
    let split = move |_: View<Log>, _: NodeCx| async move {
        let all = Command::update(LogUpdate::default());
        Ok::<_, NodeError>((0..width).fold(all, |all, n| all.send(&BRANCH, n)))
    };
    Graph::builder("wide")
        .node("split", split)
        .map_node(&BRANCH, branch)
        .siblings(Siblings::Cancel)
        .edge(START, "split")
        .commands("split", &["branch"])
        .edge("branch", END)
        .build()
        .unwrap()
}

/// Counts the nodes that are running.
#[derive(Clone, Default)]
struct Crowd {
    now: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
}

impl Crowd {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> u32 {
        self.most.load(Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_compute_overlap() {
    let crowd = Crowd::default();
    let graph = wide(200, {
        let crowd = crowd.clone();
        move |_: u32, _: NodeCx| {
            let crowd = crowd.clone();
            async move {
                crowd.enter();
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(1) {
                    std::hint::spin_loop();
                }
                crowd.leave();
                Ok::<_, NodeError>(wrote("computed"))
            }
        }
    });
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran.len(), 200);
    assert!(crowd.most() >= 2, "one after the other");
}

/// Each of these nodes needs the other ones, and none of them lets go of its OS thread before they are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nodes_that_block_do_not_hold_the_others_up() {
    const WIDTH: u32 = 32;
    let crowd = Crowd::default();
    let graph = wide(WIDTH, {
        let crowd = crowd.clone();
        move |_: u32, _: NodeCx| {
            let crowd = crowd.clone();
            async move {
                tokio::task::block_in_place(|| {
                    crowd.enter();
                    let begun = Instant::now();
                    while crowd.most() < WIDTH && begun.elapsed() < LONG {
                        std::thread::yield_now();
                    }
                });
                Ok::<_, NodeError>(wrote("met"))
            }
        }
    });
    let thread = memory().thread(&graph, "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(crowd.most(), WIDTH);
}

#[tokio::test]
async fn some_end_at_once_and_others_wait_and_all_of_them_are_counted() {
    for concurrent in [3, 1_000] {
        let graph = wide(500, |n: u32, _: NodeCx| async move {
            for _ in 0..n % 3 {
                tokio::task::yield_now().await;
            }
            Ok::<_, NodeError>(wrote(n.to_string()))
        });
        let runtime = Runtime::builder(Memory::default())
            .concurrent_tasks(concurrent)
            .build();
        let thread = runtime.thread(&graph, "t").unwrap();
        let done = thread.start(LogUpdate::default()).await.unwrap();
        // In the order in which they were sent, whichever ended first.
        let all: Vec<String> = (0..500).map(|n| n.to_string()).collect();
        assert_eq!(done.state.ran, all);
    }
}

/// Notes that it was dropped.
struct Guard(Count);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.up();
    }
}

fn one_fails_and_the_others_wait(begun: &Count, ended: &Count) -> Graph<Log> {
    let (begun, ended) = (begun.clone(), ended.clone());
    wide(500, move |n: u32, _: NodeCx| {
        let (begun, ended) = (begun.clone(), ended.clone());
        async move {
            begun.up();
            let _guard = Guard(ended);
            if n == 7 {
                return Err(NodeError::fatal("broken"));
            }
            std::future::pending::<()>().await;
            Ok(wrote("never"))
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_failure_stops_every_other_task_wherever_it_is() {
    let (begun, ended) = (Count::default(), Count::default());
    let graph = one_fails_and_the_others_wait(&begun, &ended);
    let thread = memory().thread(&graph, "t").unwrap();
    let stopped = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&stopped).len(), 1);
    assert_eq!(begun.get(), ended.get());
}

#[tokio::test]
async fn dropping_a_run_stops_every_task_wherever_it_is() {
    let (begun, ended) = (Count::default(), Count::default());
    let graph = wide(500, {
        let (begun, ended) = (begun.clone(), ended.clone());
        move |_: u32, _: NodeCx| {
            let (begun, ended) = (begun.clone(), ended.clone());
            async move {
                begun.up();
                let _guard = Guard(ended);
                std::future::pending::<()>().await;
                Ok::<_, NodeError>(wrote("never"))
            }
        }
    });
    let thread = memory().thread(&graph, "t").unwrap();
    let mut run = Box::pin(thread.start(LogUpdate::default()));
    while begun.get() == 0 {
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(run.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        tokio::task::yield_now().await;
    }
    drop(run);
    // Aborted tasks are dropped by the executor.
    let begun = begun.get();
    while ended.get() < begun {
        tokio::task::yield_now().await;
    }
}
