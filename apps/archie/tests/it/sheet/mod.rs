//! `sheet`: its checklist, its walls, its workbooks, its crashes.

mod acceptance;
mod answers;
mod change_set;
mod checklist;
mod crashes;
mod escapes;
mod hostile;
mod kept;
mod killed;
pub(crate) mod kit;
mod local;
mod looks;
mod time_travel;
mod workbooks;

pub(crate) use acceptance::{killed_in_a_plan, replies as counting, with_sales};
pub(crate) use kit::{empty_parts, package};
