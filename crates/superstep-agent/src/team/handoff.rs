//! Handoffs: an agent passes the conversation to another one.
//!
//! A handoff is a tool call like any other: the request and its result are messages of the conversation, so they are in the log
//! and every agent sees them. Which agent answers next is read from there, and nothing else has to be stored.

use schemars::JsonSchema;
use serde::Deserialize;
use superstep_llm::{Message, ToolStatus};

use crate::chat::ChatMessage;
use crate::tool::{Tool, tool};

/// A tool that is called to hand over has this prefix, then the name of the agent.
const PREFIX: &str = "transfer_to_";

/// Arguments of a handoff.
#[derive(Debug, Deserialize, JsonSchema)]
struct Handoff {
    /// What the other agent should do, if the conversation does not say it.
    #[serde(default)]
    #[expect(dead_code, reason = "the other agent reads it in the conversation")]
    task: String,
}

/// Creates the tool `transfer_to_AGENT`, with which a model hands the conversation to another agent. [`handed_over`] tells
/// whether it was called.
pub fn handoff_tool(agent: &str, description: &str) -> Tool {
    let told = told(agent);
    tool(
        &format!("{PREFIX}{agent}"),
        description,
        move |_: Handoff, _| {
            let told = told.clone();
            async move { Ok(told) }
        },
    )
    .read()
    // What the other agent reads stays in the conversation.
    .takes_everything()
}

/// The result of a handoff that was made: a person who answers in the tool's place says something else.
fn told(agent: &str) -> String {
    format!("The conversation was transferred to {agent}.")
}

/// Returns the agent that the last message hands the conversation to; `None` if it does not. If the model called several
/// handoffs at once, the first one counts.
pub fn handed_over(messages: &[ChatMessage]) -> Option<&str> {
    let is_result = |kept: &&ChatMessage| matches!(kept.message, Message::Tool(_));
    let results = messages.iter().rev().take_while(is_result);
    results.filter_map(handoff_of).last()
}

/// Returns the agent that the conversation was last handed to; `None` if it never was.
pub fn active_agent(messages: &[ChatMessage]) -> Option<&str> {
    let newest = messages
        .iter()
        .rposition(|kept| handoff_of(kept).is_some())?;
    handed_over(&messages[..=newest])
}

fn handoff_of(kept: &ChatMessage) -> Option<&str> {
    match &kept.message {
        Message::Tool(result) if result.status == ToolStatus::Success => {
            let agent = result.name.strip_prefix(PREFIX)?;
            (result.content.text() == told(agent)).then_some(agent)
        }
        _ => None,
    }
}
