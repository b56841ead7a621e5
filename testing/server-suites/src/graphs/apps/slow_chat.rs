//! `slow_chat`: a chat whose answers take seconds, word by word, so that a page can be reloaded in the middle of one.

use std::sync::Arc;
use std::time::Duration;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::{AgentEvent, ChatMessage};

use crate::graphs::chat::{ai, stream_answer, words};

#[derive(Clone, Debug, Default, State)]
struct SlowChat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

/// Time between two words. An answer has about thirty.
const PACE: Duration = Duration::from_millis(150);

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("slow_chat")
        .node("chat", chat)
        .edge(START, "chat")
        .edge("chat", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn chat(state: View<SlowChat>, cx: NodeCx) -> Result<SlowChatUpdate, NodeError> {
    let heard = state.messages.last().map(ChatMessage::text);
    let text = answer(&heard.unwrap_or_default());
    let message = cx.message_id(0);
    for word in words(&text) {
        cx.emit_live(AgentEvent::Token {
            message: message.as_str().into(),
            text: word.into(),
        })?;
        tokio::time::sleep(PACE).await;
    }
    // All words were shown, so this shows only the end.
    stream_answer(&cx, &message, &[])?;
    Ok(SlowChatUpdate::default().messages(ai(text).with_id(message)))
}

fn answer(heard: &str) -> String {
    format!(
        "You said: {heard}. One sheep, two sheep, three sheep, four sheep, five sheep, six sheep, seven sheep, eight sheep, \
         nine sheep, ten sheep. Good night."
    )
}

#[test]
fn an_answer_takes_long_enough_to_reload_a_page() {
    let words = u32::try_from(words(&answer("hello")).len()).unwrap();
    assert!(PACE * words > Duration::from_secs(3));
}
