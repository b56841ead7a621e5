//! The form of a test case: what happened on a branch of a thread, so that it can be played again without its models.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What happened on a branch of a thread: what callers sent, what the models replied, and where it ended.
///
/// A server returns it for `GET /superstep/threads/{thread_id}/case`, and `archie test` plays it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TestCase {
    /// Version of the form: [`TestCase::FORMAT`].
    pub format: u32,
    /// What the file is, for a person who opens it.
    #[serde(default)]
    pub about: String,
    /// Graph of the thread.
    pub graph_id: String,
    /// Thread that the case was made of.
    pub thread_id: String,
    /// Checkpoint at which the branch ends.
    pub checkpoint_id: String,
    /// What callers did, in order.
    pub acts: Vec<CaseAct>,
    /// Names of the models that were asked, in the order of their first calls.
    pub models: Vec<String>,
    /// The replies of the models.
    pub script: CaseScript,
    /// Files that the thread had. The server leaves them out; who stores the case adds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CaseFile>,
    /// Where the branch ends.
    pub expected: CaseEnd,
    /// What the log does not hold, so that the case may not end in the same way.
    #[serde(default)]
    pub not_recovered: Vec<String>,
}

/// What a caller did: started a run with an input, or answered what the thread asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseAct {
    /// Input of the run, as an update of the state; `None` if the caller answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Context of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Json>,
    /// Interrupts that were open when the caller answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<CaseInterrupt>,
    /// Answers to some or all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<CaseAnswer>,
    /// What the caller wrote into the state together with the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Json>,
}

/// An interrupt that was open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseInterrupt {
    /// Node that interrupted.
    pub node: String,
    /// Kind of the interrupt.
    pub kind: String,
    /// What was asked.
    pub request: Json,
}

/// An answer to an interrupt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseAnswer {
    /// Position of the interrupt among those that were open, from 0.
    pub to: usize,
    /// The answer.
    pub value: Json,
}

/// Replies of models, in the form of a script of `superstep-llm`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseScript {
    /// The replies in order.
    pub replies: Vec<Json>,
    /// Context size of the models. The log does not have it; add it by hand for a model whose context was small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
}

/// A file of the thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseFile {
    /// Path among the files of the thread.
    pub path: String,
    /// Content in base64.
    pub base64: String,
}

/// Where a branch ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CaseEnd {
    /// Interrupts that wait for an answer.
    #[serde(default)]
    pub asked: Vec<CaseInterrupt>,
    /// State of the root graph.
    pub values: Json,
}

impl TestCase {
    /// Version of the form that this crate writes.
    pub const FORMAT: u32 = 1;
}
