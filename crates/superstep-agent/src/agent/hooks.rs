//! What a program may do between an agent and its model and tools.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_core::{Interrupt, NodeCx, NodeError, ThreadId};
use superstep_llm::{BoxFuture, Reply, Request, ToolCall, ToolResult};

use crate::call::Asking;

/// Whether to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Go {
    /// Go on.
    On,
    /// Do not, for this reason: a refused tool call has it as its result, a refused request to the model as its answer.
    Refuse(String),
}

/// Looks at, changes or refuses what goes to and comes from model and tools.
///
/// All methods do nothing unless you write them. Like a node, **a hook runs again** when its node does, after a pause, a
/// crash or a retry: give the same again for the same, and put what must happen once into [`HookCx::step`]. A hook that
/// changes a call differently the second time is noticed, and the call refused.
pub trait Hooks: Send + Sync + 'static {
    /// Before the model is asked.
    fn before_model<'a>(
        &'a self,
        request: &'a mut Request,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        let _ = (request, cx);
        Box::pin(async { Ok(Go::On) })
    }

    /// After the model has answered, before its answer is committed.
    fn after_model<'a>(
        &'a self,
        reply: &'a mut Reply,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        let _ = (reply, cx);
        Box::pin(async { Ok(Go::On) })
    }

    /// Before a call is checked, approved and made. Its arguments may be changed, its tool not.
    fn before_tool<'a>(
        &'a self,
        call: &'a mut ToolCall,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        let _ = (call, cx);
        Box::pin(async { Ok(Go::On) })
    }

    /// After a call has its result, before that is committed.
    fn after_tool<'a>(
        &'a self,
        call: &'a ToolCall,
        result: &'a mut ToolResult,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        let _ = (call, result, cx);
        Box::pin(async { Ok(()) })
    }
}

/// What a hook is handed.
#[derive(Debug)]
pub struct HookCx<'a> {
    asking: &'a Asking<'a>,
}

impl<'a> HookCx<'a> {
    pub(crate) fn new(asking: &'a Asking<'a>) -> Self {
        Self { asking }
    }

    fn node(&self) -> &NodeCx {
        self.asking.cx
    }

    /// Asks a person. See [`NodeCx::interrupt`]. Calls that go on beside this one are finished before the node pauses.
    pub async fn interrupt<A: DeserializeOwned>(
        &self,
        question: Interrupt,
    ) -> Result<A, NodeError> {
        self.asking.ask(question).await
    }

    /// Does something once. See [`NodeCx::step`]. Hooks of tools run side by side: have the call's id in the name.
    pub async fn step<T, F, Fut>(&self, name: impl AsRef<str>, work: F) -> Result<T, NodeError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, NodeError>>,
    {
        self.node().step(name, work).await
    }

    /// Tells those who watch something. See [`NodeCx::emit`].
    pub fn emit(&self, event: impl Serialize) -> Result<(), NodeError> {
        self.node().emit(event)
    }

    /// The thread.
    pub fn thread(&self) -> &ThreadId {
        self.node().thread()
    }

    /// What the caller of the run gave beside its input. See [`NodeCx::context`].
    pub fn context<T: DeserializeOwned>(&self) -> Result<Option<T>, NodeError> {
        self.node().context()
    }
}

impl fmt::Debug for dyn Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}
