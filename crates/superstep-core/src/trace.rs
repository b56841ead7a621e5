//! What happened on a thread, as a tree of spans with their times, read from its log.
//!
//! Traces have no storage of their own. A run is one span from its input to its end, through however many processes, with its
//! waits for people in it. Supersteps and nodes come from the entries; calls that nodes made come from the [`CallSpan`]s that
//! they emit into the log with their results. So a trace needs no backend, survives a crash as the thread does, and shows
//! nothing that was not committed.
//!
//! What the log does not know, a trace does not either: all nodes of a superstep end when it does, and in a thread that was
//! pruned, runs whose beginning was dropped are left out.

mod caller;
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
use crate::value::Value;

pub use caller::CallerSpan;
pub use kind::{CallKind, SpanKind};
pub use names::{fields, spans};
pub use tree::TraceTree;

/// Everything that happened on a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    /// Id of the thread.
    pub thread: String,
    /// Runs of the thread, oldest first.
    pub runs: Vec<Span>,
}

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// Id of the span, the same however often the trace is read.
    pub id: SpanId,
    /// Short name of the span, for people.
    pub name: String,
    /// Kind of the span.
    pub kind: SpanKind,
    /// When the span began.
    pub start: Timestamp,
    /// When the span ended; `None` if it has not.
    pub end: Option<Timestamp>,
    /// Why it failed; `None` if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Further fields, under the names of [`fields`] or, for a call, those that its node chose.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Json>,
    /// Spans within this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<Span>,
}

/// Id of a span. Never 0, which tracing systems read as no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanId(pub u64);

/// Id of a run's trace. It is the run's own id, and the run's span is its root, unless the run [continues](Span::caller) the trace
/// of its caller. A fork continues under the id of the run that it forked, and has its own trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceId(pub u128);

/// A call that a node made, which the node emits into the log with [`NodeCx::emit`](crate::NodeCx::emit).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallSpan {
    /// Kind of the call.
    pub span: CallKind,
    /// Name of what was called.
    pub name: String,
    /// When the call began.
    pub start: Timestamp,
    /// When the call ended.
    pub end: Timestamp,
    /// Why it failed; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Further fields. The node chooses the names; those of [`fields`] are reserved for the engine.
    #[serde(default)]
    pub fields: Map<String, Json>,
    /// What the call returned, if the node stores it, so that a test can play the call again. The trace leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
}

/// Names of spans for people, where these differ from the names in the graph. A node emits it into the log with
/// [`NodeCx::emit`](crate::NodeCx::emit); the names of the graph stay in the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanNames {
    /// Name of the span of the node that emits this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_span: Option<String>,
    /// Name of the span of the graph that the node is in: the run's, or that of the outer node that entered this graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_span: Option<String>,
}

/// Whether a stored event of a node is a record for the trace (a [`CallSpan`] or [`SpanNames`]), and not an event for people.
pub fn is_trace_record(event: &Value) -> bool {
    // A struct can be read from an array too, and an array is not what a node emits for the trace.
    let is_object = event.json().is_ok_and(|json| json.starts_with(b"{"));
    let is_call = || event.decode::<CallSpan>().is_ok();
    let names = || event.decode::<SpanNames>();
    let has_names = || names().is_ok_and(|names| names != SpanNames::default());
    is_object && (is_call() || has_names())
}

impl Trace {
    /// Reads the trace from the entries of a thread, oldest first. The interrupts tell when waits for people ended.
    pub fn read(thread: &ThreadId, entries: &[(Seq, Entry)], questions: &[InterruptRow]) -> Self {
        Self {
            thread: thread.to_string(),
            runs: read::runs(thread, entries, questions),
        }
    }
}

impl Span {
    /// Returns the id of the trace that this run is in; `None` for a span that is not a run.
    pub fn trace(&self) -> Option<TraceId> {
        if let Some(caller) = self.caller() {
            return Some(caller.trace);
        }
        let run = self.fields.get(fields::RUN)?.as_str()?;
        let run = u128::from_str_radix(run, 16).ok()?;
        let own = match self.fields.contains_key(fields::FORKED) {
            true => u128::from(self.id.0) << 64 | u128::from(self.id.0),
            false => 0,
        };
        Some(TraceId((run ^ own).max(1)))
    }

    /// Returns the span of the caller that this run is in; `None` if the run has a trace of its own.
    pub fn caller(&self) -> Option<CallerSpan> {
        let caller = self.fields.get(fields::CALLER)?.as_str()?;
        CallerSpan::from_traceparent(caller)
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

// Serialized as text, as tracing systems write it: JSON readers lose digits of a number of this size.
impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[test]
fn records_of_the_trace_differ_from_events_of_users() {
    let is_record = |event: &Json| is_trace_record(&Value::plain(event).unwrap());
    for record in [
        serde_json::json!({ "span": "query", "name": "q", "start": 1, "end": 2 }),
        serde_json::json!({ "node_span": "draft" }),
    ] {
        assert!(is_record(&record), "{record}");
    }
    for event in [
        serde_json::json!({ "progress": 1 }),
        serde_json::json!({ "name": "q", "start": 1, "end": 2 }),
        serde_json::json!(["draft", "essay"]),
        serde_json::json!("half way"),
        serde_json::json!({}),
        serde_json::json!(null),
    ] {
        assert!(!is_record(&event), "{event}");
    }
}
