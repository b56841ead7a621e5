//! `agent`: a streamed message, a tool message, a question to a person and a subgraph, one after the other.
//!
//! The original calls its subgraph inside a node, which emits progress before and after the call. Here the node is the subgraph
//! itself, so the only node of the subgraph emits that progress, too: the same events in the same order, all of the child.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::{ai, ai_calling, nameless_result, stream_answer, tool_call, words};

#[derive(Clone, Debug, Default, State)]
struct Showcase {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    value: Option<String>,
    #[state(append)]
    items: Vec<String>,
}

#[derive(Clone, Debug, Default, State)]
struct Note {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    note: Option<String>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let child = Graph::builder("subgraph")
        .node("sub", sub)
        .edge(START, "sub")
        .edge("sub", END)
        .inputs(["messages", "note"])
        .build()?;
    let graph = Graph::builder("agent")
        .node("stream_message", stream_message)
        .node("call_tool", call_tool)
        .node("ask_human", ask_human)
        .subgraph(
            "run_subgraph",
            child,
            |_: &Showcase| NoteUpdate::default().note(String::new()),
            |_: &Showcase, note: &Note| {
                let update = ShowcaseUpdate::default().messages_all(note.messages.clone());
                update.items("sub")
            },
        )
        .edge(START, "stream_message")
        .edge("stream_message", "call_tool")
        .edge("call_tool", "ask_human")
        .edge("ask_human", "run_subgraph")
        .edge("run_subgraph", END)
        .inputs(["messages", "value", "items"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn stream_message(_: View<Showcase>, cx: NodeCx) -> Result<ShowcaseUpdate, NodeError> {
    const TEXT: &str = "Hello, world!";
    const MESSAGE: &str = "ai-msg-1";
    progress(&cx, "stream_message", "start")?;
    stream_answer(&cx, MESSAGE, &words(TEXT))?;
    progress(&cx, "stream_message", "end")?;
    Ok(ShowcaseUpdate::default()
        .messages(ai(TEXT).with_id(MESSAGE))
        .value("x".to_owned())
        .items("streamed"))
}

/// Writes a call and its result without a model or a tool, so clients see messages and no events of a tool.
async fn call_tool(_: View<Showcase>, cx: NodeCx) -> Result<ShowcaseUpdate, NodeError> {
    progress(&cx, "call_tool", "start")?;
    let call = tool_call("tc-1", "search", json!({ "query": "v3" }));
    let result = nameless_result(&call.id, "result for 'v3'");
    progress(&cx, "call_tool", "end")?;
    Ok(ShowcaseUpdate::default()
        .messages(ai_calling(call).with_id("ai-msg-2"))
        .messages(result)
        .items("tool"))
}

async fn ask_human(_: View<Showcase>, cx: NodeCx) -> Result<ShowcaseUpdate, NodeError> {
    progress(&cx, "ask_human", "start")?;
    let question = Interrupt::new("ask_human", "Are we good?");
    let answer: Json = cx.interrupt(question).await?;
    let answer = match answer {
        Json::String(text) => text,
        other => other.to_string(),
    };
    cx.emit(json!({ "name": "progress", "step": "ask_human", "phase": "end", "answer": answer }))?;
    Ok(ShowcaseUpdate::default()
        .messages(ai(format!("Human said: {answer}")).with_id("ai-msg-3"))
        .items("asked"))
}

async fn sub(_: View<Note>, cx: NodeCx) -> Result<NoteUpdate, NodeError> {
    progress(&cx, "run_subgraph", "start")?;
    progress(&cx, "sub_node", "start")?;
    let message = ai("from subgraph").with_id("sub-msg-1");
    progress(&cx, "sub_node", "end")?;
    progress(&cx, "run_subgraph", "end")?;
    Ok(NoteUpdate::default()
        .messages(message)
        .note("ran".to_owned()))
}

fn progress(cx: &NodeCx, step: &str, phase: &str) -> Result<(), NodeError> {
    cx.emit(json!({ "name": "progress", "step": step, "phase": phase }))
}
