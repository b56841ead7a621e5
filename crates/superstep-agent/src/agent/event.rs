//! Live events that an agent emits while it works.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use superstep_core::driver::LiveEvent;
use superstep_llm::ToolStatus;

/// Live event of an agent, for clients that stream the thread. Not stored.
///
/// Serialized as `{"event": "token", "message": "…", "text": "…"}` and so on. Clients decode a live event with
/// [`AgentEvent::of`] and match on it.
///
/// The events of a model's answer carry the id of the message that the answer will be stored as, if its node stores it as a
/// message without an id of its own; see [`NodeCx::message_id`](superstep_core::NodeCx::message_id).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// A piece of the model's answer.
    Token {
        /// Id of the message that the answer becomes.
        message: Cow<'a, str>,
        /// Text to append to the answer.
        text: Cow<'a, str>,
    },
    /// A piece of the model's reasoning, if the provider streams it.
    Reasoning {
        /// Id of the message that the answer becomes.
        message: Cow<'a, str>,
        /// Text to append to the reasoning.
        text: Cow<'a, str>,
    },
    /// The model is writing a tool call. Emitted for every piece of the arguments that the provider streams; some providers
    /// stream none, or send each call in one piece.
    ToolCallDelta {
        /// Id of the message that the answer becomes.
        message: Cow<'a, str>,
        /// Position of the call among the calls of the answer, from 0.
        index: u32,
        /// Id of the call, as the provider sent it.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
        /// Text to append to the arguments, which are JSON once the call is complete.
        args: Cow<'a, str>,
    },
    /// The model requests a tool call. Emitted once per call, when the answer is complete.
    ToolCall {
        /// Id of the message that the answer becomes.
        message: Cow<'a, str>,
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
        /// Number of the attempt that follows, from 2. 0 if a worker of an older version makes it.
        #[serde(default)]
        attempt: u32,
        /// Highest number of attempts.
        #[serde(default)]
        attempts_max: u32,
    },
    /// The model has finished a streamed answer.
    ModelEnded {
        /// Id of the message that the answer becomes.
        message: Cow<'a, str>,
        /// Input tokens, including cached ones. `None` if the server did not report them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        /// Output tokens, including reasoning. `None` if the server did not report them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
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
        /// Arguments that the tool gets; hooks and the person who approved the call may have changed them. `null` if the call is
        /// labeled `secret`.
        input: Cow<'a, Json>,
    },
    /// A tool call has its result, be it from the tool or a refusal.
    ToolEnded {
        /// Id of the call.
        id: Cow<'a, str>,
        /// Name of the tool.
        name: Cow<'a, str>,
        /// Whether the call succeeded.
        status: ToolStatus,
        /// Text of the result, cut to 10,000 characters. Empty if the result is labeled `secret`.
        output: Cow<'a, str>,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Shorter than a real id, as in the documentation.
    const MESSAGE: &str = "01980d6e-0";

    /// Returns an event of each kind, in the order of the documentation.
    fn samples() -> Vec<AgentEvent<'static>> {
        let message = Cow::from(MESSAGE);
        let (id, name) = (Cow::from("1"), Cow::from("search"));
        vec![
            AgentEvent::Reasoning {
                message: message.clone(),
                text: "bolts, then".into(),
            },
            AgentEvent::Token {
                message: message.clone(),
                text: "I search.".into(),
            },
            AgentEvent::ToolCallDelta {
                message: message.clone(),
                index: 0,
                id: id.clone(),
                name: name.clone(),
                args: "{\"words\":".into(),
            },
            AgentEvent::ToolCall {
                message: message.clone(),
                id: id.clone(),
                name: name.clone(),
                args: Cow::Owned(json!({ "words": "bolts" })),
            },
            AgentEvent::ModelEnded {
                message,
                input_tokens: Some(310),
                output_tokens: Some(24),
            },
            AgentEvent::ToolStarted {
                id: id.clone(),
                name: name.clone(),
                input: Cow::Owned(json!({ "words": "bolts" })),
            },
            AgentEvent::ToolEnded {
                id: id.clone(),
                name: name.clone(),
                status: ToolStatus::Success,
                output: "12 kinds of bolts".into(),
            },
            AgentEvent::ToolProgress {
                id,
                name: "files__index".into(),
                progress: 2.0,
                total: Some(5.0),
                message: Some("reading".into()),
            },
            AgentEvent::ModelProgress {
                tokens: 118,
                seconds: 36.5,
                tokens_max: Some(512),
            },
            AgentEvent::Again {
                why: "cut".into(),
                attempt: 2,
                attempts_max: 4,
            },
            AgentEvent::progress("reading"),
        ]
    }

    #[test]
    fn events_are_read_back_as_they_were_emitted() {
        let message = Cow::from(MESSAGE);
        let without_options = [
            AgentEvent::ModelEnded {
                message,
                input_tokens: None,
                output_tokens: None,
            },
            AgentEvent::ModelProgress {
                tokens: 118,
                seconds: 36.5,
                tokens_max: None,
            },
            AgentEvent::ToolProgress {
                id: "1".into(),
                name: "search".into(),
                progress: 2.0,
                total: None,
                message: None,
            },
        ];
        for event in samples().into_iter().chain(without_options) {
            let json = serde_json::to_string(&event).expect("plain data");
            let read: AgentEvent<'_> = serde_json::from_str(&json).expect("it is read");
            assert_eq!(read, event, "{json}");
        }
    }

    #[test]
    fn an_event_of_an_older_worker_is_read() {
        let read: AgentEvent<'_> =
            serde_json::from_str(r#"{"event":"again","why":"cut"}"#).expect("it is read");
        let again = AgentEvent::Again {
            why: "cut".into(),
            attempt: 0,
            attempts_max: 0,
        };
        assert_eq!(read, again);
    }

    #[test]
    fn every_event_has_the_documented_form() {
        let documented = include_str!("../../../../docs/streaming.md");
        for event in samples() {
            let json = serde_json::to_string(&event).expect("plain data");
            assert!(documented.contains(&json), "{json}");
        }
    }
}
