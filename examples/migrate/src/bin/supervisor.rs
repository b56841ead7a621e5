//! A supervisor and two agents.

use example_migrate::{call, say, script};
use serde_json::json;
use superstep::prelude::*;
use superstep_agent::{Agent, AgentState, Supervisor, ToolError, tool};

/// Searches the web.
#[tool(read)]
async fn search(query: String) -> Result<String, ToolError> {
    Ok(format!("{query}: 120 in spring, 80 in summer"))
}

/// Adds two numbers.
#[tool(read)]
async fn add(a: i64, b: i64) -> Result<i64, ToolError> {
    Ok(a + b)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let research = Agent::builder(script(
        "research",
        [
            call("search", json!({ "query": "kettles sold" })),
            say("120 in spring and 80 in summer."),
        ],
    ));
    let math = Agent::builder(script(
        "math",
        [
            call("add", json!({ "a": 120, "b": 80 })),
            say("The sum is 200."),
        ],
    ));
    let supervisor = Agent::builder(script(
        "supervisor",
        [
            call(
                "ask_research",
                json!({ "task": "How many kettles were sold?" }),
            ),
            call("ask_math", json!({ "task": "Add 120 and 80." })),
            say("200 kettles were sold in the two seasons."),
        ],
    ));
    let graph = Supervisor::builder(supervisor.system("Give each agent what it is good at."))
        .agent(
            "research",
            "Finds facts.",
            research.system("You find facts.").tools([search()]),
        )
        .agent(
            "math",
            "Computes.",
            math.system("You compute.").tools([add()]),
        )
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&graph, "kettles")?;
    let question = AgentState::ask("How many kettles were sold in spring and summer?");
    for message in thread.start(question).await?.state.messages {
        println!("{}", message.message.text());
    }
    Ok(())
}
