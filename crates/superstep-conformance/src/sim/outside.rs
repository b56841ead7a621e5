//! Graphs of the simulator for other drivers: random programs with costs and labels, to compare what others show of them.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value as Json};
use superstep_core::error::BuildError;
use superstep_core::graph::Definition;
use superstep_core::label::{Label, Labeled, Labels};
use superstep_core::trace::{CallKind, CallSpan};
use superstep_core::{NodeCx, NodeError, Timestamp};

use super::entropy::{hash, stir};
use super::lab::{Inner, Lab};
use super::nodes;
use super::program::Program;

/// Builds the graph of a seed's program, named `sim-` and the seed. Its nodes also emit calls with costs, and write labeled values
/// into the channel `facts`.
pub fn graph(seed: u64) -> Result<Arc<Definition>, BuildError> {
    let mut program = Program::random(seed);
    program.root.name = format!("sim-{seed}");
    let graph = nodes::build(&program.root, &Lab::new(Inner::outside(seed)))?;
    Ok(graph.definition().clone())
}

/// Emits the calls of a node, and returns what it writes with labels.
pub(super) fn trace_and_label(
    who: &str,
    mark: u64,
    cx: &NodeCx,
) -> Result<Option<Labeled<String>>, NodeError> {
    let choice = stir(mark ^ hash(who.as_bytes()));
    for call in 0..choice % 3 {
        cx.emit(model_call(stir(choice ^ call)))?;
    }
    if choice.is_multiple_of(4) {
        cx.emit(tool_call(choice >> 8))?;
    }
    let labels = match choice % 5 {
        0 => Labels::from(Label::UNTRUSTED),
        1 => Labels::from(Label::PRIVATE).with(Label::UNTRUSTED),
        2 => Labels::from(Label::PRIVATE).declassify(
            &Labels::from(Label::PRIVATE),
            &format!("{who} checked it"),
            cx,
        )?,
        _ => return Ok(None),
    };
    Ok(Some(Labeled::new(format!("{who} found {mark:x}"), labels)))
}

/// A model call; the usage or the cost of some is unknown.
fn model_call(choice: u64) -> CallSpan {
    let mut fields = Map::new();
    let model = ["small", "large"][(choice % 2) as usize];
    fields.insert("gen_ai.request.model".to_owned(), model.into());
    if !choice.is_multiple_of(7) {
        fields.insert(
            "gen_ai.usage.input_tokens".to_owned(),
            (choice % 5000).into(),
        );
        fields.insert(
            "gen_ai.usage.output_tokens".to_owned(),
            (choice % 777).into(),
        );
    }
    if !choice.is_multiple_of(11) {
        let nano_dollars = choice % 40_000_000;
        fields.insert(
            "superstep.cost_nano_dollars".to_owned(),
            nano_dollars.into(),
        );
    }
    call(
        CallKind::from_static("model"),
        format!("chat {model}"),
        fields,
    )
}

fn tool_call(choice: u64) -> CallSpan {
    let classes = ["read", "idempotent", "keyed", "reconcilable", "unsafe"];
    let class = classes[(choice % 5) as usize];
    let known = [
        ("gen_ai.tool.name", format!("{class}_tool")),
        ("gen_ai.tool.call.id", format!("call-{choice:x}")),
        ("superstep.tool.class", class.to_owned()),
    ];
    let known = known.map(|(name, value)| (name.to_owned(), Json::from(value)));
    let fields = known.into_iter().collect();
    call(
        CallKind::from_static("tool"),
        format!("execute_tool {class}_tool"),
        fields,
    )
}

fn call(span: CallKind, name: String, fields: Map<String, Json>) -> CallSpan {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = Timestamp(since.map_or(0, |since| since.as_millis() as i64));
    CallSpan {
        span,
        name,
        start: now,
        end: now,
        error: None,
        fields,
        result: None,
    }
}
