//! An agent with the tools of an MCP server.

use example_migrate::{call, mcp_server, say, script};
use serde_json::json;
use superstep::prelude::*;
use superstep_agent::mcp::{Accepted, Server};
use superstep_agent::{Agent, AgentState, Tool};

// Of the list of tools, as someone read and accepted it. Another list is refused.
const ACCEPTED: &str = "0558bc203037facfc60a8dff019ae754bd23c488934828cbc03747420585f57d";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server is this program too, started by itself.
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(mcp_server::serve()?);
    }
    let program = std::env::args().next().ok_or("no path")?;
    let server = Server::stdio("weather", &program, ["serve"], []).await?;
    let tools = server.tools(&Accepted::digest(ACCEPTED))?;
    println!(
        "tools: {:?}",
        tools.iter().map(Tool::name).collect::<Vec<_>>()
    );
    let model = script(
        "model",
        [
            call("weather__forecast", json!({ "city": "Oslo" })),
            call("weather__to_fahrenheit", json!({ "celsius": 11 })),
            say("It rains in Oslo tomorrow, at 52 degrees Fahrenheit."),
        ],
    );
    // Nothing that the server says about its tools is believed: we know that they change nothing.
    let tools = tools.into_iter().map(Tool::read);
    let agent = Agent::builder(model).tools(tools).build()?;
    let thread = Runtime::new(Memory::default()).thread(&agent, "weather")?;
    let question = "Weather in Oslo tomorrow, in Fahrenheit?";
    let result = thread.start(AgentState::ask(question)).await?;
    for said in result.state.messages {
        if !said.text().is_empty() {
            println!("{}: {}", said.message.role(), said.text());
        }
    }
    Ok(())
}
