//! `a2a_agent`: repeats what the user says, and asks what else. So its tasks wait for input, and every message continues them.

use std::sync::Arc;

use serde_json::Value as Json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::ai;

#[derive(Clone, Debug, Default, State)]
struct Conversation {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("a2a_agent")
        .node("reply", reply)
        .node("ask", ask)
        .edge(START, "reply")
        .edge("reply", "ask")
        .edge("ask", "reply")
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn reply(
    conversation: View<Conversation>,
    _: NodeCx,
) -> Result<ConversationUpdate, NodeError> {
    let last = conversation.messages.last();
    let said = last.map(|last| last.message.text()).unwrap_or_default();
    Ok(ConversationUpdate::default().messages(ai(format!("You said: {said}"))))
}

async fn ask(_: View<Conversation>, cx: NodeCx) -> Result<ConversationUpdate, NodeError> {
    let said: Json = cx.interrupt(Interrupt::new("next", "What else?")).await?;
    let text = said
        .as_str()
        .map_or_else(|| said.to_string(), str::to_owned);
    Ok(ConversationUpdate::default().messages(ChatMessage::user(text)))
}
