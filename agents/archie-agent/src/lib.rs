//! The interface between an Archie agent and the program that hosts it.
//!
//! An agent is a graph. For a person to use it, it also needs a model, a folder and a store ([`AgentDeps`]), a way to show its
//! interrupts and read answers ([`AgentUi`], [`InterruptRequest`]), and safe access to untrusted data: the person's files
//! ([`user_folder`]) and text from third parties ([`printable`], [`markdown`]). This crate provides these and knows nothing
//! about command lines.
//!
//! A host builds [`Agent`]s with [`AgentFactory`] functions and holds them without knowing their state types. `archie` is such
//! a host; `archie new NAME` creates a new agent crate that depends on this one.
//!
//! In reading order: [`Agent`] and [`AgentDeps`], [`AgentUi`], [`InterruptRequest`], [`Terminal`], [`user_folder`].
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Interrupts and approvals](../../book/html/docs/concepts/interrupts-and-approvals.html)
//! - [Folders](../../book/html/docs/folders.html)

mod agent;
mod choice;
pub mod clock;
mod exit;
pub mod form;
pub mod interrupt;
pub mod layout;
pub mod markdown;
pub mod mcp;
mod models;
pub mod printable;
pub mod private_file;
mod profile;
pub mod prompts;
pub mod style;
mod terminal;
pub mod terminal_markdown;
pub mod thread_folders;
mod threads;
pub mod time_text;
mod ui;
mod usage;
pub mod user_folder;
pub mod value_diff;

pub use agent::{Agent, AgentDeps, AgentFactory, FETCH_PAGE};
pub use choice::{AnswerChoice, ChoiceInput};
pub use exit::Exit;
pub use interrupt::InterruptRequest;
pub use models::ModelRegistry;
pub use profile::{ModelProfile, ModelProfiles};
pub use terminal::{LineMark, Spinner, Terminal, Waiting, json_of};
pub use thread_folders::ThreadFolders;
pub use threads::{each_entry, state_of};
pub use ui::{AgentUi, Output, PlainUi, requested_tools};
pub use usage::UsageTotal;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
