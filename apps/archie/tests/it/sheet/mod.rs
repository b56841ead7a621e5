//! `sheet`: its checklist, its walls, its workbooks, its crashes.

mod acceptance;
mod change_set;
mod checklist;
mod crashes;
mod escapes;
mod hostile;
mod kept;
mod killed;
pub(crate) mod kit;
mod local;
mod workbooks;

pub(crate) use acceptance::{killed_in_a_plan, with_sales};
pub(crate) use kit::{empty_parts, package};
