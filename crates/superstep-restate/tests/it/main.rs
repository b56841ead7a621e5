//! Graphs on a real Restate, with a real PostgreSQL.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod draining;
mod identity;
mod kit;
mod threads;
mod timers;
