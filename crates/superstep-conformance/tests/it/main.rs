//! The suite against the reference implementations, and against ones that are broken on purpose.

mod archives;
mod broken;
mod sim;
mod teeth;

use serde_json::{Value as Json, json};
use superstep_conformance::{block_on, checkpointer, registry, store};
use superstep_core::checkpoint::{Checkpointer, Commit, Head, Memory};
use superstep_core::registry::{MemoryRegistry, NewRun, Registry, RunEnd, RunStatus, WhenBusy};
use superstep_core::store::MemoryStore;
use superstep_core::{AssistantId, Epoch, RunId, Seq, ThreadId, Timestamp};

#[test]
fn memory_keeps_every_clause() {
    let report = block_on(checkpointer(async || Memory::new()));
    report.assert();
    assert!(report.passed.len() >= 100, "{report}");
}

#[test]
fn memory_store_keeps_every_clause() {
    let report = block_on(store(async || MemoryStore::new()));
    report.assert();
    assert!(report.passed.len() >= 25, "{report}");
}

#[test]
fn memory_registry_keeps_every_clause() {
    let report = block_on(registry(async || MemoryRegistry::new()));
    report.assert();
    assert!(report.passed.len() >= 80, "{report}");
}

#[test]
fn a_memory_registry_stores_no_end_that_is_active() {
    let source = MemoryRegistry::new();
    let run = NewRun {
        id: RunId::from_bytes([1; 16]),
        thread: ThreadId::new("t").unwrap(),
        assistant: AssistantId::from_bytes([1; 16]),
        principal: String::new(),
        request: Vec::new(),
        arguments: Json::Null,
        metadata: json!({}),
        when_busy: WhenBusy::Enqueue,
        at: Timestamp(0),
        due: Timestamp(0),
    };
    block_on(source.create_run(&run)).unwrap();
    let same = source.clone();
    let before = block_on(same.run("", run.id)).unwrap().unwrap();
    for status in [RunStatus::Pending, RunStatus::Running] {
        let end = RunEnd {
            status,
            error: Json::Null,
            at: Timestamp(9),
            deliveries: Vec::new(),
        };
        assert!(!block_on(source.end_run("", run.id, &end)).unwrap());
    }
    assert_eq!(block_on(same.run("", run.id)).unwrap().unwrap(), before);
}

#[test]
fn a_clone_of_memory_is_the_same_and_a_deep_copy_is_not() {
    let (source, thread) = (Memory::new(), ThreadId::new("t").unwrap());
    let (same, apart) = (source.clone(), source.deep_copy());
    let start = Commit {
        thread: thread.clone(),
        expect: Head::default(),
        head: Head {
            epoch: Epoch(1),
            seq: Seq(1),
            ..Head::default()
        },
        at: Timestamp(0),
        entry: Some(vec![1]),
        snapshot: None,
        asked: Vec::new(),
        closed: Vec::new(),
        released: Vec::new(),
        listing: None,
        lease: None,
    };
    block_on(source.save(&start)).unwrap();
    assert!(block_on(same.load(&thread)).unwrap().is_some());
    assert!(block_on(apart.load(&thread)).unwrap().is_none());
    let later = source.deep_copy();
    block_on(source.delete(&thread)).unwrap();
    assert_eq!(
        block_on(later.load(&thread)).unwrap().unwrap().head,
        start.head
    );
}
