//! What happened on a thread, as a tree of spans with their times, read from its log.
//!
//! There is no second place where traces are kept: a run is one span from its input to its end, whatever processes it went
//! through, with its waits for people in it; supersteps and nodes come from the entries, and calls of models and tools from
//! the [`CallSpan`]s that nodes put into the log with their results. So a trace is there without any backend, survives a
//! crash as the thread does, and shows nothing that was not committed.

mod names;
mod tree;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::checkpoint::format::{Change, Entry, FrameAdvanced, Stop};
use crate::ids::{FramePath, RunId, Seq, ThreadId, Timestamp};

pub use names::{fields, spans};

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
    /// What else is known, under the names of [`fields`].
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Json>,
    /// What happened within.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<Span>,
}

/// The number of a span. Never 0, which tracing systems take for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SpanId(pub u64);

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A run, from its input to its end.
    Run,
    /// Nothing happened because a person was asked.
    Wait,
    /// A superstep.
    Superstep,
    /// A node.
    Node,
    /// A call of a model.
    Model,
    /// A call of a tool.
    Tool,
}

/// A call of a model or a tool, as a node puts it into the log with [`NodeCx::emit`](crate::NodeCx::emit).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallSpan {
    /// What kind of call.
    pub span: SpanKind,
    /// What was called.
    pub name: String,
    /// When.
    pub start: Timestamp,
    /// Until when.
    pub end: Timestamp,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else is known, under the names of [`fields`].
    #[serde(default)]
    pub fields: Map<String, Json>,
}

impl Trace {
    /// The trace in these entries of a thread, oldest first.
    pub fn read(thread: &ThreadId, entries: &[(Seq, Entry)]) -> Self {
        let mut reading = Reading::default();
        for (seq, entry) in entries {
            reading.entry(*seq, entry);
        }
        Self {
            thread: thread.to_string(),
            runs: reading.runs,
        }
    }
}

#[derive(Default)]
struct Reading {
    runs: Vec<Span>,
    /// When the entry before was made: there the superstep began.
    before: Timestamp,
    /// Since when a person is asked, if one is.
    asked: Option<(Seq, Timestamp)>,
    supersteps: u64,
}

impl Reading {
    fn entry(&mut self, seq: Seq, entry: &Entry) {
        for change in &entry.changes {
            match change {
                Change::RunStarted(record) => self.begin(entry.at, record.run, &record.graph),
                Change::FrameAdvanced(advanced) => self.superstep(seq, entry.at, advanced),
                Change::AttemptFailed(failed) => {
                    let name = failed.failure.node.to_string();
                    let mut span =
                        self.span(SpanKind::Node, name, (seq, self.supersteps), entry.at);
                    span.error = Some(failed.failure.message.clone());
                    self.add(span);
                }
                Change::RunResumed(_) => {}
                Change::FrameOpened(_) | Change::Forked(_) => {}
            }
        }
        if entry.stop.is_none()
            && let Some((asked, since)) = self.asked.take()
        {
            self.before = since;
            let span = self.span(SpanKind::Wait, spans::WAIT.to_owned(), (asked, 0), entry.at);
            self.add(span);
        }
        self.before = entry.at;
        if let Some(stop) = &entry.stop {
            self.stop(seq, entry.at, stop);
        }
    }

    fn begin(&mut self, at: Timestamp, run: RunId, graph: &str) {
        self.asked = None;
        self.supersteps = 0;
        let bytes = u128::from_str_radix(&run.to_string(), 16).unwrap_or(1);
        let mut known = Map::new();
        known.insert(fields::RUN.to_owned(), run.to_string().into());
        known.insert(fields::GRAPH.to_owned(), graph.into());
        self.runs.push(Span {
            id: SpanId::new(bytes as u64 ^ (bytes >> 64) as u64),
            name: graph.to_owned(),
            kind: SpanKind::Run,
            start: at,
            end: None,
            error: None,
            fields: known,
            inner: Vec::new(),
        });
    }

    fn superstep(&mut self, seq: Seq, at: Timestamp, advanced: &FrameAdvanced) {
        self.supersteps += 1;
        let number = self.supersteps;
        let mut step = self.span(
            SpanKind::Superstep,
            superstep_name(number, &advanced.frame),
            (seq, number),
            at,
        );
        for write in &advanced.writes {
            let place = (seq, number << 32 | u64::from(write.index) + 1);
            let mut node = self.span(SpanKind::Node, write.node.to_string(), place, at);
            node.fields
                .insert(fields::NODE.to_owned(), write.node.to_string().into());
            let calls = write
                .events
                .iter()
                .enumerate()
                .filter_map(|(index, event)| {
                    let call: CallSpan = event.decode().ok()?;
                    Some(called(node.id, index, call))
                });
            node.inner = calls.collect();
            step.inner.push(node);
        }
        self.add(step);
    }

    fn stop(&mut self, seq: Seq, at: Timestamp, stop: &Stop) {
        let Some(run) = self.runs.last_mut() else {
            return;
        };
        let word = match stop {
            Stop::Finished => "finished",
            Stop::Paused { .. } | Stop::Breakpoint(_) => {
                self.asked = Some((seq, at));
                "paused"
            }
            Stop::StepLimit => "step_limit",
            Stop::Failed(failures) => {
                run.error = failures.first().map(|failure| failure.message.clone());
                "failed"
            }
            Stop::Cancelled => "cancelled",
            // It goes on elsewhere.
            Stop::Drained => return,
        };
        run.fields.insert(fields::OUTCOME.to_owned(), word.into());
        run.end = (word != "paused").then_some(at);
    }

    /// From the entry before until now.
    fn span(&self, kind: SpanKind, name: String, place: (Seq, u64), end: Timestamp) -> Span {
        let run = self.runs.last().map_or(1, |run| run.id.0);
        Span {
            id: SpanId::new(mixed(mixed(run, place.0.0), place.1 << 3 | kind as u64)),
            name,
            kind,
            start: self.before.min(end),
            end: Some(end),
            error: None,
            fields: Map::new(),
            inner: Vec::new(),
        }
    }

    fn add(&mut self, span: Span) {
        if let Some(run) = self.runs.last_mut() {
            run.inner.push(span);
            // It went on after it had stopped.
            run.end = None;
        }
    }
}

fn superstep_name(number: u64, frame: &FramePath) -> String {
    let graphs: Vec<_> = frame
        .segments()
        .iter()
        .map(|segment| segment.node.to_string())
        .collect();
    match graphs.is_empty() {
        true => format!("{} {number}", spans::SUPERSTEP),
        false => format!("{} {number} of {}", spans::SUPERSTEP, graphs.join("/")),
    }
}

fn called(node: SpanId, index: usize, call: CallSpan) -> Span {
    Span {
        id: SpanId::new(mixed(node.0, index as u64 + 1)),
        name: call.name,
        kind: call.span,
        start: call.start,
        end: Some(call.end),
        error: call.error,
        fields: call.fields,
        inner: Vec::new(),
    }
}

impl SpanId {
    fn new(number: u64) -> Self {
        Self(number.max(1))
    }
}

/// Spreads numbers that are alike.
fn mixed(one: u64, other: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&one.to_le_bytes());
    bytes[8..].copy_from_slice(&other.to_le_bytes());
    xxhash_rust::xxh3::xxh3_64(&bytes)
}
