//! A thread's trace for agents: model and tool calls, tokens and cost, under the names that OpenTelemetry's conventions for
//! generative AI, Phoenix and LangSmith use.
//!
//! The engine knows spans of runs, waits, supersteps and nodes, and calls of a kind that the node names. This module gives
//! those calls their meaning: [`MODEL`] and [`TOOL`] are the kinds of this crate, [`fields`] the names of their attributes.
//! [`AgentTrace`] displays a trace with them, and the feature `otlp` exports it.

use std::fmt;

use serde::Serialize;
use serde_json::Map;
use superstep_core::trace::fields as engine_fields;
use superstep_core::trace::{CallKind, Span, SpanKind, Trace};

/// Kind of a model call.
pub const MODEL: CallKind = CallKind::from_static("model");
/// Kind of a tool call.
pub const TOOL: CallKind = CallKind::from_static("tool");

/// Operation names, which are also the prefixes of span names.
pub mod spans {
    /// Operation of a run.
    pub const RUN: &str = "invoke_agent";
    /// Operation of a model call.
    pub const MODEL: &str = "chat";
    /// Operation of a tool call.
    pub const TOOL: &str = "execute_tool";
}

/// Names of span attributes, next to the engine's own in [`superstep_core::trace::fields`].
pub mod fields {
    /// Operation: one of the names in [`super::spans`].
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// Provider of the model, in the conventions' spelling.
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// Model that was requested.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// Model that answered.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Number of input tokens. Absent if the server did not report usage.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Number of output tokens. Absent if the server did not report usage.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Why the model stopped; a list with one word.
    pub const FINISH: &str = "gen_ai.response.finish_reasons";
    /// Id of the thread.
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    /// Name of the tool.
    pub const TOOL_NAME: &str = "gen_ai.tool.name";
    /// Id of the tool call.
    pub const TOOL_CALL: &str = "gen_ai.tool.call.id";
    /// Class of the tool: what calling it twice means.
    pub const TOOL_CLASS: &str = "superstep.tool.class";
    /// Cost of a call, in billionths of a dollar. Absent if it is unknown.
    pub const COST: &str = "superstep.cost_nano_dollars";
    /// Span kind for Phoenix: `AGENT`, `CHAIN`, `LLM` or `TOOL`.
    pub const OPENINFERENCE_KIND: &str = "openinference.span.kind";
    /// Span kind for LangSmith: `chain`, `llm` or `tool`.
    pub const LANGSMITH_KIND: &str = "langsmith.span.kind";
    /// Session by which Phoenix groups runs: the thread's id.
    pub const SESSION: &str = "session.id";
    /// Session of a trace in LangSmith: the thread's id.
    pub const LANGSMITH_SESSION: &str = "langsmith.trace.session_id";
    /// Thread by which LangSmith groups runs: the thread's id.
    pub const LANGSMITH_THREAD: &str = "langsmith.metadata.thread_id";
}

/// A trace with what agents add: as JSON, runs have their operation and conversation; as text, spans have the tokens and the
/// cost of the model calls inside them.
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
    /// Returns the trace, including the added attributes.
    pub fn as_trace(&self) -> &Trace {
        &self.0
    }
}

/// Puts the operation first and the conversation after the graph. Where `serde_json` keeps the order of fields, existing
/// output depends on it.
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

/// Totals of the model calls inside a span.
#[derive(Default)]
struct Totals {
    calls: u64,
    input: u64,
    output: u64,
    nano_dollars: u64,
    /// Number of calls with unknown cost.
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
