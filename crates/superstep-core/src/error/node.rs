//! How a node can fail, and the stored form of a failure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{BoxError, error_codes};
use crate::ids::{FramePath, NodeName, TaskId};

/// Why a node failed, and whether to retry it.
///
/// Every error that is `Send + Sync + 'static` converts with `?`: those of `std`, boxed ones, `anyhow::Error`, and plain text. For
/// one that borrows, such as that of a poisoned lock, use `.map_err(|error| error.to_string())?`. A converted error is retryable;
/// use [`NodeError::fatal`] where a retry is useless. The original stays inside, for [`downcast_ref`](Self::downcast_ref).
///
/// ```
/// # use superstep_core::NodeError;
/// fn port(text: Option<&str>) -> Result<u16, NodeError> {
///     let text = text.ok_or("no port is set")?;
///     text.parse().map_err(|error| NodeError::fatal(error).with_code("bad-port"))
/// }
/// let error = port(Some("http")).unwrap_err();
/// assert_eq!(error.code(), Some("bad-port"));
/// assert!(error.downcast_ref::<std::num::ParseIntError>().is_some());
/// ```
// Like `anyhow::Error`, this is not a `std::error::Error` itself, so that every such error converts.
pub struct NodeError {
    kind: FailureKind,
    message: String,
    code: Option<String>,
    source: Option<BoxError>,
}

impl NodeError {
    /// Creates an error that no retry will fix.
    pub fn fatal(error: impl Into<NodeError>) -> Self {
        Self {
            kind: FailureKind::Fatal,
            ..error.into()
        }
    }

    /// Creates an error that a retry may fix.
    pub fn retryable(error: impl Into<NodeError>) -> Self {
        Self {
            kind: FailureKind::Retryable,
            ..error.into()
        }
    }

    /// Gives the error a code of your own, which [`Failure::code`] keeps: for error handlers, clients and alerts, which should
    /// not read messages. Use words like `card-declined`; other characters than letters, digits, `-`, `_` and `.` become `-`,
    /// and what exceeds 64 is cut.
    #[must_use]
    pub fn with_code(mut self, code: &str) -> Self {
        let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
            true => c,
            false => '-',
        };
        let code: String = code.chars().take(CODE_CHARS_MAX).map(plain).collect();
        // An empty one is no code: the stored form has no other word for it.
        self.code = (!code.is_empty()).then_some(code);
        self
    }

    /// Returns the kind of the failure, which decides about retries and error handlers.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the code that the node gave the error; `None` if it gave none.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns the message. For an error that was converted with `?`, it includes the sources.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the error that was converted, if it is of this type. `anyhow::Error` gives its outermost error.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source.as_deref()?.downcast_ref()
    }

    /// Returns the error that was converted; `None` for an error of the runtime, or one read from the store.
    pub fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.source.as_deref()?)
    }

    pub(crate) fn of_kind(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: None,
            source: None,
        }
    }

    /// Returns the stored form of the code and the message.
    pub(crate) fn to_stored(&self) -> String {
        join_code(self.code.as_deref(), &self.message)
    }

    pub(crate) fn from_stored(kind: FailureKind, stored: String) -> Self {
        let (code, message) = split_code(stored);
        Self {
            kind,
            message,
            code,
            source: None,
        }
    }
}

// The bound is `Into<BoxError>` and not `Error`, because boxed errors and `anyhow::Error` meet only the former.
impl<E: Into<BoxError>> From<E> for NodeError {
    fn from(error: E) -> Self {
        let error = error.into();
        Self {
            kind: FailureKind::Retryable,
            message: chain(&*error),
            code: None,
            source: Some(error),
        }
    }
}

/// Longest code of a user's error, in characters.
const CODE_CHARS_MAX: usize = 64;

/// Separates a code from the message in the stored text, which had no room for codes at first. A message that begins with it
/// gets an empty code in front, so that it reads back as it was.
const CODE_MARK: char = '\u{1}';

fn join_code(code: Option<&str>, message: &str) -> String {
    match code.filter(|code| !code.is_empty()) {
        Some(code) => format!("{CODE_MARK}{code}{CODE_MARK}{message}"),
        None if message.starts_with(CODE_MARK) => format!("{CODE_MARK}{CODE_MARK}{message}"),
        None => message.to_owned(),
    }
}

fn split_code(stored: String) -> (Option<String>, String) {
    let parts = stored
        .strip_prefix(CODE_MARK)
        .and_then(|rest| rest.split_once(CODE_MARK));
    match parts {
        Some((code, message)) => {
            let code = (!code.is_empty()).then(|| code.to_owned());
            (code, message.to_owned())
        }
        None => (None, stored),
    }
}

/// Returns the text of an error and of all its sources, because the sources usually have the reason.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

impl fmt::Debug for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code().unwrap_or(self.kind.code());
        write!(f, "{} [{code}]", self.message)
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A failure as it is stored and shown: which task failed, how, and with which message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredFailure", into = "StoredFailure")]
pub struct Failure {
    /// Path of the graph; empty for the root.
    pub frame: FramePath,
    /// Name of the node that failed.
    pub node: NodeName,
    /// Task that failed; `None` if the whole superstep failed.
    pub task: Option<TaskId>,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Message of the failure.
    pub message: String,
    /// Code that the node gave its error by [`NodeError::with_code`]; `None` if it gave none.
    pub code: Option<String>,
    /// Number of attempts that were made.
    pub attempts: u32,
}

/// The stored form of a [`Failure`]. Its fields are part of the format.
#[derive(Serialize, Deserialize)]
struct StoredFailure {
    frame: FramePath,
    node: NodeName,
    task: Option<TaskId>,
    kind: FailureKind,
    message: String,
    attempts: u32,
}

impl From<Failure> for StoredFailure {
    fn from(failure: Failure) -> Self {
        Self {
            message: join_code(failure.code.as_deref(), &failure.message),
            frame: failure.frame,
            node: failure.node,
            task: failure.task,
            kind: failure.kind,
            attempts: failure.attempts,
        }
    }
}

impl From<StoredFailure> for Failure {
    fn from(stored: StoredFailure) -> Self {
        let (code, message) = split_code(stored.message);
        Self {
            frame: stored.frame,
            node: stored.node,
            task: stored.task,
            kind: stored.kind,
            message,
            code,
            attempts: stored.attempts,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}`", self.node)?;
        if !self.frame.is_root() {
            write!(f, " in `{}`", self.frame)?;
        }
        let code = self.code.as_deref().unwrap_or(self.kind.code());
        write!(f, " failed: {} [{code}]", self.message)
    }
}

/// The kinds of failure of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FailureKind {
    /// The node returned an error; a retry may help.
    Retryable,
    /// The node returned an error; a retry will not help.
    Fatal,
    /// The attempt exceeded its timeout.
    TimedOut,
    /// The node panicked.
    Panicked,
    /// The update cannot be stored, or breaks a rule of the state.
    InvalidUpdate,
    /// The node or a route named a target that was not declared.
    UndeclaredTarget,
    /// Two tasks of one superstep wrote a channel that takes one write.
    ConflictingWrites,
    /// A recorded step comes in another position, or not at all: the code changed under the thread.
    StepChanged,
    /// A recorded step or answer no longer fits its type: the code changed under the thread.
    RecordUnreadable,
    /// Two steps with the same name were in flight at once.
    AmbiguousStep,
    /// Two interrupts of one task have the same key.
    AmbiguousInterrupt,
    /// A node inside a stateless subgraph raised an interrupt.
    StatelessInterrupt,
    /// A command to the parent graph where there is none, or of another type.
    NoParent,
    /// The deadline of an interrupt passed without an answer.
    Expired,
    /// The store refused a record.
    RecordFailed,
    /// The run was recovered several times without progress.
    Poisoned,
    /// A subgraph that lives as long as its thread was entered twice at once.
    SubgraphBusy,
    /// A superstep has more tasks than the limit allows.
    TooManyTasks,
}

impl FailureKind {
    /// Whether the node's retry policy applies.
    pub fn may_retry(self) -> bool {
        matches!(
            self,
            FailureKind::Retryable
                | FailureKind::TimedOut
                | FailureKind::Panicked
                | FailureKind::RecordFailed
        )
    }

    /// Whether the node's error handler applies. It must not where the code changed under the thread: the thread then waits for
    /// a person.
    pub fn may_handle(self) -> bool {
        !matches!(
            self,
            FailureKind::StepChanged
                | FailureKind::RecordUnreadable
                | FailureKind::RecordFailed
                | FailureKind::Poisoned
        )
    }
}

error_codes!(FailureKind {
    Retryable => "node-retryable",
    Fatal => "node-fatal",
    TimedOut => "node-timed-out",
    Panicked => "node-panicked",
    InvalidUpdate => "node-invalid-update",
    UndeclaredTarget => "node-undeclared-target",
    ConflictingWrites => "node-conflicting-writes",
    StepChanged => "node-step-changed",
    RecordUnreadable => "node-record-unreadable",
    AmbiguousStep => "node-ambiguous-step",
    AmbiguousInterrupt => "node-ambiguous-interrupt",
    StatelessInterrupt => "node-stateless-interrupt",
    NoParent => "node-no-parent",
    Expired => "node-expired",
    RecordFailed => "node-record-failed",
    Poisoned => "node-poisoned",
    SubgraphBusy => "node-subgraph-busy",
    TooManyTasks => "node-too-many-tasks",
});
