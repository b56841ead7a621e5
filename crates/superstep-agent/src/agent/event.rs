//! Live events: what an agent shows while it works.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use superstep_llm::ToolStatus;

/// What an agent emits while it works, for everyone who watches. Not stored.
///
/// Serialized as `{"event": "token", "text": "…"}` and so on. A watcher decodes
/// [`LiveEvent::payload`](superstep_core::driver::LiveEvent) into this and matches on it; a payload that does not decode is
/// some node's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A piece of the model's answer.
    Token {
        /// The text.
        text: Cow<'a, str>,
    },
    /// A piece of the model's reasoning, if the provider streams it.
    Reasoning {
        /// The text.
        text: Cow<'a, str>,
    },
    /// The model requests a tool call.
    ToolCall {
        /// The id of the call.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
    },
    /// The stream of the answer broke, and the model is asked again. Discard the tokens of this answer: the next ones begin it
    /// from the start.
    Again {
        /// Why it broke.
        why: Cow<'a, str>,
    },
    /// A tool call starts.
    ToolStarted {
        /// The id of the call.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
    },
    /// A tool call has its result.
    ToolEnded {
        /// The id of the call.
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
        /// Whether it succeeded.
        status: ToolStatus,
    },
    /// A line about what the agent is doing.
    Progress {
        /// The line.
        text: Cow<'a, str>,
    },
}

impl<'a> AgentEvent<'a> {
    /// Creates a line about what the agent is doing.
    pub fn progress(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Progress { text: text.into() }
    }
}

#[test]
fn events_are_read_back_as_they_were_emitted() {
    let (id, name) = (Cow::from("1"), Cow::from("search"));
    let events = [
        AgentEvent::Token { text: "a".into() },
        AgentEvent::Reasoning { text: "b".into() },
        AgentEvent::ToolCall {
            id: id.clone(),
            name: name.clone(),
        },
        AgentEvent::Again { why: "cut".into() },
        AgentEvent::ToolEnded {
            id,
            name,
            status: ToolStatus::Success,
        },
        AgentEvent::progress("reading"),
    ];
    for event in events {
        let json = serde_json::to_string(&event).expect("plain data");
        let read: AgentEvent<'_> = serde_json::from_str(&json).expect("it is read");
        assert_eq!(read, event, "{json}");
    }
}
