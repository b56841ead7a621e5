//! Refusals: why a request was not executed, on the way back to its caller.
//!
//! They may quote user data, so they go through the queue and not through Restate's journal.

use serde::{Deserialize, Serialize};
use superstep::error::{CheckpointError, OpenError};
use superstep::{DriveError, InterruptId, ThreadId};

/// Why a request was not executed. Stored in the queue as the request's reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refusal {
    code: String,
    message: String,
    interrupt: Option<InterruptId>,
}

impl Refusal {
    pub(crate) fn of(error: &DriveError) -> Self {
        let interrupt = match error {
            DriveError::Checkpoint(CheckpointError::NotOpen { interrupt, .. }) => Some(*interrupt),
            DriveError::AnswerRefused { interrupt, .. } => Some(*interrupt),
            _ => None,
        };
        Self {
            code: error.code().to_owned(),
            message: chain(error),
            interrupt,
        }
    }

    /// Converts a refusal into the error that a local driver would return, for errors that programs match on.
    pub(crate) fn into_error(self, thread: &ThreadId) -> DriveError {
        let thread = thread.clone();
        match (self.code.as_str(), self.interrupt) {
            ("checkpoint-not-open", Some(interrupt)) => {
                CheckpointError::NotOpen { thread, interrupt }.into()
            }
            ("open-busy", _) => OpenError::Busy { thread }.into(),
            ("open-nothing-to-run", _) => OpenError::NothingToRun { thread }.into(),
            _ => DriveError::Engine {
                code: self.code,
                message: self.message,
                is_refusal: true,
            },
        }
    }
}

/// Returns the text of an error and all its sources.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
