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
    /// The call of the model failed, and it is called again, perhaps after a wait. Discard the tokens of this answer: the next
    /// ones start it from the beginning.
    Again {
        /// Reason of the failure.
        why: Cow<'a, str>,
    },
    /// The model is answering. Emitted at most once a second during calls that take longer than that, also for answers that
    /// are not streamed.
    ModelProgress {
        /// Tokens so far, counted as the pieces in which they arrived.
        tokens: u64,
        /// Seconds since the first of them.
        seconds: f64,
        /// Maximum number of tokens, if the request has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_max: Option<u32>,
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
        AgentEvent::ModelProgress {
            tokens: 118,
            seconds: 36.5,
            tokens_max: None,
        },
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
fn progress_of_a_model_has_the_documented_form() {
    let event = AgentEvent::ModelProgress {
        tokens: 118,
        seconds: 36.5,
        tokens_max: Some(512),
    };
    let json = serde_json::to_string(&event).expect("plain data");
    let documented = include_str!("../../../../docs/streaming.md");
    assert!(documented.contains(&json), "{json}");
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
