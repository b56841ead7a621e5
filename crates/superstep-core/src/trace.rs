//! What happened on a thread, as a tree of spans with their times, read from its log.
//!
//! There is no second place where traces are kept: a run is one span from its input to its end, whatever processes it went
//! through, with its waits for people in it; supersteps and nodes come from the entries, and calls that nodes made from
//! the [`CallSpan`]s that they put into the log with their results. So a trace is there without any backend, survives a
//! crash as the thread does, and shows nothing that was not committed.
//!
//! What the log does not know, a trace does not either: all nodes of a superstep end when it does, and of a thread that was
//! pruned, runs whose beginning is gone are left out.

mod kind;
mod names;
mod read;
mod tree;

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value as Json};

use crate::checkpoint::InterruptRow;
use crate::checkpoint::format::Entry;
use crate::ids::{Seq, ThreadId, Timestamp};

pub use kind::{CallKind, SpanKind};
pub use names::{fields, spans};
pub use tree::TraceTree;

/// All that happened on a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    /// The thread.
    pub thread: String,
    /// Its runs, in order.
    pub runs: Vec<Span>,
}

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// The same however often the trace is read.
    pub id: SpanId,
    /// What, in a few words.
    pub name: String,
    /// What kind of thing.
    pub kind: SpanKind,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; none if it goes on.
    pub end: Option<Timestamp>,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else is known, under the names of [`fields`] or, for a call, those that its node chose.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Json>,
    /// What happened within.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<Span>,
}

/// The number of a span. Never 0, which tracing systems take for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub u64);

/// The number of a run's trace, of which its span is the root: the run's own id. A fork goes on under the id of the run
/// that it forked, and has a trace of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(pub u128);

/// A call that a node made, as the node puts it into the log with [`NodeCx::emit`](crate::NodeCx::emit).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallSpan {
    /// What kind of call.
    pub span: CallKind,
    /// What was called.
    pub name: String,
    /// When.
    pub start: Timestamp,
    /// Until when.
    pub end: Timestamp,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else is known. The node chooses the names; those of [`fields`] are the engine's.
    #[serde(default)]
    pub fields: Map<String, Json>,
}

/// How spans are called for people, where they know the work by other names than the graph's. A node puts it into the log with
/// [`NodeCx::emit`](crate::NodeCx::emit); the names of the graph stay in the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanNames {
    /// The span of the node that says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_span: Option<String>,
    /// The span of the graph that the node is in: of the run, or of the node around it that entered this graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_span: Option<String>,
}

impl Trace {
    /// The trace in these entries of a thread, oldest first. Its questions tell until when people were waited for.
    pub fn read(thread: &ThreadId, entries: &[(Seq, Entry)], questions: &[InterruptRow]) -> Self {
        Self {
            thread: thread.to_string(),
            runs: read::runs(thread, entries, questions),
        }
    }
}

impl Span {
    /// The trace whose root this is. None for a span that is not of a run.
    pub fn trace(&self) -> Option<TraceId> {
        let run = self.fields.get(fields::RUN)?.as_str()?;
        let run = u128::from_str_radix(run, 16).ok()?;
        let own = match self.fields.contains_key(fields::FORKED) {
            true => u128::from(self.id.0) << 64 | u128::from(self.id.0),
            false => 0,
        };
        Some(TraceId((run ^ own).max(1)))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

// As tracing systems write it: a number of this size is not safe in JSON.
impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
