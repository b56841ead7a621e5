//! How the PostgreSQL store behaves, by concern.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod breaks;
mod cache;
mod cluster;
mod commits;
mod conformance;
mod inbox;
mod items;
mod kit;
mod lists;
mod lost_replies;
mod migrations;
mod moving;
mod overtaking;
mod places;
mod questions;
mod races;
mod records;
mod sizes;
mod threads;
