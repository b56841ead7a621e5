//! `atris`, over servers on this machine.

pub(crate) mod acceptance;
mod checklist;
mod crashes;
mod documents;
mod lab;
mod options;
mod prism;
pub(crate) mod server;
mod writes;

pub(crate) use server::{Server, ServerReply};
