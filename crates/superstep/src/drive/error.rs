//! Errors of driving a thread, as callers see them.

use std::convert::Infallible;

use superstep_core::__private::chain;
use superstep_core::error::{CheckpointError, NameError, OpenError, ProtocolError, ValueError};
use superstep_core::{InterruptId, RunId, ThreadId};

/// Why a run could not start or continue. A failed node is not an error here but an outcome.
///
/// ```
/// # use superstep::prelude::*;
/// # use superstep::{DriveError, RunOptions, Seq};
/// # #[derive(Clone, Debug, Default, State)]
/// # struct Refund { order: String, cents: u64, receipt: Option<String> }
/// # async fn example(thread: Thread<Refund>) -> Result<(), DriveError> {
/// match thread.start(RefundUpdate::default()).await {
///     Ok(stopped) => println!("{:?}", stopped.outcome),
///     Err(error) if error.is_refusal() => println!("nothing was done: {error} [{}]", error.code()),
///     Err(error) => return Err(error),
/// }
/// # Ok(())
/// # }
/// ```
///
/// `Debug` prints the sentence, its causes and the [code](DriveError::code), because that is what `main` prints of an error that
/// it returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// A name or id is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A value cannot be stored or read.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The thread cannot be opened with this graph and request.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The checkpointer refused the call, or did not answer within the runtime's [retry deadline](crate::RuntimeBuilder::retry_deadline).
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The driver called the state machine out of turn: a bug in Superstep.
    #[error("the driver called the machine out of turn; please report this")]
    Protocol(#[from] ProtocolError),
    /// An answer does not match the schema of its interrupt.
    #[error("the answer to `{interrupt}` does not fit its schema: {why}")]
    AnswerRefused {
        /// Interrupt that the answer was for.
        interrupt: InterruptId,
        /// What does not match, for a person to read.
        why: String,
    },
    /// An answer did not name its interrupt, and not exactly one is open.
    #[error("thread `{thread}` has {open} open questions; say which one is answered")]
    AmbiguousAnswer {
        /// Thread that was answered.
        thread: ThreadId,
        /// Number of open interrupts.
        open: usize,
    },
    /// The runtime is shutting down.
    #[error("the runtime is draining and begins no further runs")]
    Draining,
    /// This version of the program cannot resume the run in progress. The run is left unchanged.
    #[error(
        "this worker's version cannot resume the run; it will be retried on a compatible worker"
    )]
    Stuck(#[source] Box<DriveError>),
    /// An engine received a request that runs its thread where only a change was expected.
    #[error("the request does not change its thread; please report this")]
    NotAChange,
    /// The same id was used for two different requests.
    #[error(
        "run `{run}` was requested before with different content; use a new id for a new request"
    )]
    IdReused {
        /// Id that both requests used.
        run: RunId,
    },
    /// An engine refused a request, or could not be reached.
    #[error("the engine says `{code}`: {message}")]
    Engine {
        /// Code of the error on the engine's side.
        code: String,
        /// Message of the error on the engine's side.
        message: String,
        /// Whether the engine refused the request and will never execute it.
        is_refusal: bool,
    },
    /// The thread's graph is not registered with this runtime.
    #[error(
        "thread `{thread}` belongs to graph `{graph}`, which is not registered with this runtime"
    )]
    UnknownGraph {
        /// Thread that was opened.
        thread: ThreadId,
        /// Name of the graph that the thread belongs to.
        graph: String,
    },
}

impl std::fmt::Debug for DriveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", chain(self), self.code())
    }
}

/// For calls that take an id or its text: an id needs no parsing.
impl From<Infallible> for DriveError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl DriveError {
    /// Codes that this crate defines. Wrapped errors keep their own codes.
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

    /// Returns the stable code of this error: the name of its page in the error index.
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

    /// Returns the status with which an HTTP service reports this error: 400 for what the caller wrote, 404 for what does not
    /// exist, 409 for what the thread does not allow now, 503 for what may work later, and 500 for the rest.
    pub fn http_status(&self) -> u16 {
        match self {
            DriveError::Name(_)
            | DriveError::Value(_)
            | DriveError::AnswerRefused { .. }
            | DriveError::Open(
                OpenError::BadInput { .. }
                | OpenError::NoSuchNode { .. }
                | OpenError::AmbiguousNode { .. }
                | OpenError::UndeclaredTarget { .. }
                | OpenError::SharedInput { .. },
            ) => 400,
            DriveError::Checkpoint(
                CheckpointError::NoThread { .. } | CheckpointError::NoCheckpoint { .. },
            )
            | DriveError::Open(OpenError::NotInside { .. }) => 404,
            DriveError::Open(_)
            | DriveError::AmbiguousAnswer { .. }
            | DriveError::IdReused { .. }
            | DriveError::Checkpoint(
                CheckpointError::NotOpen { .. }
                | CheckpointError::ThreadExists { .. }
                | CheckpointError::Fenced { .. },
            ) => 409,
            DriveError::Engine {
                is_refusal: true, ..
            } => 409,
            DriveError::Draining | DriveError::Stuck(_) | DriveError::Engine { .. } => 503,
            DriveError::Checkpoint(CheckpointError::Store { .. }) => 503,
            DriveError::Checkpoint(_)
            | DriveError::Protocol(_)
            | DriveError::NotAChange
            | DriveError::UnknownGraph { .. } => 500,
        }
    }

    /// Whether the request was examined and refused: nothing was done, and repeating it will not help. Any other error says
    /// nothing about the request, and the caller may repeat it.
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

/// What a request handler replies with: the [status](DriveError::http_status), and a text for the client. So `?` works in a
/// handler whose error is `(StatusCode, String)`, as with axum.
///
/// The text has the sentence, its causes and the code. What the service is to blame for (500 and above) is logged instead, and
/// the client gets only the code: the sentence may name hosts and files.
#[cfg(feature = "http")]
impl From<DriveError> for (http::StatusCode, String) {
    fn from(error: DriveError) -> Self {
        let status = http::StatusCode::from_u16(error.http_status()).unwrap_or_default();
        if status.is_server_error() {
            tracing::error!(error = ?error, "request failed");
            return (status, error.code().to_owned());
        }
        (status, format!("{error:?}"))
    }
}

#[cfg(all(test, feature = "http"))]
#[test]
fn a_client_learns_what_it_did_wrong_and_nothing_about_the_inside() {
    let wrong = "no spaces".parse::<ThreadId>().unwrap_err();
    let (status, text) = DriveError::from(wrong).into();
    assert_eq!(status, http::StatusCode::BAD_REQUEST);
    assert!(text.contains("`no spaces`") && text.ends_with("[name-thread]"));
    let source = "/srv/secret.db is locked".into();
    let broken = CheckpointError::Store { source };
    let (status, text) = DriveError::from(broken).into();
    assert_eq!(status, http::StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(text, "checkpoint-store");
}

#[test]
fn what_main_prints_is_a_sentence_with_its_causes_and_its_code() {
    let thread: ThreadId = "order-17".parse().expect("a name");
    let interrupt = InterruptId::from_bytes([10; 16]);
    let error = DriveError::from(CheckpointError::NotOpen { thread, interrupt });
    let printed = format!("{error:?}");
    assert!(printed.starts_with(&error.to_string()), "{printed}");
    assert!(printed.ends_with(" [checkpoint-not-open]"), "{printed}");
    assert!(!printed.contains("NotOpen"), "{printed}");
}
