//! Graphs whose nodes run one after the other: a streamed text, waits, an error, custom events and messages that are removed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;
use superstep_llm::Message;

use super::{Chat, ChatUpdate};
use crate::graphs::chat::{ai, characters, stream_answer};

/// Long enough for a page to do something else in the middle of a run.
const WAIT: Duration = Duration::from_millis(400);

/// Streams a text by character, with an id that counts the answers of the thread.
pub(super) fn stategraph_text() -> Result<Arc<Definition>, BuildError> {
    let agent = |chat: View<Chat>, cx: NodeCx| async move {
        const TEXT: &str = "Plan accepted.";
        let answers = chat.messages.iter().filter(|message| is_answer(message));
        let message = format!("stategraph-message-{}", answers.count());
        stream_answer(&cx, &message, &characters(TEXT))?;
        Ok::<_, NodeError>(ChatUpdate::default().messages(ai(TEXT).with_id(message)))
    };
    let graph = Graph::builder("stategraph_text")
        .node("agent", agent)
        .edge(START, "agent")
        .edge("agent", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

fn is_answer(message: &ChatMessage) -> bool {
    matches!(message.message, Message::Assistant(_))
}

pub(super) fn slow_graph() -> Result<Arc<Definition>, BuildError> {
    let agent = |_: View<Chat>, _: NodeCx| async {
        tokio::time::sleep(WAIT).await;
        Ok::<_, NodeError>(ChatUpdate::default().messages(ai("Done.")))
    };
    let graph = Graph::builder("slow_graph")
        .node("agent", agent)
        .edge(START, "agent")
        .edge("agent", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

/// A chat with a channel of its own.
#[derive(Clone, Debug, State)]
struct StatusChat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    status: String,
}

impl Default for StatusChat {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            status: "idle".to_owned(),
        }
    }
}

pub(super) fn stateful_values_graph() -> Result<Arc<Definition>, BuildError> {
    let agent = |_: View<StatusChat>, _: NodeCx| async {
        tokio::time::sleep(WAIT).await;
        let update = StatusChatUpdate::default().messages(ai("Done."));
        Ok::<_, NodeError>(update.status("final"))
    };
    let graph = Graph::builder("stateful_values_graph")
        .node("agent", agent)
        .edge(START, "agent")
        .edge("agent", END)
        .inputs(["messages", "status"])
        .build()?;
    Ok(graph.definition().clone())
}

pub(super) fn error_graph() -> Result<Arc<Definition>, BuildError> {
    let agent = |_: View<Chat>, _: NodeCx| async {
        let error = NodeError::fatal("Intentional error for testing");
        Err::<ChatUpdate, _>(error.with_code("Error"))
    };
    let graph = Graph::builder("error_graph")
        .node("agent", agent)
        .edge(START, "agent")
        .edge("agent", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

pub(super) fn custom_channel_graph() -> Result<Arc<Definition>, BuildError> {
    let agent = |_: View<Chat>, cx: NodeCx| async move {
        cx.emit(json!({ "stage": "thinking" }))?;
        cx.emit(json!({ "name": "status", "payload": { "label": "answering" } }))?;
        cx.emit(json!({ "stage": "done" }))?;
        Ok::<_, NodeError>(ChatUpdate::default().messages(ai("Custom channel reply")))
    };
    let graph = Graph::builder("custom_channel_graph")
        .node("agent", agent)
        .edge(START, "agent")
        .edge("agent", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

/// The second node removes what the first one wrote.
pub(super) fn remove_message_graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("remove_message_graph")
        .node("step1", |_: View<Chat>, _: NodeCx| async {
            Ok::<_, NodeError>(ChatUpdate::default().messages(ai("Step 1: To Remove")))
        })
        .node("step2", replace_answers)
        .node("step3", |_: View<Chat>, _: NodeCx| async {
            Ok::<_, NodeError>(ChatUpdate::default().messages(ai("Step 3: To Keep")))
        })
        .edge(START, "step1")
        .edge("step1", "step2")
        .edge("step2", "step3")
        .edge("step3", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn replace_answers(chat: View<Chat>, cx: NodeCx) -> Result<ChatUpdate, NodeError> {
    const TEXT: &str = "Step 2: To Keep";
    let answers = chat.messages.iter().filter(|message| is_answer(message));
    let mut update = ChatUpdate::default();
    for id in answers.filter_map(|answer| answer.id.as_deref()) {
        update = update.remove_messages(id);
    }
    let message = cx.message_id(0);
    stream_answer(&cx, &message, &[TEXT.to_owned()])?;
    Ok(update.messages(ai(TEXT).with_id(message)))
}
