//! How a node can fail, and the stored form of a failure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::error_codes;
use crate::ids::{FramePath, NodeName, TaskId};

/// Why a node failed, and whether to retry it.
///
/// Any error converts to a retryable one with `?`; use [`NodeError::fatal`] where a retry is useless. Like `anyhow::Error`,
/// this is not a `std::error::Error` itself, so that every such error converts.
pub struct NodeError {
    kind: FailureKind,
    message: String,
}

impl NodeError {
    /// Creates an error that no retry will fix.
    pub fn fatal(error: impl fmt::Display) -> Self {
        Self {
            kind: FailureKind::Fatal,
            message: error.to_string(),
        }
    }

    /// Creates an error that a retry may fix.
    pub fn retryable(error: impl fmt::Display) -> Self {
        Self {
            kind: FailureKind::Retryable,
            message: error.to_string(),
        }
    }

    /// Returns the kind of the failure, which decides about retries and error handlers.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the message. For an error that was converted with `?`, it includes the sources.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn of_kind(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl<E: std::error::Error> From<E> for NodeError {
    fn from(error: E) -> Self {
        Self {
            kind: FailureKind::Retryable,
            message: chain(&error),
        }
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
        write!(f, "{} [{}]", self.message, self.kind.code())
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A failure as it is stored and shown: which task failed, how, and with which message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Number of attempts that were made.
    pub attempts: u32,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}`", self.node)?;
        if !self.frame.is_root() {
            write!(f, " in `{}`", self.frame)?;
        }
        write!(f, " failed: {} [{}]", self.message, self.kind.code())
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
