//! The core of Superstep (seams only, the machine follows).
// Lets the code that `derive(State)` writes name this crate the same way inside and outside of it.
extern crate self as superstep_core;

pub mod channel;
pub mod checkpoint;
mod command;
pub mod driver;
pub mod error;
pub mod graph;
mod ids;
pub mod node;
pub mod run;
pub mod state;
pub mod store;
mod value;

pub use channel::{Channel, ChannelKind, ChannelSet, Message, MessageWrite};
pub use checkpoint::Checkpointer;
pub use command::{Command, Goto, Gotos, NodeRef, Payload, SendTo, Target};
pub use error::NodeError;
pub use graph::{Failed, Graph, GraphBuilder, RetryPolicy, Siblings, SubgraphLife, Timeout};
pub use ids::{
    END, Epoch, FramePath, FrameSegment, InterruptId, Moment, NodeName, RunId, START, Seq, TaskId,
    ThreadId, Timestamp,
};
pub use node::{Interrupt, Node, NodeCx};
pub use run::{Outcome, Run, Step};
pub use state::{State, StateUpdate, View};
#[cfg(feature = "derive")]
pub use superstep_macros::State;
pub use value::Value;

/// For the code that `derive(State)` writes.
#[doc(hidden)]
pub mod __private {
    pub use serde;
}
