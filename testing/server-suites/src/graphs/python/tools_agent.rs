//! `tools_agent`: a model that calls a tool once and then ends.

use std::sync::Arc;

use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::{ChatMessage, unanswered_calls};

use crate::graphs::chat::{
    ai, ai_calling, is_tool_result, show_tool_end, show_tool_start, stream_answer, stream_call,
    tool_call, tool_result,
};

#[derive(Clone, Debug, Default, State)]
struct ToolChat {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("tools_agent")
        .node("model", model)
        .node("tools", tools)
        .edge(START, "model")
        .route(
            "model",
            &["tools", END],
            |chat: &ToolChat| match unanswered_calls(&chat.messages).is_empty() {
                true => END,
                false => "tools",
            },
        )
        .edge("tools", "model")
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

/// Calls the tool unless the conversation has a result, whatever ran on this server before.
async fn model(chat: View<ToolChat>, cx: NodeCx) -> Result<ToolChatUpdate, NodeError> {
    let answer = match chat.messages.iter().any(is_tool_result) {
        true => {
            let (message, text) = ("ai-tools-done", "done.");
            stream_answer(&cx, message, &[text.to_owned()])?;
            ai(text).with_id(message)
        }
        false => {
            let message = "ai-tools-call";
            let call = tool_call("tc-1", "search", json!({ "query": "v3" }));
            stream_call(&cx, message, &call)?;
            ai_calling(call).with_id(message)
        }
    };
    Ok(ToolChatUpdate::default().messages(answer))
}

async fn tools(chat: View<ToolChat>, cx: NodeCx) -> Result<ToolChatUpdate, NodeError> {
    let mut update = ToolChatUpdate::default();
    for call in unanswered_calls(&chat.messages) {
        show_tool_start(&cx, call)?;
        let query = call.args["query"].as_str().unwrap_or_default();
        let output = format!("result for '{query}'");
        show_tool_end(&cx, call, &output)?;
        update = update.messages(tool_result(call, output));
    }
    Ok(update)
}
