//! `deep_agent`: a supervisor whose tool `task` is another agent, a subgraph with a namespace of its own.
//!
//! Here the node `tools` is that subgraph. A subgraph emits nothing into its parent's namespace, so the supervisor's node shows
//! the start and the end of the call of `task`: clients find them where the original has them.

use std::sync::Arc;

use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::{ChatMessage, unanswered_calls};
use superstep_llm::ToolCall;

use crate::graphs::chat::{
    ai, ai_calling, is_tool_result, show_tool_end, show_tool_start, stream_answer, stream_call,
    tool_call, tool_result,
};

#[derive(Clone, Debug, Default, State)]
struct Supervision {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

#[derive(Clone, Debug, Default, State)]
struct Research {
    #[state(messages)]
    messages: Vec<ChatMessage>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let researcher = Graph::builder("researcher")
        .node("model", research)
        .edge(START, "model")
        .edge("model", END)
        .inputs(["messages"])
        .build()?;
    let graph = Graph::builder("deep_agent")
        .node("model", supervise)
        .subgraph("tools", researcher, question, report)
        .edge(START, "model")
        .route(
            "model",
            &["tools", END],
            |state: &Supervision| match unanswered_calls(&state.messages).is_empty() {
                true => END,
                false => "tools",
            },
        )
        .edge("tools", "model")
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

fn task() -> ToolCall {
    let args = json!({ "subagent_type": "researcher", "description": "research v3 streaming" });
    tool_call("tc-task-1", "task", args)
}

/// Delegates every message of a person, and ends after the result.
async fn supervise(state: View<Supervision>, cx: NodeCx) -> Result<SupervisionUpdate, NodeError> {
    let result = state.messages.last().filter(|last| is_tool_result(last));
    let answer = match result {
        Some(result) => {
            show_tool_end(&cx, &task(), &result.text())?;
            let (message, text) = ("sup-2", "Research complete.");
            stream_answer(&cx, message, &[text.to_owned()])?;
            ai(text).with_id(message)
        }
        None => {
            let (message, call) = ("sup-1", task());
            stream_call(&cx, message, &call)?;
            show_tool_start(&cx, &call)?;
            ai_calling(call).with_id(message)
        }
    };
    Ok(SupervisionUpdate::default().messages(answer))
}

async fn research(_: View<Research>, cx: NodeCx) -> Result<ResearchUpdate, NodeError> {
    let (message, text) = ("res-1", "v3 streaming is event-typed and thread-centric.");
    stream_answer(&cx, message, &[text.to_owned()])?;
    Ok(ResearchUpdate::default().messages(ai(text).with_id(message)))
}

/// Makes the researcher's input.
fn question(state: &Supervision) -> ResearchUpdate {
    let calls = unanswered_calls(&state.messages);
    let description = calls
        .first()
        .and_then(|call| call.args["description"].as_str());
    ResearchUpdate::default().messages(ChatMessage::user(description.unwrap_or_default()))
}

/// Makes the result of the tool call.
fn report(state: &Supervision, research: &Research) -> SupervisionUpdate {
    let text = research.messages.last().map(ChatMessage::text);
    let text = text.unwrap_or_default();
    let calls = unanswered_calls(&state.messages);
    let results = calls
        .into_iter()
        .map(|call| tool_result(call, text.clone()));
    SupervisionUpdate::default().messages_all(results)
}
