//! How the PostgreSQL store behaves, by concern.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod breaks;
mod cache;
mod cluster;
mod conformance;
mod kit;
mod lost_replies;
mod migrations;
mod moving;
mod outbox;
mod overtaking;
mod places;
mod queue_owner;
mod races;
mod records;
mod registry;
mod request_queue;
mod sizes;
mod thread_rows;
mod tls;
