//! The server over stores in memory, called as its clients call it.
#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod branches;
mod connections;
mod crons;
mod files;
mod kit;
mod lost_tokens;
mod protocol;
mod routes;
mod streams;
mod subgraphs;
