//! The scenarios of the local driver, driven in segments: what a cluster does with a run, without the cluster.
//!
//! Every segment makes one superstep, every third one is forgotten and asked for again, tasks that are handed over are run by a
//! runtime of their own, and everything that would be journaled or kept goes through bytes.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]
#![allow(dead_code, reason = "not every scenario needs everything")]

#[path = "../it/edits.rs"]
mod edits;
mod engine;
#[path = "../it/failures.rs"]
mod failures;
#[path = "../it/kit.rs"]
mod kit;
#[path = "../it/parity.rs"]
mod parity;
#[path = "../it/pauses.rs"]
mod pauses;
#[path = "../it/steps.rs"]
mod steps;
#[path = "../it/stopping.rs"]
mod stopping;
#[path = "../it/subgraphs.rs"]
mod subgraphs;
#[path = "../it/time_travel.rs"]
mod time_travel;
#[path = "../it/values.rs"]
mod values;

use superstep::{Memory, Runtime};

/// A run with an id says so before it begins, however it is stored: that is how it knows itself again.
const ENTRIES_OF_AN_ID: usize = 1;

/// What the scenarios run on.
fn runtime() -> Runtime {
    let store = Memory::default();
    Runtime::builder(store.clone())
        .engine(engine::InSegments::new(store))
        .build()
}
