//! The trace of a thread: spans of runs, waits, supersteps, nodes and calls, with models, tokens, cost and tool classes.

use serde_json::{Map, Value as Json, json};
use superstep::trace::{Span, fields};
use superstep::{RunId, ThreadId};

use super::calls::{self, CallTotals};
use super::newest_trace::NewestTrace;
use crate::wire;

/// Returns a trace as clients read it.
pub(crate) fn span_tree(thread: &ThreadId, newest: &NewestTrace) -> Json {
    let trace = &newest.trace;
    let mut all = CallTotals::default();
    trace.runs.iter().for_each(|run| all.add(run));
    json!({
        "thread_id": thread.name(),
        "cost": super::totals(all),
        "runs": trace.runs.iter().map(span).collect::<Vec<_>>(),
        "is_complete": newest.is_complete,
    })
}

fn span(found: &Span) -> Json {
    let duration = found
        .end
        .map(|end| end.0.saturating_sub(found.start.0).max(0));
    let mut shown = json!({
        "span_id": found.id,
        "name": found.name,
        "kind": found.kind,
        "started_at": wire::time(found.start),
        "ended_at": found.end.map(wire::time),
        "duration_ms": duration,
        "error": found.error,
        "cost": super::totals(CallTotals::of(found)),
        "attributes": attributes(found),
        "spans": found.inner.iter().map(span).collect::<Vec<_>>(),
    });
    for (name, field) in NAMED {
        if let Some(value) = found.fields.get(field) {
            shown[name] = value.clone();
        }
    }
    let run = found.fields.get(fields::RUN).and_then(Json::as_str);
    if let Some(run) = run.and_then(|run| run.parse::<RunId>().ok()) {
        shown["run_id"] = wire::uuid(run.to_bytes()).into();
    }
    shown
}

/// Returns what else is known of a span.
fn attributes(found: &Span) -> Map<String, Json> {
    let is_named =
        |name: &str| name == fields::RUN || NAMED.iter().any(|(_, field)| *field == name);
    let others = found.fields.iter().filter(|(name, _)| !is_named(name));
    others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Fields of spans that have a name of their own.
const NAMED: [(&str, &str); 13] = [
    ("graph_id", fields::GRAPH),
    ("node", fields::NODE),
    ("step", fields::STEP),
    ("subgraph", fields::SUBGRAPH),
    ("attempt", fields::ATTEMPT),
    ("is_cached", fields::CACHED),
    ("outcome", fields::OUTCOME),
    ("model", calls::REQUEST_MODEL),
    ("input_tokens", calls::INPUT_TOKENS),
    ("output_tokens", calls::OUTPUT_TOKENS),
    ("nano_dollars", calls::COST),
    ("tool", calls::TOOL_NAME),
    ("tool_class", calls::TOOL_CLASS),
];
