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
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [A first agent in ten minutes](../../book/html/docs/start/first-agent.html)
//! - [Agents](../../book/html/docs/agents.html)
//! - [Effects and tool classes](../../book/html/docs/concepts/effects-and-tool-classes.html)
//! - [Test an agent](../../book/html/docs/howto/test-an-agent.html)
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
mod pace;
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
pub use calling::{call_decided_tool, call_tool};
pub use chat::ChatMessage;
pub use digest::digest;
pub use spans::{CallTimes, RecordedReply, tool_span};
pub use team::{
    SUPERVISOR, Supervisor, SupervisorBuilder, Swarm, SwarmBuilder, active_agent, handed_over,
    handoff_tool,
};
pub use tool::{
    Class, IntoToolOutput, Tool, ToolCx, ToolError, ToolFault, ToolOutput, Tools, tool,
};

/// Makes a tool of an `async fn`; the function [`tool()`] does the same for a closure.
///
/// The model sees the name of the function, its doc comment, and its parameters with theirs. The function returns a [`Tool`]
/// afterwards. Parameters marked `#[with]` are what the tool needs from the program: they become the parameters of that
/// function. A parameter of type [`ToolCx`] gets the context of the call. The class is one of `read`, `idempotent` and `keyed`,
/// or else unsafe; `name = ".."` changes the name. Set everything else on the [`Tool`].
///
/// ```
/// use std::sync::Arc;
/// use superstep_agent::{Class, ToolCx, ToolError, tool};
///
/// # struct Bank;
/// # impl Bank {
/// #     async fn refund(&self, order: &str, cents: u64, key: &str) -> Result<String, std::io::Error> {
/// #         let _ = key;
/// #         Ok(format!("refunded {cents} for {order}"))
/// #     }
/// # }
/// /// Refunds an order.
/// #[tool(keyed)]
/// async fn refund(
///     #[with] bank: Arc<Bank>,
///     /// Number of the order.
///     order: String,
///     cents: u64,
///     cx: ToolCx,
/// ) -> Result<String, ToolError> {
///     Ok(bank.refund(&order, cents, cx.idempotency_key()).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let refund = refund(Arc::new(Bank));
/// assert_eq!(refund.class(), Class::Keyed);
/// assert_eq!(refund.spec().description, "Refunds an order.");
/// assert_eq!(refund.spec().schema["properties"]["order"]["description"], "Number of the order.");
/// let output = refund.test_call(serde_json::json!({ "order": "17", "cents": 900 })).await?;
/// assert_eq!(output.content.text(), "refunded 900 for 17");
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "macros")]
pub use superstep_macros::tool;

/// For the code that `#[tool]` writes.
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
}

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
