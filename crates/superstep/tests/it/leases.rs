//! Leases: `Runtime::recover` leaves the threads of living processes alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use superstep::checkpoint::{BoxFuture, CheckpointResult, Checkpointer, Memory};
use superstep::error::CheckpointError;
use superstep::prelude::*;
use superstep::{Clock, DriveError, Outcome, RunResult, Runtime, ThreadId, Timestamp};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::kit::{Count, Log, LogUpdate, patient};

const LEASE: Duration = Duration::from_millis(300);

fn runtime(store: &Memory) -> Runtime {
    Runtime::builder(store.clone()).lease(LEASE).build()
}

/// Starts a thread, and returns when its node was called.
async fn started(
    runtime: &Runtime,
    graph: &Graph<Log>,
    name: &str,
    calls: &Count,
) -> JoinSet<Result<RunResult<Log>, DriveError>> {
    let before = calls.get();
    let thread = runtime.thread(graph, name).unwrap();
    let mut running = JoinSet::new();
    running.spawn(async move { thread.start(LogUpdate::default()).await });
    while calls.get() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    running
}

/// A process that died: its leases are neither renewed nor ended.
async fn die(store: &Memory, runtime: &Runtime, graph: &Graph<Log>, name: &str, calls: &Count) {
    let running = started(runtime, graph, name, calls).await;
    let mut unfinished = store.unfinished(None, 10_000).await.unwrap().into_iter();
    let id = ThreadId::new(name).unwrap();
    let held = unfinished.find(|found| found.thread == id).unwrap();
    drop(running);
    // The abort ended the lease, as a death would not have.
    while store
        .unfinished(None, 10_000)
        .await
        .unwrap()
        .contains(&held)
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let owned = [(held.thread, held.epoch)];
    store.renew(&owned, held.lease.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_thread_that_another_process_runs_is_left_alone_for_longer_than_a_lease() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let (here, there) = (runtime(&store), runtime(&store));
    there.register(&graph);
    let mut running = started(&here, &graph, "t", &calls).await;
    for _ in 0..3 {
        let began = Instant::now();
        assert!(there.recover().await.unwrap().is_empty());
        assert!(began.elapsed() <= LEASE * 2, "{:?}", began.elapsed());
    }
    tokio::time::sleep(LEASE * 2).await;
    assert!(there.recover().await.unwrap().is_empty());
    go.notify_one();
    let stopped = running.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
    assert_eq!(calls.get(), 1, "the node ran once");
}

#[tokio::test]
async fn a_thread_whose_process_died_is_recovered_when_its_lease_is_over() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let began = Instant::now();
    die(&store, &runtime(&store), &graph, "t", &calls).await;

    let next = runtime(&store);
    next.register(&graph);
    go.notify_one();
    let recovered = next.recover().await.unwrap();
    assert!(
        matches!(&recovered[..], [(_, Ok(Outcome::Finished))]),
        "{recovered:?}"
    );
    assert!(began.elapsed() >= LEASE, "{:?}", began.elapsed());
    assert_eq!(calls.get(), 2, "the node that was interrupted ran again");
}

#[tokio::test]
async fn a_program_that_comes_up_serves_while_it_recovers() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    die(&store, &runtime(&store), &graph, "t", &calls).await;

    let next = runtime(&store);
    let thread = next.register(&graph).thread("t").unwrap();
    next.begin_recovery().await.unwrap();
    // The node waits for `go`, so the run is not over.
    assert!(thread.result().await.unwrap().is_none());
    go.notify_one();
    let recovered = async {
        while thread.result().await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LEASE * 10, recovered).await.unwrap();
    assert_eq!(calls.get(), 2, "the node that was interrupted ran again");
}

#[tokio::test]
async fn a_run_whose_future_was_dropped_is_recovered_at_once() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let here = Runtime::new(store.clone());
    let thread = here.thread(&graph, "t").unwrap();
    let run = thread.start(LogUpdate::default());
    let dropped = tokio::time::timeout(Duration::from_millis(50), run).await;
    assert!(dropped.is_err());
    assert_eq!(calls.get(), 1);

    go.notify_one();
    let began = Instant::now();
    let recovered = here.recover().await.unwrap();
    assert!(matches!(&recovered[..], [(_, Ok(Outcome::Finished))]));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn many_processes_that_recover_at_once_run_each_thread_once() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let dead = runtime(&store);
    for n in 0..20 {
        die(&store, &dead, &graph, &format!("t{n}"), &calls).await;
    }
    let deaths = calls.get();
    let mut opener = JoinSet::new();
    opener.spawn(async move {
        loop {
            go.notify_waiters();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let mut recovering = JoinSet::new();
    for _ in 0..4 {
        let next = runtime(&store);
        next.register(&graph);
        recovering.spawn(async move { next.recover().await.unwrap() });
    }
    let mut recovered = Vec::new();
    while let Some(done) = recovering.join_next().await {
        recovered.extend(done.unwrap());
    }
    drop(opener);
    assert_eq!(recovered.len(), 20, "{recovered:?}");
    assert!((recovered.iter()).all(|(_, outcome)| matches!(outcome, Ok(Outcome::Finished))));
    assert_eq!(calls.get() - deaths, 20, "each node ran once more");
}

#[tokio::test]
async fn without_a_lease_a_thread_is_recovered_at_once() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    die(&store, &Runtime::new(store.clone()), &graph, "t", &calls).await;
    let next = Runtime::builder(store).lease(Duration::ZERO).build();
    next.register(&graph);
    go.notify_one();
    let began = Instant::now();
    assert_eq!(next.recover().await.unwrap().len(), 1);
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// A store that is out of reach for a while.
#[derive(Clone)]
struct Cut {
    inner: Memory,
    until: Arc<std::sync::Mutex<Option<Instant>>>,
}

impl Cut {
    fn reached<'a, T>(
        &self,
        work: BoxFuture<'a, CheckpointResult<T>>,
    ) -> BoxFuture<'a, CheckpointResult<T>> {
        let until = *self.until.lock().unwrap();
        match until.is_some_and(|until| Instant::now() < until) {
            true => Box::pin(async { Err(CheckpointError::store("out of reach")) }),
            false => work,
        }
    }
}

impl Checkpointer for Cut {
    superstep_conformance::forward! {
        through reached:
        create annotate save record answer load load_at entries glance request_cancel unfinished renew threads
        count_threads sizes interrupts overdue copy delete forget prune expire expired export import
    }
}

#[tokio::test]
async fn a_process_that_was_cut_off_renews_as_soon_as_it_can() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let cut = Cut {
        inner: store.clone(),
        until: Arc::default(),
    };
    let here = Runtime::builder(cut.clone()).lease(LEASE).build();
    let mut running = started(&here, &graph, "t", &calls).await;
    let before = store.unfinished(None, 10).await.unwrap();
    *cut.until.lock().unwrap() = Some(Instant::now() + LEASE * 3);
    let renewed = loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let found = store.unfinished(None, 10).await.unwrap();
        if found != before {
            break found[0].lease.unwrap();
        }
    };
    // What it had chosen before the store came back would be over.
    let now = Runtime::new(store.clone()).now();
    assert!(renewed > now, "{renewed:?} at {now:?}");
    go.notify_one();
    let stopped = running.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(stopped.outcome, Outcome::Finished);
}

#[tokio::test]
async fn a_clock_that_stands_still_does_not_make_a_process_look_dead() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let stopped_clock = || Clock::new(|| Timestamp(1_000_000));
    let runtime = || {
        Runtime::builder(store.clone())
            .lease(LEASE)
            .clock(stopped_clock())
            .build()
    };
    let (here, there) = (runtime(), runtime());
    there.register(&graph);
    let mut running = started(&here, &graph, "t", &calls).await;
    tokio::time::sleep(LEASE).await;
    assert!(there.recover().await.unwrap().is_empty());
    go.notify_one();
    assert!(running.join_next().await.unwrap().unwrap().is_ok());
    assert_eq!(calls.get(), 1);
}

#[tokio::test]
async fn orphans_are_found_behind_a_thousand_other_threads() {
    let (calls, go) = (Count::default(), Arc::new(Notify::new()));
    let (store, graph) = (Memory::new(), patient(&calls, &go));
    let far = Timestamp(Runtime::new(store.clone()).now().0 + 3_600_000);
    for n in 0..1_500 {
        let id = ThreadId::new(&format!("a{n}")).unwrap();
        let owner = superstep_conformance::sample::Owner::started_at(&store, &id);
        let owned = [(id.clone(), owner.await.unwrap().head.epoch)];
        store.renew(&owned, far).await.unwrap();
    }
    die(&store, &runtime(&store), &graph, "z", &calls).await;
    let next = runtime(&store);
    next.register(&graph);
    go.notify_one();
    let recovered = next.recover().await.unwrap();
    // Nobody renews the others either; their graph is unknown here.
    assert_eq!(recovered.len(), 1_501);
    assert!(matches!(&recovered[1_500], (thread, Ok(Outcome::Finished)) if thread.name() == "z"));
}
