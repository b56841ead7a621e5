//! What an agent of Archie shares with its host.
//!
//! An agent is a graph. To be used by a person it also needs a model, a folder and a store ([`AgentDeps`]), a way to show its
//! interrupts and to read answers ([`AgentUi`], [`InterruptRequest`]), and safe ways to touch what is not ours: files of the
//! person ([`user_folder`]), text of strangers ([`printable`], [`markdown`]). That is here, and nothing about command lines.
//!
//! A host builds [`Agent`]s with [`AgentFactory`] functions and holds them without knowing their state types. `archie` is such a
//! host; `archie new NAME` makes an agent of your own that depends on this crate.
//!
//! In reading order: [`Agent`] and [`AgentDeps`], [`AgentUi`], [`InterruptRequest`], [`Terminal`], [`user_folder`].

mod agent;
pub mod clock;
mod exit;
pub mod interrupt;
pub mod markdown;
mod models;
pub mod printable;
pub mod private_file;
pub mod prompts;
mod terminal;
mod threads;
mod ui;
mod usage;
pub mod user_folder;

pub use agent::{Agent, AgentDeps, AgentFactory};
pub use exit::Exit;
pub use interrupt::InterruptRequest;
pub use models::ModelRegistry;
pub use terminal::{Terminal, Waiting, json_of};
pub use threads::{each_entry, state_of};
pub use ui::{AgentUi, Output, PlainUi};
pub use usage::UsageTotal;
