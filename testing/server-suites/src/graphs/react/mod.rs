//! The graphs of the browser suite of `libs/sdk-react` in langgraphjs.

mod deep_agents;
mod interrupts;
mod one_node;
mod subgraphs;
mod tool_agents;

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::label::Labels;
use superstep::prelude::*;
use superstep_agent::{AgentEvent, ChatMessage};
use superstep_llm::{Answer, Message, ToolCall};

use crate::graphs::chat::{ai, stream_answer};

pub(super) fn graphs() -> Result<Vec<Arc<Definition>>, BuildError> {
    Ok(vec![
        one_node::stategraph_text()?,
        one_node::slow_graph()?,
        one_node::stateful_values_graph()?,
        one_node::error_graph()?,
        one_node::custom_channel_graph()?,
        one_node::remove_message_graph()?,
        interrupts::interrupt_graph()?,
        interrupts::interrupt_once_graph()?,
        interrupts::multi_interrupt_graph()?,
        interrupts::nested_interrupt_graph()?,
        subgraphs::subgraph_graph()?,
        subgraphs::embedded_subgraph_graph()?,
        subgraphs::parallel_subgraph()?,
        tool_agents::create_agent()?,
        tool_agents::interrupt_card_graph()?,
        tool_agents::headless_tool_graph()?,
        deep_agents::deep_agent()?,
        deep_agents::deep_agent_interrupt()?,
        deep_agents::parallel_fanout()?,
    ])
}

/// The state of most graphs here.
#[derive(Clone, Debug, Default, State)]
struct Chat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

/// An answer of a model that follows a script.
enum ScriptedAnswer {
    Text(String),
    Calls(Vec<ToolCall>),
}

impl ScriptedAnswer {
    fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Shows the answer as the model writes it, and returns the message with this id.
    fn say(self, cx: &NodeCx, message: &str) -> Result<ChatMessage, NodeError> {
        match self {
            Self::Text(text) => {
                stream_answer(cx, message, std::slice::from_ref(&text))?;
                Ok(ai(text).with_id(message))
            }
            Self::Calls(calls) => {
                for (index, call) in (0..).zip(&calls) {
                    cx.emit_live(AgentEvent::ToolCallDelta {
                        message: message.into(),
                        index,
                        id: call.id.as_str().into(),
                        name: call.name.as_str().into(),
                        args: call.args.to_string().into(),
                    })?;
                }
                stream_answer(cx, message, &[])?;
                let answer = Answer {
                    tool_calls: calls,
                    ..Answer::default()
                };
                let answer = ChatMessage::new(Message::Assistant(answer), Labels::NONE);
                Ok(answer.with_id(message))
            }
        }
    }
}
