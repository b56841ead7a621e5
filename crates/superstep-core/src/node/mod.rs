//! Nodes: what they are, what they receive, and how one runs until it ends or interrupts.

mod cx;
mod execute;
mod interrupt;
mod labels;
mod records;
mod store;
mod test_cx;

pub use cx::{Hold, NodeCx};
pub use execute::{Execution, Output, Pulse, Receipt, Task, TaskEnd};
pub use interrupt::Interrupt;
pub use store::NodeStore;
pub use test_cx::TestCx;

pub(crate) use cx::{Answers, TaskInfo};
pub(crate) use execute::{Stored, TaskParts};
pub(crate) use records::{StepKept, TaskRecords};

use std::sync::Arc;

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
///
/// ```
/// use superstep_core::Node;
/// # use superstep_core::{Command, END, Failed, Goto, Graph, Interrupt, NodeCx, NodeError, START, SendTo, State, View};
/// # #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// # struct Essay { topic: String, #[state(append)] parts: Vec<String>, score: u8 }
/// # async fn step(_: View<Essay>, _: NodeCx) -> Result<EssayUpdate, NodeError> { Ok(EssayUpdate::default()) }
/// struct Write {
///     tone: String,
/// }
///
/// impl Node<Essay> for Write {
///     async fn run(&self, essay: View<Essay>, _: NodeCx) -> Result<Command<Essay>, NodeError> {
///         let part = format!("About {}, {}.", essay.topic, self.tone);
///         Ok(EssayUpdate::default().parts(part).into())
///     }
/// }
///
/// let write = Write { tone: "in short".to_owned() };
/// let graph = Graph::builder("essay").node("write", write).edge(START, "write").edge("write", END).build()?;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
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

/// Makes a node of a function that takes shared dependencies besides its input: clients, models, settings.
///
/// ```
/// # use std::sync::Arc;
/// use superstep_core::{END, Graph, NodeCx, NodeError, START, State, View, with};
///
/// #[derive(Clone, Debug, Default, State)]
/// # #[state(crate = superstep_core)]
/// struct Order {
///     cents: u64,
/// }
///
/// struct Shop {
///     vat_percent: u64,
/// }
///
/// impl Shop {
///     async fn add_vat(self: Arc<Self>, order: View<Order>, _: NodeCx) -> Result<OrderUpdate, NodeError> {
///         Ok(OrderUpdate::default().cents(order.cents * (100 + self.vat_percent) / 100))
///     }
/// }
///
/// let shop = Arc::new(Shop { vat_percent: 19 });
/// let graph = Graph::builder("order")
///     .node("add_vat", with(&shop, Shop::add_vat))
///     .edge(START, "add_vat")
///     .edge("add_vat", END)
///     .build()?;
/// # let _: Graph<Order> = graph;
/// # Ok::<(), superstep_core::error::BuildError>(())
/// ```
pub fn with<D, I, F, Fut>(
    dependencies: &Arc<D>,
    node: F,
) -> impl Fn(I, NodeCx) -> Fut + Send + Sync + 'static
where
    D: ?Sized + Send + Sync + 'static,
    I: 'static,
    F: Fn(Arc<D>, I, NodeCx) -> Fut + Send + Sync + 'static,
    Fut: 'static,
{
    let dependencies = dependencies.clone();
    move |input, cx| node(dependencies.clone(), input, cx)
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
