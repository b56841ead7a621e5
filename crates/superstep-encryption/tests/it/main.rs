//! What wrapped stores promise, over every store that we have.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod conformance;
mod keys;
mod kit;
mod live;
mod queue;
mod registry;
mod rotation;
mod secrecy;
mod tampering;
