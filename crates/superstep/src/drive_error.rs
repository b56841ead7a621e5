//! What can go wrong when a thread is driven, seen from outside.

use superstep_core::error::{CheckpointError, NameError, OpenError, ProtocolError, ValueError};
use superstep_core::{InterruptId, ThreadId};

/// Why a run could not be made, or could not go on. A failed node is not among these: that is an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A value that cannot be stored or read.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The thread cannot be opened with this graph and command.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The checkpointer refused, or did not answer for longer than the runtime is patient.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The driver and the machine disagree. A fault of ours.
    #[error("the driver called the machine out of turn; please report this")]
    Protocol(#[from] ProtocolError),
    /// An answer does not fit the schema of its question.
    #[error("the answer to `{interrupt}` does not fit its schema: {why}")]
    AnswerRefused {
        /// The question.
        interrupt: InterruptId,
        /// What does not fit.
        why: String,
    },
    /// An answer without an id, and there is not exactly one open question.
    #[error("thread `{thread}` has {open} open questions; say which one is answered")]
    AmbiguousAnswer {
        /// The thread.
        thread: ThreadId,
        /// How many are open.
        open: usize,
    },
    /// The runtime is shutting down.
    #[error("the runtime is draining and begins no further runs")]
    Draining,
    /// A thread of a graph that was not registered.
    #[error(
        "thread `{thread}` belongs to graph `{graph}`, which is not registered with this runtime"
    )]
    UnknownGraph {
        /// The thread.
        thread: ThreadId,
        /// The graph.
        graph: String,
    },
}

impl DriveError {
    /// The codes that are this crate's own.
    pub const CODES: &'static [&'static str] = &[
        "drive-answer-refused",
        "drive-ambiguous-answer",
        "drive-draining",
        "drive-unknown-graph",
        "drive-protocol",
    ];

    /// The stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            DriveError::Name(error) => error.code(),
            DriveError::Value(error) => error.code(),
            DriveError::Open(error) => error.code(),
            DriveError::Checkpoint(error) => error.code(),
            DriveError::Protocol(_) => "drive-protocol",
            DriveError::AnswerRefused { .. } => "drive-answer-refused",
            DriveError::AmbiguousAnswer { .. } => "drive-ambiguous-answer",
            DriveError::Draining => "drive-draining",
            DriveError::UnknownGraph { .. } => "drive-unknown-graph",
        }
    }
}
