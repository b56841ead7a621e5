//! Agents: tools whose effects happen once or are asked about, approvals that bind what was approved, and a
//! ready-made loop of a model and its tools.
//!
//! **Decide, commit, act.** A model's message with its tool calls is committed by the node that asked the model, before
//! the node that calls the tools begins. What a crash, a retry or another worker may repeat is then only the calling, and
//! each [`Tool`] says by its [`Class`] what that means: read again, call again under the same key, look whether it
//! happened, or ask a person. Nothing here is ever called "exactly once": an effect outside happens once if its receiver
//! drops what it has seen, or can be asked; otherwise at most once, with a question where nobody knows.
//!
//! **Approval.** A tool may need a person's word: always, for some arguments, or because of the [labels] of what the model
//! had read. What is executed is what was approved, byte for byte; see [`Approval`].
//!
//! In reading order: [`tool()`] and [`Tool`], [`ToolCx`], [`ToolError`]; [`Agent`], which makes a graph over
//! [`AgentState`] or a state of your own ([`Conversation`]); [`Hooks`]; [`Spending`], for limits. The parts of the loop are
//! nodes that other graphs can use: [`ModelNode`] and [`ToolNode`]; a node of your own asks with [`ask_model`],
//! or [`within`] limits, and calls with [`call_tool`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use superstep_agent::{Agent, AgentState, tool};
//! use superstep_llm::Script;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct City {
//!     /// Its name.
//!     name: String,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let weather = tool("weather", "The weather of a city, now.", |city: City, _cx| async move {
//!     Ok(format!("Rain in {}.", city.name))
//! })
//! .read();
//! let model = Arc::new(Script::parse("demo", r#"{"replies": []}"#)?);
//! let graph = Agent::builder(model).system("Be brief.").tools([weather]).build()?;
//! # let _: superstep_core::Graph<AgentState> = graph;
//! # Ok(())
//! # }
//! ```
//!
//! [labels]: superstep_core::label

mod agent;
mod approval;
mod asking;
pub mod budget;
mod call;
mod calling;
mod chat;
mod digest;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod memory;
#[cfg(feature = "otlp")]
pub mod otlp;
mod spans;
mod tool;
pub mod trace;

pub use agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, AgentState, AgentStateUpdate, Conversation, Ended,
    Go, HookCx, Hooks, MODEL, ModelNode, Spending, Spent, TOOLS, ToolNode, Turn,
    labels_of_last_answer, unanswered_calls,
};
pub use approval::Approval;
pub use asking::{Asker, ask_model, ask_model_for, failure, within, within_recorded};
pub use call::{Agreed, Calls, Decision};
pub use calling::call_tool;
pub use chat::ChatMessage;
pub use digest::digest;
pub use spans::{Took, tool_span};
pub use tool::{Class, Tool, ToolCx, ToolError, ToolFault, ToolOutput, Tools, tool};

/// The examples of the page on traces compile.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../../../docs/traces.md")]
struct Traces;

/// The examples of the page on agents compile.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/agents.md")]
struct Agents;
