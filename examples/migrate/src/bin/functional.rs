//! A durable function with an interrupt.

use std::sync::Arc;

use example_migrate::{say, script};
use serde_json::json;
use superstep::prelude::*;
use superstep_agent::ask_model;
use superstep_llm::{Message, Model, Request};

async fn write(model: &dyn Model, topic: &str, cx: &NodeCx) -> Result<String, NodeError> {
    let request = Request::new("write", vec![Message::user(format!("Write about {topic}"))]);
    Ok(ask_model(model, &request, cx).await?.text())
}

async fn essay(model: Arc<dyn Model>, topic: String, cx: NodeCx) -> Result<String, NodeError> {
    let text = cx.step("write", || write(&*model, &topic, &cx)).await?;
    let question = json!({ "text": text, "question": "Any correction?" });
    let correction: Option<String> = cx.interrupt(Interrupt::new("correct", question)).await?;
    let text = correction.unwrap_or(text);
    let publish = || async { Ok(format!("Published: {text}")) };
    cx.step("publish", publish).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = script("write", [say("Cats sleep a lot.")]);
    let essay = workflow("essay", with(&model, essay))?;
    let thread = Runtime::new(Memory::default()).thread(&essay, "essay")?;
    let paused = thread.start("cats".to_owned().into()).await?;
    println!("asks: {}", paused.interrupts()[0].request);
    let result = thread.resume_with("Cats sleep 15 hours a day.").await?;
    println!("{}", result.state.output.ok_or("no output")?);
    Ok(())
}
