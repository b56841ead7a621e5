//! One call of a tool, from the model's wish to the result: check, ask, act, in this order.
//!
//! A call never fails the run for what a model or a tool did: whatever is wrong becomes a result that says so. What fails
//! is what the store refused, and arguments that changed under a call that was begun.

mod ask;
mod consent;
mod doubt;
mod effect;

use serde_json::Value as Json;
use superstep_core::{Labels, NodeCx, NodeError};
use superstep_llm::{Content, Message, ToolCall, ToolResult, ToolStatus};

use crate::agent::{Go, HookCx, Hooks, Live};
use crate::chat::ChatMessage;
use crate::tool::{Tool, Tools, schema};

pub(crate) use ask::Asking;

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
        let mut call = call.clone();
        let name = call.name.clone();
        let hook_cx = HookCx::new(&asking);
        let mut refused = None;
        for hooks in self.hooks {
            if let Go::Refuse(why) = hooks.before_tool(&mut call, &hook_cx).await? {
                refused = Some(why);
                break;
            }
        }
        // A hook may change what is called with, not what is called: the result must find its call.
        call.name = name;
        let result = match (refused, self.tools.get(&call.name)) {
            (Some(why), _) => Came::error(why),
            (None, None) => Came::error(format!(
                "there is no tool `{}`; there are {}",
                call.name,
                self.tools.names()
            )),
            (None, Some(tool)) => self.made(tool, &call, &asking).await?,
        };
        let given = self.tools.get(&call.name).map(|tool| &tool.output);
        let mut labels = self.labels.clone().join(&result.labels);
        labels.add(given.unwrap_or(&Labels::NONE));
        let mut result = ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            content: result.content,
            status: result.status,
        };
        for hooks in self.hooks {
            hooks.after_tool(&call, &mut result, &hook_cx).await?;
        }
        result.tool_call_id.clone_from(&call.id);
        self.cx.emit_live(Live::ToolEnded {
            id: &call.id,
            name: &call.name,
            status: result.status,
        })?;
        Ok(ChatMessage::new(Message::Tool(result), labels))
    }

    async fn made(
        &self,
        tool: &Tool,
        call: &ToolCall,
        asking: &Asking<'_>,
    ) -> Result<Came, NodeError> {
        if let Err(why) = schema::check(&tool.spec.schema, &call.args) {
            return Ok(Came::error(format!(
                "`{}` was not called: {why}. Call it again with arguments that fit its schema.",
                tool.name()
            )));
        }
        let wanted = Wanted {
            tool,
            id: &call.id,
            labels: self.labels,
        };
        let args = match consent::of(&wanted, call.args.clone(), asking).await? {
            consent::Consent::Given { args } => args,
            consent::Consent::Withheld(result) => return Ok(result),
        };
        self.cx.emit_live(Live::ToolStarted {
            id: &call.id,
            name: &call.name,
        })?;
        effect::Effect::new(&wanted, args, asking).happen().await
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
