//! Cancel, drain, recover, poison, and how much runs at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use superstep::prelude::*;
use superstep::{Durability, Seq};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::kit::{
    Count, Log, LogUpdate, crash_at, fails, failures, memory, options, row, says, wrote,
};

const SOON: Duration = Duration::from_secs(2);

fn one(node: impl Node<Log>) -> Graph<Log> {
    Graph::builder("one")
        .node("node", node)
        .edge(START, "node")
        .edge("node", END)
        .build()
        .unwrap()
}

/// Whether a process is there and not just waiting to be counted.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.starts_with(['Z', 'X'])
}

#[tokio::test]
async fn cancelling_ends_a_child_process() {
    let (told, mut pids) = mpsc::unbounded_channel();
    let graph = one(move |_: View<Log>, _: NodeCx| {
        let told = told.clone();
        async move {
            let mut child = tokio::process::Command::new("sleep")
                .arg("1000")
                .kill_on_drop(true)
                .spawn()?;
            told.send(child.id()).map_err(NodeError::fatal)?;
            child.wait().await?;
            Ok::<_, NodeError>(wrote("slept"))
        }
    });
    let thread = memory().thread(&graph, "t").unwrap();
    let cancelling = async {
        let pid = pids.recv().await.flatten().unwrap();
        assert!(is_alive(pid));
        let asked = Instant::now();
        thread.cancel().await.unwrap();
        while is_alive(pid) {
            assert!(asked.elapsed() < SOON, "it still runs");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (stopped, ()) = tokio::join!(thread.start(LogUpdate::default()), cancelling);
    assert_eq!(stopped.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn cancelling_closes_a_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let graph = one(move |_: View<Log>, _: NodeCx| async move {
        let mut stream = TcpStream::connect(address).await?;
        stream.read_u8().await?;
        Ok::<_, NodeError>(wrote("read"))
    });
    let thread = memory().thread(&graph, "t").unwrap();
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let cancel = thread.cancel();
        let mut byte = [0; 1];
        let closed = tokio::time::timeout(SOON, stream.read(&mut byte));
        let (cancelled, closed) = tokio::join!(cancel, closed);
        cancelled.unwrap();
        assert_eq!(closed.expect("closed in time").unwrap_or(0), 0);
    };
    let (stopped, ()) = tokio::join!(thread.start(LogUpdate::default()), peer);
    assert_eq!(stopped.unwrap().outcome, Outcome::Cancelled);
}

/// A node that waits until it is dropped, the first time.
fn waits_once(calls: &Count, there: &Arc<Notify>) -> impl Node<Log> + use<> {
    waits(1, calls, there)
}

fn waits(times: u32, calls: &Count, there: &Arc<Notify>) -> impl Node<Log> + use<> {
    let (calls, there) = (calls.clone(), there.clone());
    move |_: View<Log>, _: NodeCx| {
        let (wait, there) = (calls.up() <= times, there.clone());
        async move {
            if wait {
                there.notify_one();
                std::future::pending::<()>().await;
            }
            Ok::<_, NodeError>(wrote("done"))
        }
    }
}

#[tokio::test]
async fn a_cancelled_thread_goes_on_when_it_is_resumed() {
    let (calls, there) = (Count::default(), Arc::new(Notify::new()));
    let thread = memory()
        .thread(&one(waits_once(&calls, &there)), "t")
        .unwrap();
    let (stopped, ()) = tokio::join!(thread.start(LogUpdate::default()), async {
        there.notified().await;
        thread.cancel().await.unwrap();
    });
    assert_eq!(stopped.unwrap().outcome, Outcome::Cancelled);
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["done"]);
}

#[tokio::test]
async fn a_runtime_that_drains_stores_no_answer() {
    let store = Memory::default();
    let graph = {
        let builder = Graph::builder("asking").node("ask", crate::kit::asks("q"));
        let builder = builder.edge(START, "ask").edge("ask", END);
        builder.build().unwrap()
    };
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    runtime.drain().await;
    let refused = thread.answer_only("yes").await.unwrap_err();
    assert_eq!(refused.code(), "drive-draining");
    assert_eq!(thread.interrupts().await.unwrap().len(), 1);

    let next = Runtime::new(store).thread(&graph, "t").unwrap();
    let done = next.answer_only("yes").await.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
}

#[tokio::test]
async fn a_drained_run_stops_at_its_barrier_and_another_runtime_goes_on() {
    let (first, go) = (Count::default(), Arc::new(Notify::new()));
    let there = Arc::new(Notify::new());
    let graph = {
        let (first, go, there) = (first.clone(), go.clone(), there.clone());
        Graph::builder("drained")
            .node("a", move |_: View<Log>, _: NodeCx| {
                first.up();
                let (go, there) = (go.clone(), there.clone());
                async move {
                    there.notify_one();
                    go.notified().await;
                    Ok::<_, NodeError>(wrote("a"))
                }
            })
            .node("b", says("b"))
            .edge(START, "a")
            .edge("a", "b")
            .edge("b", END)
            .build()
            .unwrap()
    };
    let store = Memory::default();
    let runtime = Runtime::new(store.clone());
    let thread = runtime.thread(&graph, "t").unwrap();
    let (stopped, ()) = tokio::join!(thread.start(LogUpdate::default()), async {
        there.notified().await;
        tokio::join!(runtime.drain(), async { go.notify_one() });
    });
    let stopped = stopped.unwrap();
    assert_eq!(stopped.outcome, Outcome::Drained);
    assert_eq!(stopped.state.ran, ["a"]);
    let refused = thread.recover().await.unwrap_err();
    assert_eq!(refused.code(), "drive-draining");

    let next = Runtime::new(store);
    next.register(&graph);
    let recovered = next.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!(*recovered[0].1.as_ref().unwrap(), Outcome::Finished);
    let state = next.thread(&graph, "t").unwrap().state().await.unwrap();
    assert_eq!(
        state.unwrap().values.decode::<Log>().unwrap().ran,
        ["a", "b"]
    );
    assert_eq!(first.get(), 1);
    assert!(next.recover().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_that_kills_its_process_every_time_is_parked() {
    let (calls, there) = (Count::default(), Arc::new(Notify::new()));
    let graph = one(waits(4, &calls, &there));
    let store = Memory::default();
    let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
    crash_at(&there, thread.start(LogUpdate::default())).await;
    for _ in 0..3 {
        let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
        crash_at(&there, thread.recover()).await;
    }
    let parked = thread.recover().await.unwrap();
    assert_eq!(failures(&parked)[0].1.code(), "node-poisoned");
    assert_eq!(calls.get(), 4, "the fourth recovery ran nothing");
    // A person may try again.
    let done = thread.resume().await.unwrap();
    assert_eq!(done.state.ran, ["done"]);
}

#[tokio::test]
async fn no_more_tasks_run_at_once_than_the_runtime_allows() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut builder = Graph::builder("wide");
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        let (now, most) = (now.clone(), most.clone());
        builder = builder
            .node(name, move |_: View<Log>, _: NodeCx| {
                let (now, most) = (now.clone(), most.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    for _ in 0..5 {
                        tokio::task::yield_now().await;
                    }
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, NodeError>(wrote(name))
                }
            })
            .edge(START, name)
            .edge(name, END);
    }
    let runtime = Runtime::builder(Memory::default())
        .concurrent_tasks(3)
        .build();
    let thread = runtime.thread(&builder.build().unwrap(), "t").unwrap();
    let done = thread.start(LogUpdate::default()).await.unwrap();
    assert_eq!(done.state.ran.len(), 7);
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn more_tasks_than_a_superstep_may_have_are_refused_before_any_runs() {
    let calls = Count::default();
    let graph = Graph::builder("wide")
        .node("a", fails("a", 0, &calls))
        .node("b", fails("b", 0, &calls))
        .edge(START, "a")
        .edge(START, "b")
        .edge("a", END)
        .edge("b", END)
        .build()
        .unwrap();
    let thread = memory().thread(&graph, "t").unwrap();
    let limited = thread.with_options(options(|o| o.tasks_max = 1));
    let failed = limited.start(LogUpdate::default()).await.unwrap();
    assert_eq!(failures(&failed)[0].1.code(), "node-too-many-tasks");
    assert_eq!(calls.get(), 0);
}

#[tokio::test]
async fn how_many_checkpoints_each_durability_makes() {
    for (durability, entries) in [
        (Durability::Sync, 4),
        (Durability::Async, 4),
        (Durability::Exit, 1 + crate::ENTRIES_OF_AN_ID),
    ] {
        let thread = memory().thread(&row(&["a", "b", "c"]), "t").unwrap();
        let thread = thread.with_options(options(|o| o.durability = durability));
        let done = thread.start(LogUpdate::default()).await.unwrap();
        assert_eq!(done.state.ran, ["a", "b", "c"], "{durability:?}");
        let history = thread.history(Seq(0), 100).await.unwrap();
        assert_eq!(history.len(), entries, "{durability:?}");
        // However it was stored, it is the same thread.
        let state = thread.state().await.unwrap().unwrap();
        assert_eq!(state.values.decode::<Log>().unwrap(), done.state);
    }
}

#[tokio::test]
async fn what_a_crash_costs_under_each_durability() {
    for (durability, first_runs) in [
        (Durability::Sync, 1),
        (Durability::Async, 1),
        // Nothing was stored: the run is lost, and there is nothing to recover.
        (Durability::Exit, 1),
    ] {
        let (first, second) = (Count::default(), Count::default());
        let there = Arc::new(Notify::new());
        let graph = Graph::builder("crash")
            .node("a", fails("a", 0, &first))
            .node("b", waits_once(&second, &there))
            .edge(START, "a")
            .edge("a", "b")
            .edge("b", END)
            .build()
            .unwrap();
        let store = Memory::default();
        let thread = Runtime::new(store.clone()).thread(&graph, "t").unwrap();
        let thread = thread.with_options(options(|o| o.durability = durability));
        crash_at(&there, thread.start(LogUpdate::default())).await;
        let thread = Runtime::new(store).thread(&graph, "t").unwrap();
        let done = thread.recover().await.unwrap();
        assert_eq!(done.outcome, Outcome::Finished);
        if durability == Durability::Exit {
            assert!(done.state.ran.is_empty());
        } else {
            assert_eq!(done.state.ran, ["a", "done"], "{durability:?}");
        }
        assert_eq!(first.get(), first_runs, "{durability:?}");
    }
}

#[tokio::test]
async fn steps_are_recorded_at_once_under_every_durability() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let effects = Count::default();
        let counted = effects.clone();
        let graph = one(move |_: View<Log>, cx: NodeCx| {
            let effects = counted.clone();
            async move {
                cx.step("effect", || async { Ok(effects.up()) }).await?;
                let yes: bool = cx.interrupt(Interrupt::new("q", "?")).await?;
                Ok::<_, NodeError>(wrote(yes.to_string()))
            }
        });
        let thread = memory().thread(&graph, "t").unwrap();
        let thread = thread.with_options(options(|o| o.durability = durability));
        thread.start(LogUpdate::default()).await.unwrap();
        let done = thread.answer_only(true).await.unwrap().unwrap();
        assert_eq!(done.state.ran, ["true"]);
        assert_eq!(effects.get(), 1, "{durability:?}");
    }
}
