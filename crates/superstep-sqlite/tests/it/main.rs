//! How the SQLite store behaves, by concern.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod cache;
mod commits;
mod conformance;
mod damage;
mod files;
mod kit;
mod outbox;
mod questions;
mod queue_owner;
mod registry;
