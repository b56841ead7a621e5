//! Live events that an agent emits while it works.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep_core::driver::LiveEvent;
use superstep_llm::ToolStatus;

/// Live event of an agent, for clients that stream the thread. Not stored.
///
/// Serialized as `{"event": "token", "text": "…"}` and so on. Clients decode a live event with
/// [`AgentEvent::of`] and match on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A piece of the model's answer.
    Token {
        /// Text to append to the answer.
        text: Cow<'a, str>,
    },
    /// A piece of the model's reasoning, if the provider streams it.
    Reasoning {
        /// Text to append to the reasoning.
        text: Cow<'a, str>,
    },
    /// The model requests a tool call. Emitted once per call, when its arguments are complete.
    ToolCall {
        /// Id of the call, as the provider sent it.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
        /// Arguments, as the model wrote them: not yet checked against the tool's schema.
        args: Cow<'a, Json>,
    },
    /// The stream of the answer broke, and the model is called again. Discard the tokens of this answer: the next ones start
    /// it from the beginning.
    Again {
        /// Reason why the stream broke.
        why: Cow<'a, str>,
    },
    /// A tool call starts, after its approval.
    ToolStarted {
        /// Id of the call.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
    },
    /// A tool call has its result, be it from the tool or a refusal.
    ToolEnded {
        /// Id of the call.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
        /// Whether the call succeeded.
        status: ToolStatus,
    },
    /// A running tool call reports how far it is, for tools of MCP servers that do so. At most ten times a second.
    ToolProgress {
        /// Id of the call.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
        /// Progress so far, in a unit of the tool's choice.
        progress: f64,
        /// Progress at the end, if the tool knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What the tool is doing, in its own words: untrusted, cut, and without control characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Cow<'a, str>>,
    },
    /// A progress line for a person.
    Progress {
        /// Text of the line.
        text: Cow<'a, str>,
    },
}

impl AgentEvent<'static> {
    /// Decodes a live event. `None` if it is not of an agent: other nodes and traces show events, too.
    pub fn of(live: &LiveEvent) -> Option<Self> {
        live.payload.decode().ok()
    }
}

impl<'a> AgentEvent<'a> {
    /// Creates a [`Progress`](Self::Progress) event.
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
            args: Cow::Owned(serde_json::json!({ "words": "bolts" })),
        },
        AgentEvent::Again { why: "cut".into() },
        AgentEvent::ToolProgress {
            id: id.clone(),
            name: name.clone(),
            progress: 2.0,
            total: Some(5.0),
            message: None,
        },
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

#[test]
fn progress_of_a_tool_has_the_documented_form() {
    let event = AgentEvent::ToolProgress {
        id: "1".into(),
        name: "files__index".into(),
        progress: 2.0,
        total: Some(5.0),
        message: Some("reading".into()),
    };
    let json = serde_json::to_string(&event).expect("plain data");
    let documented = include_str!("../../../../docs/streaming.md");
    assert!(documented.contains(&json), "{json}");
}
