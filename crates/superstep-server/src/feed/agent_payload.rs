//! What the nodes of agents show live, and what every other node does.

use serde::Deserialize;
use serde_json::{Value as Json, json};

/// A live event of an agent. Its form is that of `AgentEvent` of `superstep-agent`, which this crate does not depend on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum AgentPayload {
    Token {
        message: String,
        text: String,
    },
    Reasoning {
        message: String,
        text: String,
    },
    ToolCall {
        #[serde(default)]
        message: Option<String>,
        id: String,
        name: String,
        #[serde(default)]
        args: Json,
    },
    ToolCallDelta {
        message: String,
        #[serde(default)]
        index: u32,
        #[serde(default)]
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        args: String,
    },
    ModelProgress {},
    ModelEnded {
        message: String,
        #[serde(default)]
        input_tokens: Option<u64>,
        #[serde(default)]
        output_tokens: Option<u64>,
    },
    Again {},
    ToolStarted {
        id: String,
        name: String,
        #[serde(default)]
        input: Json,
    },
    ToolEnded {
        id: String,
        name: String,
        status: String,
        #[serde(default)]
        output: String,
    },
    ToolProgress {
        id: String,
        name: String,
        progress: f64,
        #[serde(default)]
        total: Option<f64>,
        #[serde(default)]
        message: Option<String>,
    },
}

impl AgentPayload {
    /// Reads a live event that is not stored; `None` for one that a node shows in a form of its own. A line of progress is
    /// one of those: it is for people, and clients read it as a custom event.
    pub(super) fn read(payload: &Json) -> Option<Self> {
        payload.get("event")?.as_str()?;
        Self::deserialize(payload).ok()
    }
}

/// Returns the usage of a call as clients read it; `None` if nothing is known about it.
pub(super) fn usage(input_tokens: Option<u64>, output_tokens: Option<u64>) -> Option<Json> {
    if input_tokens.is_none() && output_tokens.is_none() {
        return None;
    }
    // Clients add these numbers up, so one that is unknown is left out only from the sum.
    let (input, output) = (input_tokens.unwrap_or(0), output_tokens.unwrap_or(0));
    Some(json!({
        "input_tokens": input,
        "output_tokens": output,
        "total_tokens": input.saturating_add(output),
    }))
}

/// Returns a line about the progress of a tool.
pub(super) fn progress_line(progress: f64, total: Option<f64>, message: Option<String>) -> String {
    match (message, total) {
        (Some(message), _) => message,
        (None, Some(total)) => format!("{progress}/{total}"),
        (None, None) => progress.to_string(),
    }
}

#[test]
fn events_of_agents_are_distinguished_from_those_of_other_nodes() {
    let token = json!({ "event": "token", "message": "m", "text": "Hi" });
    assert_eq!(
        AgentPayload::read(&token),
        Some(AgentPayload::Token {
            message: "m".to_owned(),
            text: "Hi".to_owned()
        })
    );
    let again = json!({ "event": "again", "why": "cut" });
    assert_eq!(AgentPayload::read(&again), Some(AgentPayload::Again {}));
    for other in [
        json!({ "event": "progress", "text": "reading" }),
        json!({ "event": "token", "of": "another program" }),
        json!({ "name": "progress", "step": 1 }),
        json!("text"),
    ] {
        assert_eq!(AgentPayload::read(&other), None, "{other}");
    }
}
