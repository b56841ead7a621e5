//! The core of Superstep: graphs, channels, the state machine that decides what runs next, and the format of what is stored.
//!
//! It has no clock, no randomness, no I/O and no runtime. A driver brings those: the local one is the crate `superstep`, which
//! is what most programs add. This crate is for authors of drivers and checkpointers, and for tests of either.
//!
//! # Driving a run
//!
//! [`Run`] is a state machine. A driver opens a loaded thread with a request and asks for the next [`Step`] until it gets
//! [`Step::Stop`]:
//!
//! ```
//! use std::pin::pin;
//! use std::sync::Arc;
//! use std::task::{Context, Poll, Waker};
//!
//! use superstep_core::checkpoint::{Checkpointer, Memory, RecordWrite, BoxFuture, CheckpointResult};
//! use superstep_core::driver::{NodeHost, LiveEvent, ThreadRequest};
//! use superstep_core::run::RunOptions;
//! use superstep_core::{END, Graph, Moment, NodeCx, NodeError, Outcome, Run, START, State, Step, ThreadId, Timestamp, Value, View};
//!
//! #[derive(Clone, Debug, Default, State)]
//! #[state(crate = superstep_core)]
//! struct Count { n: i64 }
//!
//! async fn add(count: View<Count>, _cx: NodeCx) -> Result<CountUpdate, NodeError> {
//!     Ok(CountUpdate::default().n(count.n + 1))
//! }
//!
//! /// Every future here is ready at once: the store is in memory, and so is the node.
//! fn now<T>(future: impl Future<Output = T>) -> T {
//!     match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
//!         Poll::Ready(value) => value,
//!         Poll::Pending => unreachable!("nothing here waits"),
//!     }
//! }
//!
//! struct MyHost(Memory);
//! impl NodeHost for MyHost {
//!     fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
//!         let store = self.0.clone();
//!         Box::pin(async move { store.record(&write).await })
//!     }
//!     fn emit(&self, _: LiveEvent) {}
//! }
//!
//! let graph = Graph::builder("count").node("add", add).edge(START, "add").edge("add", END).build().unwrap();
//! let (store, thread) = (Memory::default(), ThreadId::new("t").unwrap());
//! let request = ThreadRequest::Start { input: Value::encode(&CountUpdate::default().n(41)).unwrap(), context: None, metadata: None };
//! let moment = Moment { now: Timestamp(0), entropy: 7 };
//! let loaded = now(store.load(&thread)).unwrap();
//! let mut run = Run::open(graph.definition(), &thread, loaded, request, RunOptions::default(), moment).unwrap();
//! let mut ended = Vec::new();
//! let outcome = loop {
//!     match run.next_step() {
//!         Step::Start(tasks) => for task in tasks {
//!             let id = task.id();
//!             ended.push((id, now(task.execute(Arc::new(MyHost(store.clone()))))));
//!         },
//!         Step::Drop(tasks) => ended.retain(|(id, _)| !tasks.contains(id)),
//!         Step::Save(commit) => {
//!             let saved = now(store.save(&commit)).unwrap();
//!             run.saved(saved, Timestamp(0)).unwrap();
//!         }
//!         Step::Wait { .. } => {
//!             let (id, end) = ended.pop().unwrap();
//!             run.task_ended(id, end, Timestamp(0)).unwrap();
//!         }
//!         Step::Record(_) | Step::Suspend(_) => unreachable!("only a limited segment does"),
//!         Step::Stop(outcome) => break outcome,
//!     }
//! };
//! assert_eq!(outcome, Outcome::Finished);
//! assert_eq!(run.values().decode::<Count>().unwrap().n, 42);
//! ```
//!
//! # In reading order
//!
//! [`State`], [`Graph`], [`Node`] and [`NodeCx`] are what graphs are written with. [`run`] is the state machine, [`checkpoint`]
//! the interface to stores and the stored format, [`driver`] the interface to drivers, [`error`] every error with its code.
//! [`label`] tracks where values come from, [`schema`] checks answers.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Follow one superstep](../../book/html/docs/inside/a-superstep.html)
//! - [Graphs and supersteps](../../book/html/docs/concepts/graphs-and-supersteps.html)
//! - [Write a driver or an engine](../../book/html/docs/inside/write-a-driver.html)
//! - [Stored format](../../book/html/docs/stored-format.html)
// The code that `derive(State)` writes refers to this crate as `superstep_core`, inside this crate too.
extern crate self as superstep_core;

pub mod channel;
pub mod checkpoint;
mod command;
pub mod diff;
pub mod driver;
pub mod error;
pub mod graph;
mod ids;
pub mod label;
mod lock;
pub mod node;
pub mod registry;
pub mod run;
pub mod schema;
mod scratch;
pub mod state;
pub mod store;
pub mod trace;
mod value;
mod workflow;

pub use channel::{Channel, ChannelKind, ChannelSet, Message, MessageWrite};
pub use checkpoint::Checkpointer;
pub use command::{Command, Goto, Gotos, NodeRef, Payload, SendTo, Target};
pub use error::NodeError;
pub use graph::{Failed, Graph, GraphBuilder, RetryPolicy, Siblings, SubgraphLife, Timeout};
pub use ids::{
    ApiKeyId, AssistantId, CronId, DeliveryId, END, Epoch, FramePath, FrameSegment, InterruptId,
    Moment, NodeName, RunId, START, Seq, TaskId, ThreadId, Timestamp,
};
pub use label::{Label, Labeled, Labels};
pub use node::{Interrupt, Node, NodeCx, NodeStore, TestCx, with};
pub use run::{Outcome, Run, Step};
pub use state::{State, StateUpdate, View};
pub use workflow::{WorkflowState, WorkflowUpdate, WorkflowValue, workflow};

#[cfg(feature = "derive")]
pub use superstep_macros::State;
pub use value::Value;

/// Internals for the code that `derive(State)` writes, and for our other crates.
#[doc(hidden)]
pub mod __private {
    pub use crate::error::node::chain;
    pub use crate::ids::shorten;
    pub use crate::lock::lock;
    pub use crate::state::reads_back::{ReadBack, ReadBackUnknown};
    pub use serde;
    pub use serde_json;
}
