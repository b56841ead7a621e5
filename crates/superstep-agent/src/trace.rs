//! A thread's trace as people who run agents look at it: calls of models and tools, tokens and cost, under the names of
//! OpenTelemetry's conventions for generative AI, Phoenix and LangSmith.
//!
//! The engine knows spans of runs, waits, supersteps and nodes, and calls of a kind that a node names. What such a call is
//! about is decided here: [`MODEL`] and [`TOOL`] are the kinds of this crate, [`fields`] the names of what is known of
//! them. [`AgentTrace`] shows a trace with all that, and the feature `otlp` exports it.

use std::fmt;

use serde::Serialize;
use serde_json::Map;
use superstep_core::trace::fields as engine_fields;
use superstep_core::trace::{CallKind, Span, SpanKind, Trace};

/// The kind of a call of a model.
pub const MODEL: CallKind = CallKind::from_static("model");
/// The kind of a call of a tool.
pub const TOOL: CallKind = CallKind::from_static("tool");

/// The names of operations, which also begin the names of spans.
pub mod spans {
    /// A run.
    pub const RUN: &str = "invoke_agent";
    /// A call of a model.
    pub const MODEL: &str = "chat";
    /// A call of a tool.
    pub const TOOL: &str = "execute_tool";
}

/// The names of fields, next to the engine's own in [`superstep_core::trace::fields`].
pub mod fields {
    /// Which operation: one of the names of [`super::spans`].
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// The provider of the model.
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// The model that was requested.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// The model that answered.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Tokens that the model read.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Tokens that the model wrote.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Why the model stopped.
    pub const FINISH: &str = "gen_ai.response.finish_reasons";
    /// The thread.
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    /// The tool.
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    /// The call of the tool.
    pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
    /// The class of the tool, which says how often it may be called.
    pub const TOOL_CLASS: &str = "superstep.tool.class";
    /// What a call cost, in billionths of a dollar. Absent if it is unknown.
    pub const COST: &str = "superstep.cost_nano_dollars";
    /// What Phoenix sorts spans by: `AGENT`, `CHAIN`, `LLM`, `TOOL`.
    pub const OPENINFERENCE_KIND: &str = "openinference.span.kind";
    /// What LangSmith sorts spans by: `chain`, `llm`, `tool`.
    pub const LANGSMITH_KIND: &str = "langsmith.span.kind";
    /// What Phoenix groups runs by.
    pub const SESSION: &str = "session.id";
    /// What LangSmith calls the session of a trace.
    pub const LANGSMITH_SESSION: &str = "langsmith.trace.session_id";
    /// What LangSmith groups the runs of a thread by.
    pub const LANGSMITH_THREAD: &str = "langsmith.metadata.thread_id";
}

/// A trace with what agents add to it: as JSON, runs have their operation and conversation; as text, spans have the tokens
/// and the cost of the calls of models in them.
///
/// ```
/// use superstep_agent::trace::AgentTrace;
/// use superstep_core::trace::Trace;
///
/// let trace = Trace { thread: "t".to_owned(), runs: Vec::new() };
/// assert_eq!(AgentTrace::from(trace).to_string(), "t\n");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AgentTrace(Trace);

impl From<Trace> for AgentTrace {
    fn from(mut trace: Trace) -> Self {
        for run in &mut trace.runs {
            if run.kind == SpanKind::Run {
                describe_run(&trace.thread, run);
            }
        }
        Self(trace)
    }
}

impl AgentTrace {
    /// Returns the trace, with what was added to it.
    pub fn as_trace(&self) -> &Trace {
        &self.0
    }
}

/// The operation goes first and the conversation after the graph, where a `serde_json` that keeps the order of fields has
/// always written them.
fn describe_run(thread: &str, run: &mut Span) {
    let mut described = Map::new();
    described.insert(fields::OPERATION.to_owned(), spans::RUN.into());
    for (name, value) in std::mem::take(&mut run.fields) {
        let is_graph = name == engine_fields::GRAPH;
        described.insert(name, value);
        if is_graph {
            described.insert(fields::CONVERSATION.to_owned(), thread.into());
        }
    }
    // A run that was not read from a log may have no graph.
    if !described.contains_key(fields::CONVERSATION) {
        described.insert(fields::CONVERSATION.to_owned(), thread.into());
    }
    run.fields = described;
}

impl fmt::Display for AgentTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.tree_with(|span| Totals::of(span).to_string()), f)
    }
}

/// What the calls of models in a span took.
#[derive(Default)]
struct Totals {
    calls: u64,
    input: u64,
    output: u64,
    nano_dollars: u64,
    /// Calls whose cost is unknown.
    unknown: u64,
}

impl Totals {
    fn of(span: &Span) -> Self {
        let mut totals = Self::default();
        totals.add(span);
        totals
    }

    fn add(&mut self, span: &Span) {
        if span.kind.is_call(MODEL.as_str()) {
            let number = |name: &str| span.fields.get(name).and_then(|value| value.as_u64());
            self.calls += 1;
            self.input += number(fields::INPUT_TOKENS).unwrap_or(0);
            self.output += number(fields::OUTPUT_TOKENS).unwrap_or(0);
            match number(fields::COST) {
                Some(nano) => self.nano_dollars += nano,
                None => self.unknown += 1,
            }
        }
        span.inner.iter().for_each(|inner| self.add(inner));
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.calls == 0 {
            return Ok(());
        }
        write!(f, "{} in, {} out  ", self.input, self.output)?;
        match self.unknown {
            0 => f.write_str(&dollars(self.nano_dollars)),
            _ if self.nano_dollars == 0 => f.write_str("cost unknown"),
            _ => write!(f, "at least {}", dollars(self.nano_dollars)),
        }
    }
}

fn dollars(nano: u64) -> String {
    format!(
        "${}.{:06}",
        nano / 1_000_000_000,
        nano % 1_000_000_000 / 1_000
    )
}
