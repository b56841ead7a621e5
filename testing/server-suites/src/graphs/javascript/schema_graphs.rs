//! `state_schema_graph`, `zod_registry_graph` and `plain_zod_graph`: the same node over three kinds of JavaScript schemas.
//!
//! The states have the same channels. The original of `zod_registry_graph` has a list of texts that its schema calls messages;
//! here it is a channel of messages, which the server's schemas mark in the same way.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::ai;

#[derive(Clone, Debug, Default, State)]
struct Counted {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    count: u64,
}

pub(super) fn state_schema() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("state_schema_graph")
        .node("process", count)
        .edge(START, "process")
        .edge("process", END)
        .inputs(["messages", "count"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn count(state: View<Counted>, _: NodeCx) -> Result<CountedUpdate, NodeError> {
    let count = state.count + 1;
    Ok(CountedUpdate::default()
        .messages(ai(format!("Response {count}")))
        .count(count))
}

#[derive(Clone, Debug, Default, State)]
struct Registered {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    count: u64,
    status: Progress,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Progress {
    #[default]
    Idle,
    Processing,
    Done,
}

pub(super) fn zod_registry() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("zod_registry_graph")
        .node("process", register)
        .edge(START, "process")
        .edge("process", END)
        .inputs(["messages", "count", "status"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn register(state: View<Registered>, _: NodeCx) -> Result<RegisteredUpdate, NodeError> {
    let count = state.count + 1;
    Ok(RegisteredUpdate::default()
        .messages(ChatMessage::user(format!("Message {count}")))
        .count(count)
        .status(Progress::Processing))
}

#[derive(Clone, Debug, Default, State)]
struct Plain {
    items: Vec<String>,
    counter: u64,
    label: Option<String>,
}

pub(super) fn plain_zod() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("plain_zod_graph")
        .node("process", process)
        .edge(START, "process")
        .edge("process", END)
        .inputs(["items", "counter", "label"])
        .build()?;
    Ok(graph.definition().clone())
}

async fn process(state: View<Plain>, _: NodeCx) -> Result<PlainUpdate, NodeError> {
    let counter = state.counter + 1;
    let mut items = state.items.clone();
    items.push(format!("Item {counter}"));
    Ok(PlainUpdate::default()
        .items(items)
        .counter(counter)
        .label("processed".to_owned()))
}
