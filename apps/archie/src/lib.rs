//! Archie: durable agents in one program.
//!
//! A shell and a command line over threads that survive crashes, restarts and deploys. The program is also a library, so that
//! your own agent can share the shell and the inbox with the built-in ones.
//!
//! It contacts only what a person configures: models, databases, APIs, mailboxes, clusters and trace backends; `archie setup`,
//! `doctor` and `models` also look for local model servers. It stores data only in its database, in its home folder and in the output of commands.
//! The rules of execution (what may run again, who wins a race, what is stored) are all in `superstep`.
//!
//! In reading order: [`run`] (the whole program), [`cli::args`] (the command line), [`app::App`] (the store, the runtime, the
//! agents), [`session::Session`] (a person and a thread), [`commands`], [`shell`], [`terminal`] (the only place that prints),
//! [`agents`].
//!
//! A program with your own agent takes one line in `main`; `archie new NAME` creates such a project:
//!
//! ```no_run
//! use std::sync::Arc;
//! use archie_agent::{Agent, AgentDeps, PlainUi};
//! use superstep::{Command, END, Graph, NodeCx, NodeError, START, View};
//! # use superstep::State;
//! # #[derive(Clone, Debug, Default, State)]
//! # struct Greeting { text: String }
//!
//! async fn greet(_: View<Greeting>, _: NodeCx) -> Result<Command<Greeting>, NodeError> {
//!     Ok(GreetingUpdate::default().text("Hello.".to_owned()).into())
//! }
//!
//! fn greeter(_: &AgentDeps) -> anyhow::Result<Arc<Agent>> {
//!     let graph = Graph::builder("greeter")
//!         .node("greet", greet)
//!         .edge(START, "greet")
//!         .edge("greet", END)
//!         .build()?;
//!     Ok(Arc::new(Agent::new(graph, "says hello", PlainUi)))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     archie::run(&[greeter])
//! }
//! ```
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [The demo](../../book/html/docs/start/demo.html)
//! - [Commands](../../book/html/docs/cli.html)
//! - [Configuration](../../book/html/docs/configuration.html)

pub mod agents;
pub mod app;
pub mod cli;
pub mod commands;
mod ctrl_c;
mod edit_dialog;
mod editor;
#[doc(hidden)]
pub mod fuzzing;
pub mod inbox;
mod model_offers;
mod pace;
mod program;
mod retry_notes;
mod running;
mod secret;
pub mod session;
pub mod shell;
mod storage;
pub mod terminal;
mod thread_files;
pub mod trace_export;
mod typed_line;
pub mod web;

pub use program::run;
pub(crate) use program::{complain, complain_with};
