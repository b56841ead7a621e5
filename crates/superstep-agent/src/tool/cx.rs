//! Context of a tool call.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Serialize;
use superstep_core::__private::lock;
use superstep_core::{Labels, NodeCx, NodeError, ThreadId, Timestamp};

use crate::call::{QuestionAnswer, ToolQuestion};
use crate::tool::ToolError;

/// Context of a tool call, passed to the tool along with its arguments. Cheap to clone.
///
/// It can neither record steps nor interrupt: the whole call is already one recorded step.
#[derive(Clone)]
pub struct ToolCx(Arc<Inner>);

struct Inner {
    handed: CallInfo,
    gives: Mutex<Labels>,
    /// The first question to a person that has no answer yet.
    question: Mutex<Option<ToolQuestion>>,
}

/// What the runtime knows about a call.
pub(crate) struct CallInfo {
    pub(crate) node: NodeCx,
    pub(crate) call_id: String,
    pub(crate) idempotency_key: String,
    pub(crate) fingerprint: String,
    pub(crate) attempt: u32,
    pub(crate) deadline: Option<Timestamp>,
    /// Timeout of the tool.
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only tools of MCP servers apply it themselves")
    )]
    pub(crate) timeout: Option<Duration>,
    pub(crate) labels: Labels,
    /// What a person answered to earlier attempts at this call.
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only MCP servers ask")
    )]
    pub(crate) answers: Vec<QuestionAnswer>,
}

impl ToolCx {
    pub(crate) fn new(handed: CallInfo) -> Self {
        Self(Arc::new(Inner {
            handed,
            gives: Mutex::default(),
            question: Mutex::default(),
        }))
    }

    /// Returns the key to send to the receiver, for example as `Idempotency-Key`.
    ///
    /// The same for every attempt at this call, across retries, resumes, crashes and workers. Unique to this call, and
    /// different on a fork of the thread. The model cannot influence it beyond the call's id, which is hashed.
    pub fn idempotency_key(&self) -> &str {
        &self.0.handed.idempotency_key
    }

    /// Returns the digest of tool and arguments. Once recorded under an idempotency key it never changes: otherwise the node
    /// fails.
    pub fn fingerprint(&self) -> &str {
        &self.0.handed.fingerprint
    }

    /// Returns the number of this attempt, counted from 1 in the current execution. Executions before a crash may have made
    /// others.
    pub fn attempt(&self) -> u32 {
        self.0.handed.attempt
    }

    /// Returns when the runtime gives up on the call, if the tool has a timeout. A receiver that gets the request later must
    /// not act on it.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.0.handed.deadline
    }

    /// Returns the thread's epoch: a fencing token that rises whenever a process claims the thread.
    ///
    /// A worker that was presumed dead can no longer write to the store, but its requests may still be in flight. A receiver
    /// can protect itself against those too: it stores the highest fence per thread and refuses calls with a lower one.
    pub fn fence(&self) -> u64 {
        self.0.handed.node.epoch().0
    }

    /// Returns the id of the call, as in the model's message.
    pub fn call_id(&self) -> &str {
        &self.0.handed.call_id
    }

    /// Returns the id of the thread.
    pub fn thread(&self) -> &ThreadId {
        self.0.handed.node.thread()
    }

    /// Returns the labels of the arguments: those of everything the model had read when it requested the call.
    pub fn labels(&self) -> &Labels {
        &self.0.handed.labels
    }

    /// Adds labels to the result, besides those of the arguments and those the tool always adds
    /// ([`Tool::gives`](crate::Tool::gives)).
    pub fn gives(&self, labels: impl Into<Labels>) {
        self.given_labels().add(&labels.into());
    }

    /// Emits a live event to clients that stream the thread. Not stored.
    pub fn show(&self, event: impl Serialize) -> Result<(), NodeError> {
        self.0.handed.node.emit_live(event)
    }

    /// Limits a part of a call to the timeout of the tool. For a tool that [applies it itself](crate::Tool::times_itself).
    #[cfg(feature = "mcp")]
    pub(crate) async fn within_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        within(self.0.handed.timeout, work).await
    }

    /// Returns a person's answers to questions that earlier attempts at this call have asked.
    #[cfg(feature = "mcp")]
    pub(crate) fn answers(&self) -> &[QuestionAnswer] {
        &self.0.handed.answers
    }

    /// Asks a person, after the call has ended; then the call is made again with the answer. Keeps only the first question.
    #[cfg(feature = "mcp")]
    pub(crate) fn ask(&self, question: ToolQuestion) {
        lock(&self.0.question).get_or_insert(question);
    }

    pub(crate) fn question(&self) -> Option<ToolQuestion> {
        lock(&self.0.question).take()
    }

    pub(crate) fn given(&self) -> Labels {
        self.given_labels().clone()
    }

    fn given_labels(&self) -> MutexGuard<'_, Labels> {
        // Every change is a single call, so a panic cannot leave the labels half changed.
        lock(&self.0.gives)
    }
}

/// Limits the time of a call, if there is a limit. Afterwards it is unknown whether the call happened.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let Some(limit) = limit else {
        return work.await;
    };
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(ToolError::unknown(format!(
            "nothing came for {} s",
            limit.as_secs_f32()
        ))),
    }
}

impl fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCx")
            .field("call_id", &self.0.handed.call_id)
            .field("idempotency_key", &self.0.handed.idempotency_key)
            .field("attempt", &self.0.handed.attempt)
            .finish_non_exhaustive()
    }
}
