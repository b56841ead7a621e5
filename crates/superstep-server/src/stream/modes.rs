//! Stream modes: what a client wants to see of a run.

use std::collections::BTreeSet;

use crate::error::{ApiError, ApiResult};

/// What a client can ask to see of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WireMode {
    /// The state after each superstep.
    Values,
    /// What each task wrote.
    Updates,
    /// Messages as they grow, each event with all of a message so far.
    Messages,
    /// Pieces of messages, with metadata.
    MessagesTuple,
    /// What nodes show in forms of their own.
    Custom,
    /// Tasks as they start and end.
    Tasks,
    Checkpoints,
    /// Tasks and checkpoints, in an envelope.
    Debug,
    /// Events of chains, models and tools, as LangChain reports them.
    Events,
}

const NAMES: [(&str, WireMode); 9] = [
    ("values", WireMode::Values),
    ("updates", WireMode::Updates),
    ("messages", WireMode::Messages),
    ("messages-tuple", WireMode::MessagesTuple),
    ("custom", WireMode::Custom),
    ("tasks", WireMode::Tasks),
    ("checkpoints", WireMode::Checkpoints),
    ("debug", WireMode::Debug),
    ("events", WireMode::Events),
];

/// The modes of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WireModes(BTreeSet<WireMode>);

impl WireModes {
    /// Reads the names of modes.
    pub(crate) fn read(names: &[String]) -> ApiResult<Self> {
        let mode = |name: &String| {
            let found = NAMES.iter().find(|(known, _)| known == name);
            found.map(|(_, mode)| *mode).ok_or_else(|| {
                let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
                ApiError::invalid(format!(
                    "Invalid stream mode: '{name}'. Must be one of: {}",
                    known.join(", ")
                ))
            })
        };
        names.iter().map(mode).collect::<ApiResult<_>>().map(Self)
    }

    /// Whether a mode is among them.
    pub(crate) fn has(&self, mode: WireMode) -> bool {
        self.0.contains(&mode)
    }
}

#[test]
fn an_unknown_mode_is_refused() {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let read = WireModes::read(&names(&["values", "messages-tuple"])).unwrap();
    assert!(read.has(WireMode::MessagesTuple));
    assert!(!read.has(WireMode::Messages));
    let refused = WireModes::read(&names(&["valuez"])).unwrap_err();
    assert_eq!(refused.status, http::StatusCode::UNPROCESSABLE_ENTITY);
}
