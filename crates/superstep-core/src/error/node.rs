//! What a node may fail with, and the record that is kept of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::error_codes;
use crate::ids::{FramePath, NodeName, TaskId};

/// Why a node failed, and whether to try again.
///
/// Any error becomes a retryable one by `?`; say [`NodeError::fatal`] where trying again is useless.
/// Like `anyhow::Error` it is not itself a `std::error::Error`, so that every such error converts.
pub struct NodeError {
    kind: FailureKind,
    message: String,
}

impl NodeError {
    /// An error that no retry will fix.
    pub fn fatal(error: impl fmt::Display) -> Self {
        Self {
            kind: FailureKind::Fatal,
            message: error.to_string(),
        }
    }

    /// An error that a retry may fix.
    pub fn retryable(error: impl fmt::Display) -> Self {
        Self {
            kind: FailureKind::Retryable,
            message: error.to_string(),
        }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// In words.
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

/// The error and everything under it, for the sources are where the reason usually stands.
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

/// A failure as it is stored and shown: which task, what kind, in which words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The subgraph, empty for the root.
    pub frame: FramePath,
    /// The node.
    pub node: NodeName,
    /// The task; none when the fault is of the whole superstep.
    pub task: Option<TaskId>,
    /// Which kind.
    pub kind: FailureKind,
    /// In words.
    pub message: String,
    /// How many attempts were made.
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
    /// The node's own error; trying again may help.
    Retryable,
    /// The node's own error; trying again will not help.
    Fatal,
    /// The node took too long.
    TimedOut,
    /// The node panicked.
    Panicked,
    /// The update cannot be stored, or breaks a rule of the state.
    InvalidUpdate,
    /// The node or a route named a target that was not declared.
    UndeclaredTarget,
    /// Two tasks of one superstep wrote a channel that takes one write.
    ConflictingWrites,
    /// A recorded step does not come in its order, or not at all: the code changed under the thread.
    StepChanged,
    /// A recorded step or answer no longer fits its type: the code changed under the thread.
    RecordUnreadable,
    /// Two steps of one name were in flight at once.
    AmbiguousStep,
    /// One key was used for two questions.
    AmbiguousInterrupt,
    /// A question inside a stateless subgraph.
    StatelessInterrupt,
    /// A command to the parent graph where there is none, or of another type.
    NoParent,
    /// A question's deadline passed without an answer.
    Expired,
    /// The store refused a record.
    RecordFailed,
    /// The run was recovered several times without getting anywhere.
    Poisoned,
    /// A subgraph that lives as long as its thread was entered twice at once.
    SubgraphBusy,
    /// More tasks in one superstep than the limit allows.
    TooManyTasks,
}

impl FailureKind {
    /// Whether the node's retry policy is asked.
    pub fn may_retry(self) -> bool {
        matches!(
            self,
            FailureKind::Retryable
                | FailureKind::TimedOut
                | FailureKind::Panicked
                | FailureKind::RecordFailed
        )
    }

    /// Whether the node's error handler is asked. Where the code changed under the thread it must not
    /// be: the thread waits for a person instead.
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
