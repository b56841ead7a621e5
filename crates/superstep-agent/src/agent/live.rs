//! What those who watch are shown while an agent works.

use serde::Serialize;
use superstep_llm::ToolStatus;

/// Shown right now and not stored, as `{"event": "token", "text": "…"}` and so on.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Live<'a> {
    /// Words of the model.
    Token {
        /// The words.
        text: &'a str,
    },
    /// Thoughts of the model, where the provider tells.
    Reasoning {
        /// The thoughts.
        text: &'a str,
    },
    /// The model wants a tool called.
    ToolCall {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
    },
    /// What came so far of this answer is void; it is asked for again.
    Again {
        /// Why.
        why: &'a str,
    },
    /// A tool is called.
    ToolStarted {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
    },
    /// A call has its result.
    ToolEnded {
        /// The call.
        id: &'a str,
        /// The tool.
        name: &'a str,
        /// How it went.
        status: ToolStatus,
    },
}
