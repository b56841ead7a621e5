//! Nodes: what they are, what they receive, and how one runs until it ends or interrupts.

mod cx;
mod execute;
mod interrupt;
mod labels;
mod records;
mod test_cx;

pub use cx::{Hold, NodeCx};
pub use execute::{Execution, Output, Pulse, Receipt, Task, TaskEnd};
pub use interrupt::Interrupt;
pub use test_cx::TestCx;

pub(crate) use cx::{Answers, RECORD_SEQ, TaskInfo};
pub(crate) use execute::{Stored, TaskParts};
pub(crate) use records::{StepKept, TaskRecords};

use crate::command::Command;
use crate::error::NodeError;
use crate::state::{State, View};

/// A node of a graph over `S`.
///
/// Async functions and closures `(View<S>, NodeCx) -> Result<update or Command, NodeError>` are nodes. For a node with
/// dependencies, implement this for a struct that holds them as fields.
///
/// **Code outside [`NodeCx::step`] runs again** when the node is resumed after a pause, a crash or a retry. Put every effect
/// into a step.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node of a graph over `{S}` that takes `{I}`",
    label = "not a node of this graph",
    note = "a node is `async fn({I}, NodeCx) -> Result<Update or Command, NodeError>`, with the update of `{S}`, or a type with `impl Node<{S}>`",
    note = "its future must be `Send`: hold no `Rc`, `RefCell` borrow or `MutexGuard` across an `.await`"
)]
pub trait Node<S: State, I = View<S>>: Send + Sync + 'static {
    /// Runs the node once.
    fn run(
        &self,
        input: I,
        cx: NodeCx,
    ) -> impl Future<Output = Result<Command<S>, NodeError>> + Send;
}

impl<S, I, F, Fut, O> Node<S, I> for F
where
    S: State,
    I: Send + 'static,
    F: Fn(I, NodeCx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, NodeError>> + Send + 'static,
    O: Into<Command<S>> + 'static,
{
    fn run(
        &self,
        input: I,
        cx: NodeCx,
    ) -> impl Future<Output = Result<Command<S>, NodeError>> + Send {
        let running = self(input, cx);
        async move { running.await.map(Into::into) }
    }
}
