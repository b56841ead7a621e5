//! `docs`: the documentation that refines itself.

mod acceptance;
mod crashes;
pub(crate) mod kit;
mod local_model;
mod pace;
mod source;
mod trees;
mod versions;
mod workflow;

pub(crate) use acceptance::{killed_in_a_refinement, two_agents};
pub(crate) use kit::{replies, repository};
