//! The mail assistant: its checklist, its acceptance, and everything that must not happen.

mod acceptance;
mod checklist;
mod crashes;
mod deadly;
mod evaluation;
mod evil;
mod identity;
mod killed;
pub(crate) mod kit;
mod local_model;
mod login;
mod meetings;
mod mutations;
mod schedule;
mod servers;
mod sorting;
mod tones;

pub(crate) use acceptance::{sent, with_one_approval, with_proposals};
pub(crate) use kit::{learns, mail, mbox, sends, triage, triage_of, wants};
pub(crate) use tones::with_draft;
