//! `delay`: one node that takes as long as the caller says.

use std::sync::Arc;
use std::time::Duration;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

#[derive(Clone, Debug, Default, State)]
struct Wait {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    delay: Option<u64>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("delay")
        .node("long_running", long_running)
        .edge(START, "long_running")
        .edge("long_running", END)
        .inputs(["messages", "delay"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn long_running(wait: View<Wait>, _: NodeCx) -> Result<WaitUpdate, NodeError> {
    let ms = wait.delay.unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(ms)).await;
    // The original writes a plain text, which becomes a message of a person.
    let message = ChatMessage::user(format!("finished after {ms}ms"));
    Ok(WaitUpdate::default().messages(message))
}
