//! The local driver, from outside.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod background;
mod deadlines;
mod dependencies;
mod differs;
mod edits;
mod encoding_cost;
mod erased;
mod event_streams;
mod failures;
mod go_to;
mod kill_sweep;
mod kit;
mod late_commits;
mod leases;
mod lost_replies;
mod moving;
mod parity;
mod pauses;
mod remote;
mod run_queue;
mod scenario;
mod segments;
mod smoke;
mod steps;
mod stopping;
mod subgraphs;
mod thread_rows;
mod time_travel;
mod traces;
mod ui;
mod upgrades;
mod values;
mod watching;
mod wide;
mod workflows;

/// How many entries more a run has because it has an id.
const ENTRIES_OF_AN_ID: usize = 0;

/// What the scenarios run on.
fn runtime() -> superstep::Runtime {
    superstep::Runtime::new(superstep::Memory::default())
}
