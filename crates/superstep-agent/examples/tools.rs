//! An agent with two tools, in a page.
//!
//! Run it: `cargo run -p superstep-agent --example tools` (offline, by a script), or with a model:
//! `… --example tools -- --model openai:gpt-4.1-mini "What is the weather in Bern, in Fahrenheit?"`

#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

mod model;

use schemars::JsonSchema;
use serde::Deserialize;
use superstep::{Memory, Runtime};
use superstep_agent::{Agent, AgentState, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
struct City {
    /// The name of the city, in English.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Celsius {
    degrees: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (model, question) =
        model::from_args("tools.json", "How warm is it in Bern, in Fahrenheit?")?;

    let weather = tool(
        "weather",
        "The temperature in a city, in Celsius.",
        |city: City, _| async move {
            match city.name.as_str() {
                "Bern" => Ok(21.5),
                other => Err(ToolError::failed(format!("there is no station in {other}"))),
            }
        },
    );
    let fahrenheit = tool(
        "fahrenheit",
        "Celsius as Fahrenheit.",
        |celsius: Celsius, _| async move { Ok(celsius.degrees * 9.0 / 5.0 + 32.0) },
    );

    let graph = Agent::builder(model)
        .system("Answer in one sentence. Use the tools; do not guess.")
        .tools([weather.read(), fahrenheit.read()])
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "weather")?;
    let stopped = thread.start(AgentState::ask(question)).await?;

    for said in &stopped.state.messages {
        println!("{}", serde_json::to_string(said)?);
    }
    println!(
        "{:?} after {} tokens",
        stopped.outcome,
        stopped.state.spent.usage.total_tokens()
    );
    Ok(())
}
