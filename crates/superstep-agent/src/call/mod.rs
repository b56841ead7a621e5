//! One tool call, from the model's request to the result: validate, approve, execute, in this order.
//!
//! A model or a tool cannot fail the run: every problem of theirs becomes an error result. Only two things fail the run: the
//! store refuses a write, or the arguments of a call changed after it was started.

mod ask;
mod consent;
mod doubt;
mod effect;
mod in_turn;
mod tool_question;

use std::borrow::Cow;

use serde_json::Value as Json;
use superstep_core::{Label, Labels, NodeCx, NodeError, schema};
use superstep_llm::{Content, Message, ToolCall, ToolResult, ToolStatus};

use crate::agent::{AgentEvent, Go, HookCx, Hooks};
use crate::chat::ChatMessage;
use crate::tool::{Tool, ToolCommand, Tools};

pub(crate) use ask::Asking;
pub use in_turn::{Calls, DecidedCall, Decision};
pub(crate) use tool_question::{QuestionAnswer, ToolQuestion};

/// Outcome of a call.
#[derive(Debug)]
pub(crate) struct ToolCallResult {
    pub(crate) content: Content,
    pub(crate) status: ToolStatus,
    /// Labels that the tool added to its result, besides those of the arguments and of the tool's declaration.
    pub(crate) labels: Labels,
    /// What the tool asks of the graph.
    pub(crate) command: ToolCommand,
}

/// What a call leaves: its result as a message, what the tool asks of the graph, and how the approval was decided.
pub(crate) struct CallOutcome {
    pub(crate) message: ChatMessage,
    pub(crate) command: ToolCommand,
    pub(crate) decision: Decision,
}

impl CallOutcome {
    /// Returns the message. For callers that have no graph to act on: fails if the tool returned a command.
    pub(crate) fn only_message(self) -> Result<ChatMessage, NodeError> {
        match self.command.is_empty() {
            true => Ok(self.message),
            false => Err(NodeError::fatal(
                "the tool returned a command to the graph, which only a `ToolNode` acts on",
            )),
        }
    }
}

impl ToolCallResult {
    fn said(text: impl Into<String>) -> Self {
        Self {
            content: text.into().into(),
            status: ToolStatus::Success,
            labels: Labels::NONE,
            command: ToolCommand::default(),
        }
    }

    fn error(why: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            ..Self::said(why)
        }
    }
}

/// Makes the calls of one message.
pub(crate) struct Caller<'a> {
    pub(crate) cx: &'a NodeCx,
    pub(crate) tools: &'a Tools,
    pub(crate) hooks: &'a [std::sync::Arc<dyn Hooks>],
    /// Labels of the message that requests the calls.
    pub(crate) labels: &'a Labels,
}

impl Caller<'_> {
    /// Makes a call and returns what it leaves.
    pub(crate) async fn call(&self, call: &ToolCall) -> Result<CallOutcome, NodeError> {
        // Held until the call is done or waits for a person, so a sibling's interrupt does not cut it off.
        let asking = Asking::holding(self.cx);
        let hook_cx = HookCx::new(&asking);
        let mut changed = call.clone();
        let mut refused = None;
        for hooks in self.hooks {
            if let Go::Refuse(why) = hooks.before_tool(&mut changed, &hook_cx).await? {
                refused = Some(why);
                break;
            }
        }
        // A hook may change the arguments but not the tool: the result must match its call.
        changed.name.clone_from(&call.name);
        let agreed = match refused {
            Some(why) => DecidedCall::refused(changed.clone(), why),
            None => self.agree(changed.clone(), &asking).await?,
        };
        let decision = agreed.decision();
        let (mut result, labels, mut command) = self.make(agreed, &asking).await?;
        for hooks in self.hooks {
            hooks.after_tool(&changed, &mut result, &hook_cx).await?;
        }
        result.tool_call_id.clone_from(&changed.id);
        result.name.clone_from(&changed.name);
        if result.status == ToolStatus::Error {
            // A hook refused the result, and with it what the tool asks of the graph.
            command = ToolCommand::default();
        }
        let message = self.told(result, labels)?;
        Ok(CallOutcome {
            message,
            command,
            decision,
        })
    }

    /// Decides whether a call may be made: validates it, and asks a person where needed.
    async fn agree(&self, call: ToolCall, asking: &Asking<'_>) -> Result<DecidedCall, NodeError> {
        let Some(tool) = self.tools.get(&call.name) else {
            let why = format!(
                "there is no tool `{}`; there are {}",
                call.name,
                self.tools.names()
            );
            return Ok(DecidedCall::refused(call, why));
        };
        if let Err(why) = schema::check(&tool.spec.schema, &call.args, "the call") {
            let why = format!(
                "`{}` was not called: {why}. Call it again with arguments that fit its schema.",
                tool.name()
            );
            return Ok(DecidedCall::refused(call, why));
        }
        let wanted = self.wanted(tool, &call);
        Ok(
            match consent::of(&wanted, call.args.clone(), asking).await? {
                consent::Consent::Given { args, decision } => DecidedCall {
                    call: ToolCall { args, ..call },
                    decision,
                    withheld: None,
                },
                consent::Consent::Withheld(result, decision) => DecidedCall {
                    call,
                    decision,
                    withheld: Some(result),
                },
            },
        )
    }

    /// Makes an approved call, once per id. A call that was not approved returns the reason as its result.
    async fn make(
        &self,
        agreed: DecidedCall,
        asking: &Asking<'_>,
    ) -> Result<(ToolResult, Labels, ToolCommand), NodeError> {
        let DecidedCall { call, withheld, .. } = agreed;
        let tool = self.tools.get(&call.name);
        let came = match (withheld, tool) {
            (Some(came), _) => came,
            (None, Some(tool)) => {
                let input = match self.labels.has(&Label::SECRET) {
                    true => Cow::Owned(Json::Null),
                    false => Cow::Borrowed(&call.args),
                };
                self.cx.emit_live(AgentEvent::ToolStarted {
                    id: call.id.as_str().into(),
                    name: call.name.as_str().into(),
                    input,
                })?;
                let wanted = self.wanted(tool, &call);
                let effect = effect::Effect::new(&wanted, call.args.clone(), asking);
                effect.happen().await?
            }
            (None, None) => {
                return Err(NodeError::fatal(format!(
                    "the tool `{}` went away under its call",
                    call.name
                )));
            }
        };
        let mut labels = self.labels.clone().join(&came.labels);
        if let Some(tool) = tool {
            labels.add(&tool.output);
        }
        let result = ToolResult {
            tool_call_id: call.id,
            name: call.name,
            content: came.content,
            status: came.status,
        };
        Ok((result, labels, came.command))
    }

    /// Converts the result into a message, and emits that the call has ended.
    fn told(&self, result: ToolResult, labels: Labels) -> Result<ChatMessage, NodeError> {
        let output = match labels.has(&Label::SECRET) {
            true => String::new(),
            false => shown_output(&result.content),
        };
        self.cx.emit_live(AgentEvent::ToolEnded {
            id: result.tool_call_id.as_str().into(),
            name: result.name.as_str().into(),
            status: result.status,
            output: output.into(),
        })?;
        Ok(ChatMessage::new(Message::Tool(result), labels))
    }

    fn wanted<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall) -> RequestedCall<'a> {
        RequestedCall {
            tool,
            id: &call.id,
            labels: self.labels,
        }
    }
}

/// Returns the text of a result as live events show it.
fn shown_output(content: &Content) -> String {
    let mut text = content.text();
    if let Some((end, _)) = text.char_indices().nth(OUTPUT_CHARS_MAX) {
        text.truncate(end);
    }
    text
}

/// Longer results are for the state of the thread, not for every watcher.
const OUTPUT_CHARS_MAX: usize = 10_000;

/// A requested call without its arguments, which a person may change.
pub(crate) struct RequestedCall<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) id: &'a str,
    pub(crate) labels: &'a Labels,
}

impl RequestedCall<'_> {
    fn action_request(&self, args: &Json) -> Json {
        serde_json::json!({ "action": self.tool.name(), "args": args })
    }
}
