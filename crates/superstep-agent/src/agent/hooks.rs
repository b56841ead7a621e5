//! Hooks between an agent and its model and tools.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_core::{Interrupt, NodeCx, NodeError, ThreadId};
use superstep_llm::{BoxFuture, Reply, Request, ToolCall, ToolResult};

use crate::call::Asking;

/// Decision of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Go {
    /// Continue.
    On,
    /// Stop, for this reason. It becomes the result of a refused tool call, or the answer of a refused model call.
    Refuse(String),
}

/// Inspects, changes or refuses requests to and results from the model and the tools.
///
/// Every method defaults to doing nothing. Like a node, **a hook runs again** when its node does, after a pause, a crash or a
/// retry: return the same for the same input, and put what must happen once into [`HookCx::step`]. If a hook changes the
/// arguments of a call that was already started, the node fails.
pub trait Hooks: Send + Sync + 'static {
    /// Runs before the model is called. May change the request.
    fn before_model<'a>(
        &'a self,
        request: &'a mut Request,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        let _ = (request, cx);
        Box::pin(async { Ok(Go::On) })
    }

    /// Runs after the model has answered, before the answer is committed. May change the reply.
    fn after_model<'a>(
        &'a self,
        reply: &'a mut Reply,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        let _ = (reply, cx);
        Box::pin(async { Ok(Go::On) })
    }

    /// Runs before a call is checked, approved and made. May change the arguments; a change of the tool's name is ignored.
    fn before_tool<'a>(
        &'a self,
        call: &'a mut ToolCall,
        cx: &'a HookCx<'a>,
    ) -> BoxFuture<'a, Result<Go, NodeError>> {
        let _ = (call, cx);
        Box::pin(async { Ok(Go::On) })
    }

    /// Runs after a call has its result, before the result is committed. May change the result.
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

/// Context of a hook: the part of [`NodeCx`] that hooks may use.
#[derive(Debug)]
pub struct HookCx<'a> {
    asking: &'a Asking<'a>,
}

impl<'a> HookCx<'a> {
    pub(crate) fn new(asking: &'a Asking<'a>) -> Self {
        Self { asking }
    }

    pub(super) fn asking(&self) -> &'a Asking<'a> {
        self.asking
    }

    fn node(&self) -> &NodeCx {
        self.asking.cx
    }

    /// Interrupts for a person; see [`NodeCx::interrupt`]. Calls running in parallel finish before the node pauses.
    pub async fn interrupt<A: DeserializeOwned>(
        &self,
        question: Interrupt,
    ) -> Result<A, NodeError> {
        self.asking.ask(question).await
    }

    /// Runs work once and records its result; see [`NodeCx::step`]. Tool hooks run concurrently: include the call's id in the
    /// name.
    pub async fn step<T, F, Fut>(&self, name: impl AsRef<str>, work: F) -> Result<T, NodeError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, NodeError>>,
    {
        self.node().step(name, work).await
    }

    /// Emits an event; see [`NodeCx::emit`].
    pub fn emit(&self, event: impl Serialize) -> Result<(), NodeError> {
        self.node().emit(event)
    }

    /// Returns the id of the thread.
    pub fn thread(&self) -> &ThreadId {
        self.node().thread()
    }

    /// Returns the context that the caller of the run passed along with the input; see [`NodeCx::context`].
    pub fn context<T: DeserializeOwned>(&self) -> Result<Option<T>, NodeError> {
        self.node().context()
    }
}

impl fmt::Debug for dyn Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}
