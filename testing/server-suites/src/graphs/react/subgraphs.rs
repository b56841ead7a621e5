//! Graphs with a graph as a node: once, before a plain node, and six times at once.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use super::{Chat, ChatUpdate};
use crate::graphs::chat::{ai, characters, stream_answer};

/// What the only node of a subgraph shows and answers.
#[derive(Clone, Copy)]
struct InnerScript {
    /// Progress before the answer.
    started: &'static str,
    answer: &'static str,
    /// Progress after the answer.
    finished: Option<&'static str>,
}

impl InnerScript {
    fn graph(self, name: &str) -> Result<Graph<Chat>, BuildError> {
        let inner = move |_: View<Chat>, cx: NodeCx| async move { self.answer(&cx) };
        Graph::builder(name)
            .node("inner", inner)
            .edge(START, "inner")
            .edge("inner", END)
            .inputs(["messages"])
            .build()
    }

    fn answer(self, cx: &NodeCx) -> Result<ChatUpdate, NodeError> {
        let progress = |label: &str| cx.emit(json!({ "type": "progress", "label": label }));
        progress(self.started)?;
        let message = cx.message_id(0);
        stream_answer(cx, &message, &characters(self.answer))?;
        if let Some(finished) = self.finished {
            progress(finished)?;
        }
        Ok(ChatUpdate::default().messages(ai(self.answer).with_id(message)))
    }
}

fn pass_down(outer: &Chat) -> ChatUpdate {
    ChatUpdate::default().messages_all(outer.messages.clone())
}

fn pass_up(_: &Chat, inner: &Chat) -> ChatUpdate {
    ChatUpdate::default().messages_all(inner.messages.clone())
}

pub(super) fn subgraph_graph() -> Result<Arc<Definition>, BuildError> {
    let child = InnerScript {
        started: "child-started",
        answer: "Reply from child",
        finished: Some("child-finished"),
    };
    let graph = Graph::builder("subgraph_graph")
        .subgraph("child", child.graph("child")?, pass_down, pass_up)
        .edge(START, "child")
        .edge("child", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

/// The node `research` of the original calls its subgraph in a function; here it is the subgraph.
pub(super) fn embedded_subgraph_graph() -> Result<Arc<Definition>, BuildError> {
    let research = InnerScript {
        started: "research-started",
        answer: "Subgraph reply",
        finished: Some("research-finished"),
    };
    let report = |_: &Chat, inner: &Chat| {
        let last = inner.messages.last().map(ChatMessage::text);
        ChatUpdate::default().messages(ai(last.unwrap_or_default()))
    };
    let graph = Graph::builder("embedded_subgraph_graph")
        .subgraph("research", research.graph("research")?, pass_down, report)
        .node("summarize", |_: View<Chat>, _: NodeCx| async {
            Ok::<_, NodeError>(ChatUpdate::default().messages(ai("Summary line")))
        })
        .edge(START, "research")
        .edge("research", "summarize")
        .edge("summarize", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}

#[derive(Serialize, Deserialize)]
struct Subtask {
    text: String,
}

const WORKER: SendTo<Subtask> = SendTo::new("worker");

pub(super) fn parallel_subgraph() -> Result<Arc<Definition>, BuildError> {
    let worker = InnerScript {
        started: "worker-started",
        answer: "Subgraph reply",
        finished: None,
    };
    let question = |task: Subtask| ChatUpdate::default().messages(ChatMessage::user(task.text));
    let graph = Graph::builder("parallel_subgraph")
        .subgraph_worker(&WORKER, worker.graph("worker")?, question, pass_up)
        .route(START, &["worker"], |_: &Chat| {
            let send = |number: u32| {
                let text = format!("Subtask {number}");
                Goto::send(&WORKER, Subtask { text })
            };
            (1..=6).map(send).collect::<Vec<_>>()
        })
        .edge("worker", END)
        .inputs(["messages"])
        .build()?;
    Ok(graph.definition().clone())
}
