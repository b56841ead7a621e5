//! An agent that asks a person before it pays.

use example_migrate::{call, say, script};
use serde_json::{Value, json};
use superstep::prelude::*;
use superstep_agent::{Agent, AgentState, Approval, ToolError, tool};
use superstep_sqlite::Sqlite;

/// Looks up an order.
#[tool(read)]
async fn look_up(order: String) -> Result<String, ToolError> {
    Ok(format!(
        "Order {order}: one kettle, 40 euros, arrived broken"
    ))
}

/// Pays money back for an order.
#[tool(keyed)]
async fn refund(order: String, amount: u32) -> Result<String, ToolError> {
    Ok(format!("Refunded {amount} euros for {order}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = script(
        "model",
        [
            call("look_up", json!({ "order": "A-7" })),
            call("refund", json!({ "order": "A-7", "amount": 40 })),
            say("You get 40 euros back."),
        ],
    );
    let refund = refund().approved_by_a_person(Approval::always());
    let agent = Agent::builder(model).tools([look_up(), refund]).build()?;
    let runtime = Runtime::new(Sqlite::in_memory()?);
    let thread = runtime.thread(&agent, "kettle")?;
    let paused = thread
        .start(AgentState::ask("My kettle A-7 arrived broken."))
        .await?;
    let asked: Value = paused.interrupts()[0].request.decode()?;
    println!("asks: {}", asked["action_request"]["args"]);
    let result = thread.resume_with(json!({ "type": "accept" })).await?;
    for message in &result.state.messages[4..] {
        println!("{}", message.message.text());
    }
    Ok(())
}
