//! An agent with two tools, in a page.
//!
//! Run it: `cargo run -p example-agents --bin tools` (offline, by a script), or with a model:
//! `cargo run -p example-agents --features remote --bin tools -- --model openai:gpt-4.1-mini "How warm is Bern, in Fahrenheit?"`

use example_agents::model_from_args;
use schemars::JsonSchema;
use serde::Deserialize;
use superstep::{Memory, Runtime};
use superstep_agent::{Agent, AgentState, ToolCx, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct City {
    /// The name of the city, in English.
    name: String,
}

async fn weather(city: City, _: ToolCx) -> Result<f64, ToolError> {
    match city.name.as_str() {
        "Bern" => Ok(21.5),
        other => Err(ToolError::failed(format!("no station in {other}"))),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Celsius {
    degrees: f64,
}

async fn fahrenheit(celsius: Celsius, _: ToolCx) -> Result<f64, ToolError> {
    Ok(celsius.degrees * 9.0 / 5.0 + 32.0)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (model, question) = model_from_args("tools.json", "How warm is Bern, in Fahrenheit?")?;
    let graph = Agent::builder(model)
        .system("Answer in one sentence. Use the tools; do not guess.")
        .tools([
            tool("weather", "Degrees Celsius in a city.", weather).read(),
            tool("fahrenheit", "Celsius as Fahrenheit.", fahrenheit).read(),
        ])
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "weather")?;
    let state = thread.start(AgentState::ask(question)).await?.state;
    for said in &state.messages {
        println!("{}", serde_json::to_string(said)?);
    }
    println!("{} tokens", state.spent.usage.total_tokens());
    Ok(())
}
