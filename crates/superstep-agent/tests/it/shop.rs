//! An agent with a tool of each kind, for traces.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use superstep::Graph;
use superstep_agent::{Agent, AgentState, Approval, ToolError, tool};
use superstep_llm::Script;

#[derive(Deserialize, JsonSchema)]
struct Note {
    #[expect(dead_code, reason = "only its schema is wanted")]
    note: String,
}

/// One that looks, and pays if a person lets it.
pub(crate) fn model() -> Arc<Script> {
    let replies = json!({
        "price": { "input": 150, "output": 600 },
        "replies": [
            { "at": "model", "usage": { "input_tokens": 100, "output_tokens": 20 }, "tool_calls": [
                { "id": "c1", "name": "look", "args": { "note": "rain" } },
                { "id": "c2", "name": "pay", "args": { "note": "7" } },
                { "id": "c3", "name": "shout", "args": { "note": "hey" } }
            ] },
            { "at": "model", "text": "Done.", "usage": { "input_tokens": 200, "output_tokens": 5 } }
        ]
    });
    Arc::new(Script::parse("shop", &replies.to_string()).unwrap())
}

pub(crate) fn graph(model: Arc<Script>) -> Graph<AgentState> {
    let look = tool("look", "Looks.", |_: Note, _| async { Ok("seen") }).read();
    let pay = tool("pay", "Pays.", |_: Note, _| async { Ok("paid") })
        .keyed()
        .approved_by_a_person(Approval::always());
    let shout = tool("shout", "Shouts.", |_: Note, _| async {
        Err::<String, _>(ToolError::failed("the line is busy"))
    })
    .idempotent();
    Agent::builder(model)
        .name("shop")
        .tools([look, pay, shout])
        .build()
        .unwrap()
}
