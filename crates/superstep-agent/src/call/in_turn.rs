//! The calls of a message in two acts: first every question is answered, then what was agreed on is done, call by call.
//!
//! For agents in which nothing shall happen before a person has seen everything. [`ToolNode`](crate::ToolNode) does not wait:
//! it makes every call as soon as that call may be made.

use std::fmt;

use futures_util::future::join_all;
use superstep_core::{Labels, NodeCx, NodeError};
use superstep_llm::ToolCall;

use crate::agent::steps_in_any_order;
use crate::call::{Asking, Caller, Came};
use crate::chat::ChatMessage;
use crate::tool::Tools;

/// What became of the question whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Nobody had to be asked.
    Unasked,
    /// A person agreed to it as it was.
    Accepted,
    /// A person changed its arguments and agreed.
    Edited,
    /// A person answered in the tool's place: it is not made.
    Answered,
    /// A person said no.
    Ignored,
    /// Nobody answered in time.
    Expired,
    /// It cannot be made: there is no such tool, its arguments do not fit, or a policy forbids it.
    Refused,
}

/// A call about which everybody has been heard.
pub struct Agreed {
    pub(super) call: ToolCall,
    pub(super) decision: Decision,
    /// The result, if it is not made.
    pub(super) withheld: Option<Came>,
}

impl Agreed {
    pub(super) fn refused(call: ToolCall, why: impl Into<String>) -> Self {
        Self {
            call,
            decision: Decision::Refused,
            withheld: Some(Came::error(why)),
        }
    }

    /// The call, with the arguments that were agreed on.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// What was decided.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether it is to be made.
    pub fn is_made(&self) -> bool {
        self.withheld.is_none()
    }

    /// Takes the consent back, for this reason: the call is not made.
    #[must_use]
    pub fn withdrawn(self, why: impl Into<String>) -> Self {
        Self {
            decision: Decision::Ignored,
            withheld: Some(Came::error(why)),
            ..self
        }
    }
}

impl fmt::Debug for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreed")
            .field("call", &self.call.id)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

/// Makes the calls of one message, after all that needs a person's word has it.
#[derive(Debug)]
pub struct Calls<'a> {
    tools: &'a Tools,
    labels: Labels,
    cx: &'a NodeCx,
}

impl<'a> Calls<'a> {
    /// Calls of a message with these labels.
    pub async fn new(tools: &'a Tools, labels: Labels, cx: &'a NodeCx) -> Result<Self, NodeError> {
        cx.note_read(&labels);
        steps_in_any_order(cx).await?;
        Ok(Self { tools, labels, cx })
    }

    /// Asks about every call that needs it, all at once, and goes on when the last question is answered.
    pub async fn agree(
        &self,
        calls: impl IntoIterator<Item = &ToolCall>,
    ) -> Result<Vec<Agreed>, NodeError> {
        let asked = join_all(calls.into_iter().map(|call| self.agree_on(call))).await;
        asked.into_iter().collect()
    }

    async fn agree_on(&self, call: &ToolCall) -> Result<Agreed, NodeError> {
        let asking = Asking::holding(self.cx);
        self.caller().agree(call.clone(), &asking).await
    }

    /// Makes a call that was agreed on, once, by its id, and gives its result as a message. One that was not agreed on has
    /// the reason as its result.
    pub async fn make(&self, agreed: Agreed) -> Result<ChatMessage, NodeError> {
        let asking = Asking::holding(self.cx);
        let caller = self.caller();
        let (result, labels) = caller.make(agreed, &asking).await?;
        caller.told(result, labels)
    }

    fn caller(&self) -> Caller<'_> {
        Caller {
            cx: self.cx,
            tools: self.tools,
            hooks: &[],
            labels: &self.labels,
        }
    }
}
