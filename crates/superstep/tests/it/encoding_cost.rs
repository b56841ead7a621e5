//! How often a state is encoded: its size must not be the price of what does not show it.

use std::cell::Cell;

use serde::{Deserialize, Serialize, Serializer};
use superstep::Seq;
use superstep::prelude::*;
use superstep::run::StreamMode;

use crate::kit::memory;

thread_local! {
    /// Number of times that a [`Counted`] was encoded on this OS thread, which is all of a test.
    static ENCODED: Cell<u32> = const { Cell::new(0) };
}

/// A value that counts how often it is encoded. Nodes never write it, so only whole states contain it.
#[derive(Clone, Debug, Default, Deserialize)]
struct Counted(u8);

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ENCODED.set(ENCODED.get() + 1);
        serializer.serialize_u8(self.0)
    }
}

#[derive(Clone, Debug, Default, State)]
struct Draft {
    document: String,
    counted: Counted,
    step: u64,
}

/// Two supersteps.
fn graph() -> Graph<Draft> {
    let count = |draft: View<Draft>, _: NodeCx| async move {
        Ok::<_, NodeError>(DraftUpdate::default().step(draft.step + 1))
    };
    Graph::builder("draft")
        .node("a", count)
        .node("b", count)
        .edge(START, "a")
        .edge("a", "b")
        .edge("b", END)
        .build()
        .unwrap()
}

/// Returns how often a state was encoded since the last call.
fn encoded() -> u32 {
    ENCODED.replace(0)
}

#[tokio::test]
async fn a_watcher_encodes_only_the_states_that_it_wants() {
    let thread = memory().thread(&graph(), "t").unwrap();
    thread.start(DraftUpdate::default()).await.unwrap();
    let cases = [
        (vec![StreamMode::Updates], 0),
        (vec![StreamMode::Custom, StreamMode::Tasks], 0),
        (vec![StreamMode::Values], 3),
        (vec![StreamMode::Checkpoints], 3),
        // Both show the same state, which is encoded once.
        (vec![StreamMode::Values, StreamMode::Checkpoints], 3),
    ];
    for (modes, expected) in cases {
        encoded();
        let events = thread.events(Seq(0)).only(modes.clone());
        events.stored().await.unwrap();
        assert_eq!(encoded(), expected, "stored, {modes:?}");
        let mut events = thread.events(Seq(0)).only(modes.clone());
        while !matches!(
            events.next().await.unwrap(),
            superstep::Event::Logged(item) if item.what.mode().is_none()
        ) {}
        assert_eq!(encoded(), expected, "followed, {modes:?}");
    }
    thread.events(Seq(0)).stored().await.unwrap();
    assert_eq!(encoded(), 3, "all modes");
}

#[tokio::test]
async fn modes_can_change_after_the_first_event() {
    let thread = memory().thread(&graph(), "t").unwrap();
    thread.start(DraftUpdate::default()).await.unwrap();
    let all = thread.events(Seq(0)).stored().await.unwrap();
    let mut events = thread.events(Seq(0)).only([StreamMode::Updates]);
    let first = events.next().await.unwrap().id().unwrap();
    let mut events = events.only([StreamMode::Values]);
    let second = events.next().await.unwrap();
    let is_next = |item: &&superstep::run::StreamEvent| {
        (item.seq, item.index) > (first.seq, first.index)
            && item.what.mode() == Some(StreamMode::Values)
    };
    let expected = all.iter().find(is_next).unwrap();
    assert_eq!(second, superstep::Event::Logged(expected.clone()));
}

#[tokio::test]
async fn a_run_next_to_a_large_document_does_not_encode_it() {
    let thread = memory().thread(&graph(), "t").unwrap();
    let document = "x".repeat(100_000);
    let input = DraftUpdate::default().document(document);
    thread.start(input).await.unwrap();
    encoded();
    thread.start(DraftUpdate::default()).await.unwrap();
    assert_eq!(encoded(), 0, "a run");
    let update = DraftUpdate::default().step(7);
    thread.update(update).await.unwrap();
    assert_eq!(encoded(), 0, "an update from outside");
}
