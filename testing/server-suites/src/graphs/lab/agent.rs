//! `agent`: a chat with a model that streams one answer, word by word.

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::{ai, stream_answer, words};

#[derive(Clone, Debug, Default, State)]
struct Chat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("agent")
        .node("chat", chat)
        .edge(START, "chat")
        .edge("chat", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn chat(_: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    const TEXT: &str = "Hello there, dear world.";
    let message = cx.message_id(0);
    stream_answer(&cx, &message, &words(TEXT))?;
    Ok(ChatUpdate::default().messages(ai(TEXT).with_id(message)))
}
