//! A durable function with an interrupt.

use std::sync::Arc;

use example_migrate::{say, script};
use superstep::prelude::*;
use superstep_agent::ask_model;
use superstep_llm::{Message, Model, Request};

async fn essay(model: Arc<dyn Model>, topic: String, cx: NodeCx) -> Result<String, NodeError> {
    let request = Request::new("write", vec![Message::user(format!("Write about {topic}"))]);
    let write = || async { Ok(ask_model(&*model, &request, &cx).await?.text()) };
    let text: String = cx.step("write", write).await?;
    let correction: Option<String> = cx.interrupt(Interrupt::new("correct", &text)).await?;
    let text = correction.unwrap_or(text);
    cx.step("publish", || async { Ok(format!("Published: {text}")) })
        .await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = script("write", [say("Cats sleep a lot.")]);
    let essay = workflow("essay", with(&model, essay))?;
    let thread = Runtime::new(Memory::default()).thread(&essay, "essay")?;
    let paused = thread.start("cats".to_owned().into()).await?;
    println!(
        "asks: {}",
        paused.interrupts()[0].request.decode::<String>()?
    );
    let result = thread
        .answer_only(Some("Cats sleep 15 hours a day."))
        .await?;
    println!(
        "{}",
        result
            .and_then(|result| result.state.output)
            .unwrap_or_default()
    );
    Ok(())
}
