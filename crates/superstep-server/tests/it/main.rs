//! The server over stores in memory, called as its clients call it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod crons;
mod kit;
mod protocol;
mod routes;
mod streams;
