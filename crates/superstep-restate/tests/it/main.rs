//! Graphs on a real Restate, with a real PostgreSQL and a real Redis.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod draining;
mod identity;
mod kit;
mod live;
mod refusals;
mod servers;
mod threads;
mod timers;
mod tls;
