//! One call of a tool, from the model's wish to the result: check, ask, act, in this order.
//!
//! A call never fails the run for what a model or a tool did: whatever is wrong becomes a result that says so. What fails
//! is what the store refused, and arguments that changed under a call that was begun.

mod ask;
mod consent;
mod doubt;
mod effect;
mod in_turn;

use serde_json::Value as Json;
use superstep_core::{Labels, NodeCx, NodeError, schema};
use superstep_llm::{Content, Message, ToolCall, ToolResult, ToolStatus};

use crate::agent::{AgentEvent, Go, HookCx, Hooks};
use crate::chat::ChatMessage;
use crate::tool::{Tool, Tools};

pub(crate) use ask::Asking;
pub use in_turn::{Agreed, Calls, Decision};

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) content: Content,
    pub(crate) status: ToolStatus,
    /// What the tool said of its result, beside what is known anyway.
    pub(crate) labels: Labels,
}

impl Came {
    fn said(text: impl Into<String>) -> Self {
        Self {
            content: text.into().into(),
            status: ToolStatus::Success,
            labels: Labels::NONE,
        }
    }

    fn error(why: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            ..Self::said(why)
        }
    }
}

/// Makes calls of one message.
pub(crate) struct Caller<'a> {
    pub(crate) cx: &'a NodeCx,
    pub(crate) tools: &'a Tools,
    pub(crate) hooks: &'a [std::sync::Arc<dyn Hooks>],
    /// Of the message that wants the calls.
    pub(crate) labels: &'a Labels,
}

impl Caller<'_> {
    /// Makes a call and gives its result as a message.
    pub(crate) async fn call(&self, call: &ToolCall) -> Result<ChatMessage, NodeError> {
        // Until it is done or asks, so that a sibling's question does not cut it.
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
        // A hook may change what is called with, not what is called: the result must find its call.
        changed.name.clone_from(&call.name);
        let agreed = match refused {
            Some(why) => Agreed::refused(changed.clone(), why),
            None => self.agree(changed.clone(), &asking).await?,
        };
        let (mut result, labels) = self.make(agreed, &asking).await?;
        for hooks in self.hooks {
            hooks.after_tool(&changed, &mut result, &hook_cx).await?;
        }
        result.tool_call_id.clone_from(&changed.id);
        self.told(result, labels)
    }

    /// Whether a call may be made: it is checked, and people are asked where they must be.
    async fn agree(&self, call: ToolCall, asking: &Asking<'_>) -> Result<Agreed, NodeError> {
        let Some(tool) = self.tools.get(&call.name) else {
            let why = format!(
                "there is no tool `{}`; there are {}",
                call.name,
                self.tools.names()
            );
            return Ok(Agreed::refused(call, why));
        };
        if let Err(why) = schema::check(&tool.spec.schema, &call.args, "the call") {
            let why = format!(
                "`{}` was not called: {why}. Call it again with arguments that fit its schema.",
                tool.name()
            );
            return Ok(Agreed::refused(call, why));
        }
        let wanted = self.wanted(tool, &call);
        Ok(
            match consent::of(&wanted, call.args.clone(), asking).await? {
                consent::Consent::Given { args, decision } => Agreed {
                    call: ToolCall { args, ..call },
                    decision,
                    withheld: None,
                },
                consent::Consent::Withheld(result, decision) => Agreed {
                    call,
                    decision,
                    withheld: Some(result),
                },
            },
        )
    }

    /// Makes a call that was agreed on, once, by its id. One that was not agreed on has the reason as its result.
    async fn make(
        &self,
        agreed: Agreed,
        asking: &Asking<'_>,
    ) -> Result<(ToolResult, Labels), NodeError> {
        let Agreed { call, withheld, .. } = agreed;
        let tool = self.tools.get(&call.name);
        let came = match (withheld, tool) {
            (Some(came), _) => came,
            (None, Some(tool)) => {
                self.cx.emit_live(AgentEvent::ToolStarted {
                    id: call.id.as_str().into(),
                    name: call.name.as_str().into(),
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
        Ok((result, labels))
    }

    /// The result as a message, and that the call has ended.
    fn told(&self, result: ToolResult, labels: Labels) -> Result<ChatMessage, NodeError> {
        self.cx.emit_live(AgentEvent::ToolEnded {
            id: result.tool_call_id.as_str().into(),
            name: result.name.as_str().into(),
            status: result.status,
        })?;
        Ok(ChatMessage::new(Message::Tool(result), labels))
    }

    fn wanted<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall) -> Wanted<'a> {
        Wanted {
            tool,
            id: &call.id,
            labels: self.labels,
        }
    }
}

/// A call that a model wants: everything but its arguments, which a person may change.
pub(crate) struct Wanted<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) id: &'a str,
    pub(crate) labels: &'a Labels,
}

impl Wanted<'_> {
    fn action_request(&self, args: &Json) -> Json {
        serde_json::json!({ "action": self.tool.name(), "args": args })
    }
}
