//! Agents for durable execution: tool calling with declared effect classes, human-in-the-loop approvals that bind the exact
//! call, budgets, traces, and a ready-made loop of a model and its tools.
//!
//! **Decide, commit, act.** The node that asks the model commits the model's message, with its tool calls, before the node
//! that calls the tools starts. So a crash, a retry or another worker can repeat only the calling, and the [`Class`] of each
//! [`Tool`] says what to do then: read again, call again under the same idempotency key, look up whether the call happened,
//! or ask a person. An outside effect is effectively once if the receiver deduplicates by our key, is idempotent, or can be
//! looked up; otherwise it is at most once, and a person is asked when the outcome is unknown.
//!
//! **Approval.** A tool can require a person's approval: always, for some arguments, or because of the [labels] of what the
//! model has read. The call that runs is byte for byte the call that was approved; see [`Approval`].
//!
//! In reading order: [`tool()`] and [`Tool`], [`ToolCx`], [`ToolError`]; [`Agent`], which builds a graph over [`AgentState`]
//! or over your own state ([`Conversation`]); [`Hooks`]; [`Spending`], for limits. The parts of the loop are nodes that other
//! graphs can use: [`ModelNode`] and [`ToolNode`]. Your own nodes call models with [`ask_model`], or [`within`] limits, and
//! tools with [`call_tool`].
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
mod team;
mod tool;
pub mod trace;

pub use agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, AgentState, AgentStateUpdate, Conversation,
    EndReason, Go, HookCx, Hooks, MODEL, ModelNode, Spending, Spent, StructuredAnswer,
    SummarizeHistory, TOOLS, ToolNode, TrimHistory, Turn, labels_of_last_answer, unanswered_calls,
    with_all_results,
};
pub use approval::Approval;
pub use asking::{Asker, ask_model, ask_model_for, failure, within, within_recorded};
pub use call::{Calls, DecidedCall, Decision};
pub use calling::call_tool;
pub use chat::ChatMessage;
pub use digest::digest;
pub use spans::{CallTimes, tool_span};
pub use team::{
    SUPERVISOR, Supervisor, SupervisorBuilder, Swarm, SwarmBuilder, active_agent, handed_over,
    handoff_tool,
};
pub use tool::{
    Class, IntoToolOutput, Tool, ToolCx, ToolError, ToolFault, ToolOutput, Tools, tool,
};

/// Compiles the examples of the page on traces as doctests.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../../../docs/traces.md")]
struct Traces;

/// Compiles the examples of the page on agents as doctests.
#[cfg(all(doctest, feature = "mcp"))]
#[doc = include_str!("../../../docs/agents.md")]
struct Agents;

/// Compiles the examples of the page on streaming as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/streaming.md")]
struct Streaming;
