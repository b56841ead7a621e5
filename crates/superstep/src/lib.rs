//! Superstep: durable execution for agent graphs, in one process or on a cluster.
//!
//! A graph is a plan over a typed state. A thread is the history of one such state. This crate runs threads with tokio: by
//! default it persists every superstep before it starts the next, so that an acknowledged step never runs again. It pauses a
//! thread at an interrupt until a person answers, and resumes after a crash or a deploy.
//!
//! This crate never talks to a model, a network or a database of its own choosing. Checkpoints go where a [`Checkpointer`]
//! stores them: [`Memory`] here, SQLite in `superstep-sqlite`.
//!
//! # A first graph
//!
//! ```
//! use superstep::prelude::*;
//!
//! #[derive(Clone, Debug, Default, State)]
//! struct Greeting {
//!     name: String,
//!     #[state(append)]
//!     lines: Vec<String>,
//! }
//!
//! async fn greet(state: View<Greeting>, _cx: NodeCx) -> Result<GreetingUpdate, NodeError> {
//!     Ok(GreetingUpdate::default().lines(format!("Hello, {}.", state.name)))
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let graph = Graph::builder("greeting")
//!         .node("greet", greet)
//!         .edge(START, "greet")
//!         .edge("greet", END)
//!         .build()?;
//!     let runtime = Runtime::new(Memory::default());
//!     let stopped = runtime.thread(&graph, "first")?.start(GreetingUpdate::default().name("Ada")).await?;
//!     assert_eq!(stopped.outcome, Outcome::Finished);
//!     assert_eq!(stopped.state.lines, ["Hello, Ada."]);
//!     Ok(())
//! }
//! ```
//!
//! # In reading order
//!
//! [`State`] and its derive, [`Graph`] and [`GraphBuilder`], [`Node`] and [`NodeCx`], [`Runtime`] and [`Thread`], [`Outcome`],
//! [`Events`]; [`AnyGraph`] and [`AnyThread`] for a program that hosts several graphs.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [A first graph in ten minutes](../../book/html/docs/start/first-graph.html)
//! - [Graphs and supersteps](../../book/html/docs/concepts/graphs-and-supersteps.html)
//! - [Durability](../../book/html/docs/concepts/durability.html)
//! - [Resume after a crash](../../book/html/docs/howto/resume-after-a-crash.html)

// The code that `derive(State)` writes refers to this crate as `superstep`, inside this crate too.
extern crate self as superstep;

mod background;
mod cache;
mod checkpoints;
mod clock;
mod deadlines;
mod drive;
mod engine;
mod erased;
mod event_reader;
mod events;
mod live_bus;
mod live_messages;
mod moving;
mod recovery;
mod retrying_checkpointer;
mod run_queue;
mod run_stream;
mod running;
mod runtime;
#[cfg(feature = "schedule")]
mod schedule;
mod spans;
mod states;
pub mod testing;
mod thread;
mod thread_log;
mod thread_rows;

pub use background::RunHandle;
pub use cache::MemoryCache;
pub use checkpoints::Checkpoint;
pub use clock::Clock;
pub use deadlines::{DeadlineScan, OverdueThread};
pub use drive::{DriveError, Driver, LocalDriver, RemoteDriver, RequestEnd};
pub use engine::Engine;
pub use erased::{AnyGraph, AnyRunResult, AnyThread};
pub use events::{Event, EventId, Events};
pub use live_bus::{LiveBus, LiveDelivery, LiveMessage, Subscription};
pub use run_queue::{QueueHealth, QueueOptions, RunEndHook, RunEndHookError, RunQueue};
pub use run_stream::RunStream;
pub use runtime::{RegisteredGraph, Runtime, RuntimeBuilder};
#[cfg(feature = "schedule")]
pub use schedule::{Schedule, ScheduleError};
pub use thread::{HistoryEntry, RunResult, Thread};

#[doc(hidden)]
pub use superstep_core::__private;
pub use superstep_core::checkpoint::{Archive, Memory};
pub use superstep_core::run::{
    Durability, RunOptions, RunReport, SegmentEnd, SegmentLimits, Suspension,
};
pub use superstep_core::{
    ApiKeyId, AssistantId, Channel, ChannelKind, ChannelSet, Checkpointer, Command, CronId,
    DeliveryId, END, Epoch, Failed, FramePath, FrameSegment, Goto, Gotos, Graph, GraphBuilder,
    Interrupt, InterruptId, Message, MessageWrite, Node, NodeCx, NodeError, NodeName, NodeRef,
    NodeStore, Outcome, Payload, RetryPolicy, RunId, START, SendTo, Seq, Siblings, State,
    StateUpdate, SubgraphLife, Target, TaskId, TestCx, ThreadId, Timeout, Timestamp, Value, View,
    WorkflowState, WorkflowUpdate, WorkflowValue, with, workflow,
};
pub use superstep_core::{
    channel, checkpoint, diff, driver, error, graph, label, node, registry, run, schema, state,
    store, trace,
};

/// Re-exports of what most programs need.
pub mod prelude {
    pub use crate::{
        Command, END, Failed, Goto, Graph, Interrupt, Memory, Node, NodeCx, NodeError, Outcome,
        Runtime, START, SendTo, State, Thread, View, with, workflow,
    };
}

/// Compiles the examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the example of `docs/moving.md` as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/moving.md")]
struct Moving;
