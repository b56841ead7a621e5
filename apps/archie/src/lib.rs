//! Archie: durable agents in one program.
//!
//! What a person installs: a shell and a command line over threads that survive whatever happens to the process. The program is a
//! library too, so that an agent of your own can stand beside ours in the same shell and inbox.
//!
//! It never sends anything anywhere but to the model that was chosen and to the APIs that a person asks, it keeps nothing but what is in its store and beside the
//! person's own files, and it knows no rule of the runtime: what may run again, who wins, what is stored, all that is
//! `superstep`'s.
//!
//! In reading order: [`run`] (the whole program), [`cli::args`] (what can be typed), [`app::App`] (the store, the runtime, the
//! agents), [`session::Session`] (a person and a thread), [`commands`], [`shell`], [`terminal`] (the one way to print),
//! [`agents`].
//!
//! A program with an agent of your own is a line; `archie new NAME` makes one:
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

pub mod agents;
pub mod app;
pub mod cli;
pub mod commands;
#[doc(hidden)]
pub mod fuzzing;
pub mod inbox;
mod program;
mod running;
mod secret;
pub mod session;
pub mod shell;
pub mod terminal;

pub(crate) use program::complain;
pub use program::run;
