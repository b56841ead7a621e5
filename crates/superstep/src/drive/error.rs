//! What can go wrong when a thread is driven, seen from outside.

use superstep_core::error::{CheckpointError, NameError, OpenError, ProtocolError, ValueError};
use superstep_core::{InterruptId, RunId, ThreadId};

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
    /// This version of the program cannot resume a run that is under way. The run stays as it is.
    #[error(
        "this worker's version cannot resume the run; it will be retried on a compatible worker"
    )]
    Stuck(#[source] Box<DriveError>),
    /// An engine was asked to change a thread with a request that runs it.
    #[error("the request does not change its thread; please report this")]
    NotAChange,
    /// The same id was used for two different requests.
    #[error(
        "run `{run}` was requested before with different content; use a new id for a new request"
    )]
    IdReused {
        /// The id.
        run: RunId,
    },
    /// An engine refused a request, or could not be reached.
    #[error("the engine says `{code}`: {message}")]
    Engine {
        /// The code of the error there.
        code: String,
        /// In words.
        message: String,
        /// Whether the request was refused and will never be executed.
        is_refusal: bool,
    },
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
        "drive-stuck",
        "drive-not-a-change",
        "drive-id-reused",
        "drive-engine",
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
            DriveError::Stuck(_) => "drive-stuck",
            DriveError::NotAChange => "drive-not-a-change",
            DriveError::IdReused { .. } => "drive-id-reused",
            DriveError::Engine { .. } => "drive-engine",
        }
    }

    /// Whether what was asked for was looked at and is refused: asking again will not help, and nothing was done. Any other
    /// error says nothing about what was asked, and the same may be asked again.
    pub fn is_refusal(&self) -> bool {
        match self {
            DriveError::Name(_)
            | DriveError::Value(_)
            | DriveError::Open(_)
            | DriveError::AnswerRefused { .. }
            | DriveError::AmbiguousAnswer { .. }
            | DriveError::NotAChange
            | DriveError::IdReused { .. } => true,
            DriveError::Checkpoint(error) => matches!(
                error,
                CheckpointError::NotOpen { .. }
                    | CheckpointError::NoThread { .. }
                    | CheckpointError::NoCheckpoint { .. }
                    | CheckpointError::ThreadExists { .. }
            ),
            DriveError::Engine { is_refusal, .. } => *is_refusal,
            DriveError::Protocol(_)
            | DriveError::Draining
            | DriveError::UnknownGraph { .. }
            | DriveError::Stuck(_) => false,
        }
    }
}
