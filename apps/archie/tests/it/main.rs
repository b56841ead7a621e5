//! The real program, as a person or a script uses it.

#![expect(
    clippy::unwrap_used,
    reason = "clippy lets tests unwrap, but not what helps them"
)]

mod acceptance;
mod commands;
mod crashes;
mod kit;
mod local_model;
