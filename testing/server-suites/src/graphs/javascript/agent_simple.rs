//! `agent_simple`: the same turns as `agent`, with the message sent to the tool, and one item in the store for each user.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::{ai, characters, is_tool_result, nameless_result, stream_answer};
use crate::graphs::settings::{setting, text_setting};

#[derive(Clone, Debug, Default, State)]
struct SimpleChat {
    key_one: Option<String>,
    key_two: Option<String>,
    sleep: Option<f64>,
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

const TOOL: SendTo<ChatMessage> = SendTo::new("tool");

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("agent_simple")
        .node("agent", call_model)
        .map_node(&TOOL, call_tool)
        .edge(START, "agent")
        .route("agent", &["tool", END], after_agent)
        .edge("tool", "agent")
        .inputs(["key_one", "key_two", "sleep", "messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn call_model(chat: View<SimpleChat>, cx: NodeCx) -> Result<SimpleChatUpdate, NodeError> {
    if let Some(header) = text_setting(&cx, "x-configurable-header")? {
        let end = ChatMessage::user(format!("end: {header}"));
        return Ok(SimpleChatUpdate::default().messages(end));
    }
    let user = setting(&cx, "langgraph_auth_user")?;
    let user = user.as_ref().and_then(|user| user["identity"].as_str());
    let store = cx.store([user.unwrap_or("ALL")])?;
    if store.get::<Json>("key_one").await?.is_none() {
        let text = chat.messages.last().map(ChatMessage::text);
        store.put("key_one", json!({ "text": text })).await?;
    }
    // Ends with a character that a client must not take for the end of a line.
    let text = match chat.messages.last().is_some_and(is_tool_result) {
        true => "end\u{2028}",
        false => "begin",
    };
    let message = cx.message_id(0);
    stream_answer(&cx, &message, &characters(text))?;
    Ok(SimpleChatUpdate::default().messages(ai(text).with_id(message)))
}

async fn call_tool(message: ChatMessage, _: NodeCx) -> Result<SimpleChatUpdate, NodeError> {
    let text = format!("tool_call__{}", message.text());
    Ok(SimpleChatUpdate::default().messages(nameless_result("tool_call_id", text)))
}

fn after_agent(chat: &SimpleChat) -> Goto<SimpleChat> {
    match chat.messages.last() {
        Some(last) if !last.text().starts_with("end") => Goto::send(&TOOL, last.clone()),
        _ => Goto::node(END),
    }
}
