//! How the PostgreSQL store behaves, by concern.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod cache;
mod commits;
mod conformance;
mod items;
mod kit;
mod lists;
mod questions;
mod sizes;
mod threads;
