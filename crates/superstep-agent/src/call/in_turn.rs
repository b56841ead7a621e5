//! The calls of a message in two phases: first all approvals, then the approved calls, one after the other.
//!
//! For agents in which nothing may happen before a person has seen everything. [`ToolNode`](crate::ToolNode) does not wait:
//! it makes each call as soon as that call is approved.

use std::fmt;

use futures_util::future::join_all;
use superstep_core::{Labels, NodeCx, NodeError};
use superstep_llm::ToolCall;

use crate::agent::steps_in_any_order;
use crate::call::{Asking, CallOutcome, Caller, ToolCallResult};
use crate::chat::ChatMessage;
use crate::tool::Tools;

/// Outcome of the approval of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// No approval was needed.
    Unasked,
    /// A person approved the call unchanged.
    Accepted,
    /// A person changed the arguments and approved the call.
    Edited,
    /// A person answered in the tool's place; the call is not made.
    Answered,
    /// A person refused the call.
    Ignored,
    /// No answer arrived before the deadline; the call is not made.
    Expired,
    /// The call cannot be made: the tool does not exist, the arguments do not fit its schema, or a policy forbids it.
    Refused,
}

/// A call whose approval has been decided.
pub struct DecidedCall {
    pub(super) call: ToolCall,
    pub(super) decision: Decision,
    /// Result to use instead, if the call is not made.
    pub(super) withheld: Option<ToolCallResult>,
}

impl DecidedCall {
    pub(super) fn refused(call: ToolCall, why: impl Into<String>) -> Self {
        Self {
            call,
            decision: Decision::Refused,
            withheld: Some(ToolCallResult::error(why)),
        }
    }

    /// Returns the call, with the arguments that were approved.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Returns how the approval was decided.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Returns whether [`Calls::make`] will call the tool.
    pub fn is_made(&self) -> bool {
        self.withheld.is_none()
    }

    /// Withdraws the approval, for this reason: the call is not made, and the reason becomes its result.
    #[must_use]
    pub fn withdrawn(self, why: impl Into<String>) -> Self {
        Self {
            decision: Decision::Ignored,
            withheld: Some(ToolCallResult::error(why)),
            ..self
        }
    }
}

impl fmt::Debug for DecidedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreed")
            .field("call", &self.call.id)
            .field("decision", &self.decision)
            .finish_non_exhaustive()
    }
}

/// Makes the calls of one message, after all approvals have been decided.
#[derive(Debug)]
pub struct Calls<'a> {
    tools: &'a Tools,
    labels: Labels,
    cx: &'a NodeCx,
}

impl<'a> Calls<'a> {
    /// Starts on the calls of a message with these labels. Notes the labels as read by the node.
    pub async fn new(tools: &'a Tools, labels: Labels, cx: &'a NodeCx) -> Result<Self, NodeError> {
        cx.note_read(&labels);
        steps_in_any_order(cx).await?;
        Ok(Self { tools, labels, cx })
    }

    /// Asks for every approval that is needed, all at once, and returns when the last one is answered. Keeps the order of the
    /// calls.
    pub async fn agree(
        &self,
        calls: impl IntoIterator<Item = &ToolCall>,
    ) -> Result<Vec<DecidedCall>, NodeError> {
        let asked = join_all(calls.into_iter().map(|call| self.agree_on(call))).await;
        asked.into_iter().collect()
    }

    async fn agree_on(&self, call: &ToolCall) -> Result<DecidedCall, NodeError> {
        let asking = Asking::holding(self.cx);
        self.caller().agree(call.clone(), &asking).await
    }

    /// Makes an approved call, once per id, and returns its result as a message. A call that was not approved returns the
    /// reason as its result.
    pub async fn make(&self, agreed: DecidedCall) -> Result<ChatMessage, NodeError> {
        let asking = Asking::holding(self.cx);
        let caller = self.caller();
        let decision = agreed.decision();
        let (result, labels, command) = caller.make(agreed, &asking).await?;
        let message = caller.told(result, labels)?;
        let outcome = CallOutcome {
            message,
            command,
            decision,
        };
        outcome.only_message()
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
