//! Messages of models and tools that follow a script, and the live events that the real ones would emit.

use std::borrow::Cow;

use serde_json::Value as Json;
use superstep::label::Labels;
use superstep::prelude::*;
use superstep_agent::{AgentEvent, ChatMessage};
use superstep_llm::{Answer, Message, ToolCall, ToolResult, ToolStatus};

/// Creates an answer of a model.
pub(super) fn ai(text: impl Into<String>) -> ChatMessage {
    ChatMessage::new(Message::assistant(text), Labels::NONE)
}

/// Creates an answer of a model that only calls a tool.
pub(super) fn ai_calling(call: ToolCall) -> ChatMessage {
    let answer = Answer {
        tool_calls: vec![call],
        ..Answer::default()
    };
    ChatMessage::new(Message::Assistant(answer), Labels::NONE)
}

/// Creates a tool call.
pub(super) fn tool_call(id: &str, name: &str, args: Json) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        args,
    }
}

/// Creates the result of a tool call.
pub(super) fn tool_result(call: &ToolCall, text: impl Into<String>) -> ChatMessage {
    ChatMessage::new(Message::tool(call, text), Labels::NONE)
}

/// Creates the result of a tool call whose tool is not named.
pub(super) fn nameless_result(call_id: &str, text: impl Into<String>) -> ChatMessage {
    let text: String = text.into();
    let result = ToolResult {
        tool_call_id: call_id.to_owned(),
        name: String::new(),
        content: text.into(),
        status: ToolStatus::Success,
    };
    ChatMessage::new(Message::Tool(result), Labels::NONE)
}

/// Whether a message is the result of a tool.
pub(super) fn is_tool_result(message: &ChatMessage) -> bool {
    matches!(message.message, Message::Tool(_))
}

/// Whether a message is from a person.
pub(super) fn is_human(message: &ChatMessage) -> bool {
    matches!(message.message, Message::User { .. })
}

/// Returns a text in the pieces of a model that streams words.
pub(super) fn words(text: &str) -> Vec<String> {
    let with_blank = |(at, word): (usize, &str)| match at {
        0 => word.to_owned(),
        _ => format!(" {word}"),
    };
    text.split(' ').enumerate().map(with_blank).collect()
}

/// Returns a text in the pieces of a model that streams characters.
pub(super) fn characters(text: &str) -> Vec<String> {
    text.chars().map(String::from).collect()
}

/// Shows the pieces of an answer that becomes the message with this id, and its end.
pub(super) fn stream_answer(
    cx: &NodeCx,
    message: &str,
    pieces: &[String],
) -> Result<(), NodeError> {
    for text in pieces {
        cx.emit_live(AgentEvent::Token {
            message: message.into(),
            text: text.into(),
        })?;
    }
    end_answer(cx, message)
}

/// Shows a tool call, in one piece, of an answer that becomes the message with this id, and the end of the answer.
pub(super) fn stream_call(cx: &NodeCx, message: &str, call: &ToolCall) -> Result<(), NodeError> {
    cx.emit_live(AgentEvent::ToolCallDelta {
        message: message.into(),
        index: 0,
        id: call.id.as_str().into(),
        name: call.name.as_str().into(),
        args: call.args.to_string().into(),
    })?;
    end_answer(cx, message)
}

/// Shows that a model has written the answer that becomes the message with this id.
pub(super) fn end_answer(cx: &NodeCx, message: &str) -> Result<(), NodeError> {
    cx.emit_live(AgentEvent::ModelEnded {
        message: message.into(),
        input_tokens: None,
        output_tokens: None,
    })
}

/// Shows that a tool call starts.
pub(super) fn show_tool_start(cx: &NodeCx, call: &ToolCall) -> Result<(), NodeError> {
    cx.emit_live(AgentEvent::ToolStarted {
        id: call.id.as_str().into(),
        name: call.name.as_str().into(),
        input: Cow::Borrowed(&call.args),
    })
}

/// Shows that a tool call has succeeded.
pub(super) fn show_tool_end(cx: &NodeCx, call: &ToolCall, output: &str) -> Result<(), NodeError> {
    cx.emit_live(AgentEvent::ToolEnded {
        id: call.id.as_str().into(),
        name: call.name.as_str().into(),
        status: ToolStatus::Success,
        output: output.into(),
    })
}

#[test]
fn the_pieces_of_a_text_are_the_text() {
    let text = "Hello,  world!";
    assert_eq!(words("Hello, world!"), ["Hello,", " world!"]);
    assert_eq!(words(text).concat(), text);
    assert_eq!(characters(text).concat(), text);
}
