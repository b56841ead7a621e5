//! Tokens, custom events and the log on one stream.

use std::sync::Arc;

use example_migrate::{say, script};
use serde_json::json;
use superstep::Event;
use superstep::prelude::*;
use superstep_agent::{AgentEvent, ask_model};
use superstep_llm::{Message, Model, Request};

#[derive(Clone, Debug, Default, State)]
struct Answer {
    question: String,
    #[state(append)]
    facts: Vec<String>,
    answer: String,
}

async fn search(_: View<Answer>, cx: NodeCx) -> Result<AnswerUpdate, NodeError> {
    for percent in [50, 100] {
        cx.emit(json!({ "searched": percent }))?;
    }
    Ok(AnswerUpdate::default().facts("cats sleep 15 hours"))
}

async fn answer(
    model: Arc<dyn Model>,
    state: View<Answer>,
    cx: NodeCx,
) -> Result<AnswerUpdate, NodeError> {
    let text = format!("{} {:?}", state.question, state.facts);
    let request = Request::new("answer", vec![Message::user(text)]);
    Ok(AnswerUpdate::default().answer(ask_model(&*model, &request, &cx).await?.text()))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = script("answer", [say("Cats sleep all day.")]);
    let graph = Graph::builder("answer")
        .node("search", search)
        .node("answer", with(&model, answer))
        .edge(START, "search")
        .edge("search", "answer")
        .edge("answer", END)
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "cats")?;
    let mut run = thread.stream(AnswerUpdate::default().question("What do cats do?"));
    while let Some(event) = run.next().await {
        match event? {
            Event::Live(live) => match live.payload.decode() {
                Ok(AgentEvent::Token { text, .. }) => println!("token: {text:?} by {}", live.node),
                // Events of a node's own, and what else a model call shows.
                _ => println!("custom: {:?}", live.payload),
            },
            event => println!("{}", serde_json::to_string(&event)?),
        }
    }
    println!("{}", run.finish().await?.state.answer);
    Ok(())
}
