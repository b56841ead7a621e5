//! Threads that move from one store to another, as the driver sees it.

use std::sync::Arc;

use superstep::error::CheckpointError;
use superstep::prelude::*;
use superstep::{Archive, Checkpointer, DriveError};
use superstep_sqlite::Sqlite;
use tokio::sync::Notify;

use crate::kit::{Count, Log, LogUpdate, crash_at, wrote};

/// Pays once, and then waits for a process to die under it, as long as it is told to.
fn errand(paid: &Count, there: &Arc<Notify>, waits: bool) -> Graph<Log> {
    let (paid, there) = (paid.clone(), there.clone());
    let pay = move |_: View<Log>, cx: NodeCx| {
        let (paid, there) = (paid.clone(), there.clone());
        async move {
            let times: u32 = cx.step("pay", || async move { Ok(paid.up()) }).await?;
            if waits {
                there.notify_one();
                std::future::pending::<()>().await;
            }
            Ok::<_, NodeError>(wrote(format!("paid {times}")))
        }
    };
    let graph = Graph::builder("errand").node("pay", pay);
    graph.edge(START, "pay").edge("pay", END).build().unwrap()
}

#[tokio::test]
async fn a_run_whose_process_died_goes_on_in_another_store_and_pays_once() {
    let (paid, there) = (Count::default(), Arc::new(Notify::new()));
    let here = Runtime::new(Memory::default());
    let thread = here.thread(&errand(&paid, &there, true), "acme/t").unwrap();
    crash_at(&there, thread.start(LogUpdate::default())).await;

    let bytes = here.export(thread.id()).await.unwrap().to_bytes();
    let archive = Archive::from_bytes(&bytes).unwrap();
    let elsewhere = Runtime::new(Sqlite::in_memory().unwrap());
    elsewhere.import(&archive.thread, &archive).await.unwrap();

    elsewhere.register(&errand(&paid, &there, false));
    let recovered = elsewhere.recover().await.unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].0, *thread.id());
    assert_eq!(*recovered[0].1.as_ref().unwrap(), Outcome::Finished);
    assert_eq!(paid.get(), 1);
}

#[tokio::test]
async fn a_thread_that_went_on_after_its_import_is_not_taken_back() {
    let (paid, there) = (Count::default(), Arc::new(Notify::new()));
    let graph = errand(&paid, &there, false);
    let (here, elsewhere) = (Memory::default(), Memory::default());
    let before = Runtime::new(here.clone());
    let thread = before.thread(&graph, "t").unwrap();
    thread.start(LogUpdate::default()).await.unwrap();
    let archive = before.export(thread.id()).await.unwrap();

    let after = Runtime::new(elsewhere.clone());
    after.import(thread.id(), &archive).await.unwrap();
    after.import(thread.id(), &archive).await.unwrap();
    let moved = after.thread(&graph, "t").unwrap();
    moved.start(LogUpdate::default()).await.unwrap();
    let newest = elsewhere.export(thread.id()).await.unwrap();
    let refused = after.import(thread.id(), &archive).await;
    assert!(
        matches!(
            refused,
            Err(DriveError::Checkpoint(CheckpointError::ThreadExists { .. }))
        ),
        "{refused:?}"
    );
    assert_eq!(elsewhere.export(thread.id()).await.unwrap(), newest);
}
