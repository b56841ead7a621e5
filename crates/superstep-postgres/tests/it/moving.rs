//! Threads on their way through all our stores: the same bytes at every stop, and the same thread at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use superstep::checkpoint::{InterruptQuery, Status, ThreadQuery};
use superstep::error::CheckpointError;
use superstep::prelude::*;
use superstep::{Archive, Checkpointer, DriveError, ThreadId};
use superstep_conformance::sample::unfinished;
use superstep_sqlite::Sqlite;
use tokio::sync::Notify;

use crate::kit::{Db, db};

#[derive(Clone, Debug, Default, PartialEq, State)]
struct Errand {
    /// What is bought; nothing fails the run, and a yacht takes for ever.
    what: Option<String>,
    #[state(append)]
    done: Vec<String>,
}

/// What the outside world saw.
#[derive(Clone, Default)]
struct World {
    paid: Arc<AtomicU32>,
    waits: Arc<Notify>,
}

/// Pays in a step, asks whether to keep it, and writes down the answer.
fn graph(world: &World) -> Graph<Errand> {
    let world = world.clone();
    let pay = move |errand: View<Errand>, cx: NodeCx| {
        let world = world.clone();
        async move {
            let Some(what) = errand.what.clone() else {
                return Err(NodeError::fatal("nothing to buy"));
            };
            let paid = world.paid.clone();
            let pay = || async move { Ok(paid.fetch_add(1, Ordering::SeqCst) + 1) };
            let receipt: u32 = cx.step("pay", pay).await?;
            if what == "yacht" {
                world.waits.notify_one();
                std::future::pending::<()>().await;
            }
            let keep = Interrupt::new("keep", format!("keep the {what}?"));
            let keep: bool = cx.interrupt(keep.within(Duration::from_secs(60))).await?;
            Ok(ErrandUpdate::default().done(format!("{what} {receipt} {keep}")))
        }
    };
    let graph = Graph::builder("errand").node("pay", pay);
    graph.edge(START, "pay").edge("pay", END).build().unwrap()
}

/// Threads in every situation: finished, failed, at a question, with a process that died, with a second run.
async fn furnish(runtime: &Runtime, world: &World) -> Vec<ThreadId> {
    let graph = graph(world);
    let buys = |what: &str| ErrandUpdate::default().what(Some(what.to_owned()));
    let thread = |name: &str| runtime.thread(&graph, name).unwrap();

    let asks = thread("acme/asks");
    asks.start(buys("boat")).await.unwrap();
    let finished = thread("finished");
    finished.start(buys("car")).await.unwrap();
    finished.answer_only(true).await.unwrap();
    let twice = thread("acme/twice");
    for keep in [true, false] {
        twice.start(buys("cup")).await.unwrap();
        twice.answer_only(keep).await.unwrap();
    }
    let fails = thread("fails");
    fails.start(ErrandUpdate::default()).await.unwrap();
    let died = thread("died");
    tokio::select! {
        stopped = died.start(buys("yacht")) => panic!("it stopped: {stopped:?}"),
        () = world.waits.notified() => {}
    }
    let cancelled = thread("to-cancel");
    cancelled.start(buys("lamp")).await.unwrap();
    runtime.cancel(cancelled.id()).await.unwrap();
    [asks, finished, twice, fails, died, cancelled]
        .map(|thread| thread.id().clone())
        .into()
}

/// From the first store through all the others, compared at every stop.
async fn travel(thread: &ThreadId, from: &dyn Checkpointer, stops: &[&dyn Checkpointer]) {
    let mut bytes = from.export(thread).await.unwrap().to_bytes();
    for (at, stop) in stops.iter().enumerate() {
        let archive = Archive::from_bytes(&bytes).unwrap();
        stop.import(thread, &archive).await.unwrap();
        let exported = stop.export(thread).await.unwrap().to_bytes();
        assert!(exported == bytes, "{thread} differs at stop {at}");
        bytes = exported;
    }
}

struct Stores {
    memory: Memory,
    first: Sqlite,
    postgres: Db,
    second: Sqlite,
    _files: tempfile::TempDir,
}

async fn stores() -> Stores {
    let files = tempfile::tempdir().unwrap();
    let sqlite = |name| Sqlite::open(files.path().join(name)).unwrap();
    Stores {
        memory: Memory::default(),
        first: sqlite("first.db"),
        second: sqlite("second.db"),
        postgres: db().await,
        _files: files,
    }
}

impl Stores {
    /// All threads from memory to SQLite, to PostgreSQL, and to SQLite again.
    async fn travelled(world: &World) -> (Self, Vec<ThreadId>) {
        let stores = stores().await;
        let threads = furnish(&Runtime::new(stores.memory.clone()), world).await;
        for thread in &threads {
            let postgres: &dyn Checkpointer = &stores.postgres.postgres;
            travel(
                thread,
                &stores.memory,
                &[&stores.first, postgres, &stores.second],
            )
            .await;
        }
        (stores, threads)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_are_the_same_bytes_in_every_store() {
    let (stores, threads) = Stores::travelled(&World::default()).await;
    assert_eq!(threads.len(), 6);
    let all: [&dyn Checkpointer; 4] = [
        &stores.memory,
        &stores.first,
        &stores.postgres.postgres,
        &stores.second,
    ];
    for tenant in ["", "acme"] {
        let tenant = tenant.to_owned();
        for statuses in [vec![], vec![Status::Paused], vec![Status::Running]] {
            let query = ThreadQuery {
                tenant: tenant.clone(),
                statuses,
                ..ThreadQuery::default()
            };
            let wanted = stores.memory.threads(&query).await.unwrap();
            for store in all {
                assert_eq!(store.threads(&query).await.unwrap(), wanted);
            }
        }
        let query = InterruptQuery {
            tenant,
            ..InterruptQuery::default()
        };
        let wanted = stores.memory.interrupts(&query).await.unwrap();
        for store in all {
            assert_eq!(store.interrupts(&query).await.unwrap(), wanted);
        }
    }
    // Leases do not move along, so only names are compared.
    let wanted = unfinished(&stores.memory, 10).await.unwrap();
    for store in all {
        assert_eq!(unfinished(store, 10).await.unwrap(), wanted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_moved_is_answered_and_its_run_ends() {
    let world = World::default();
    let (stores, _) = Stores::travelled(&world).await;
    let paid = world.paid.load(Ordering::SeqCst);
    let all: [Runtime; 3] = [
        Runtime::new(stores.first.clone()),
        Runtime::new(stores.postgres.postgres.clone()),
        Runtime::new(stores.second.clone()),
    ];
    for runtime in all {
        let thread = runtime.thread(&graph(&world), "acme/asks").unwrap();
        let stopped = thread.answer_only(true).await.unwrap().unwrap();
        assert_eq!(stopped.outcome, Outcome::Finished);
        assert_eq!(stopped.state.done, ["boat 1 true"]);
        let again = thread
            .start(ErrandUpdate::default().what(Some("oar".to_owned())))
            .await
            .unwrap();
        assert!(matches!(again.outcome, Outcome::Paused(_)), "{again:?}");
    }
    // Each of the three went its own way from there, and paid for its own oar.
    assert_eq!(world.paid.load(Ordering::SeqCst), paid + 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_comes_back_is_the_newer_one_with_a_higher_epoch() {
    let world = World::default();
    let (stores, _) = Stores::travelled(&world).await;
    let postgres = Runtime::new(stores.postgres.postgres.clone());
    let thread = postgres.thread(&graph(&world), "acme/asks").unwrap();
    let before = stores.first.export(thread.id()).await.unwrap();
    thread.answer_only(false).await.unwrap();
    let archive = postgres.export(thread.id()).await.unwrap();

    let back = Runtime::new(stores.first.clone());
    let refused = back.import(thread.id(), &archive).await;
    assert!(
        matches!(
            refused,
            Err(DriveError::Checkpoint(CheckpointError::ThreadExists { .. }))
        ),
        "{refused:?}"
    );
    assert_eq!(stores.first.export(thread.id()).await.unwrap(), before);

    stores.first.delete(thread.id()).await.unwrap();
    back.import(thread.id(), &archive).await.unwrap();
    let stored = stores.first.export(thread.id()).await.unwrap();
    assert!(archive.is_same_thread(&stored));
    assert!(stored.head.epoch > before.head.epoch);
    let state = back.thread(&graph(&world), "acme/asks").unwrap();
    let values = state.state().await.unwrap().unwrap().values;
    let errand: Errand = values.decode().unwrap();
    assert_eq!(errand.done, ["boat 1 false"]);
}
