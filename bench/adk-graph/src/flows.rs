//! The graphs of the workloads.

use adk_graph::prelude::*;
use bench_rounds::message;

pub const NODES: usize = 20;

fn schema() -> StateSchema {
    StateSchema::builder()
        .list_channel("messages")
        .channel_with_default("step", json!(0))
        .channel("answer")
        .build()
}

fn step_of(context: &NodeContext) -> u64 {
    context.get("step").and_then(Value::as_u64).unwrap_or(0)
}

/// Appends a message and counts.
fn advance(context: &NodeContext, content: &str) -> NodeOutput {
    NodeOutput::new()
        .with_update("messages", json!([{ "role": "ai", "content": content }]))
        .with_update("step", json!(step_of(context) + 1))
}

fn with_step(graph: StateGraph, name: &str) -> StateGraph {
    graph.add_node_fn(name, |context| async move {
        let step = usize::try_from(step_of(&context)).unwrap_or(0);
        Ok(advance(&context, message(step)))
    })
}

pub fn chain() -> Result<CompiledGraph> {
    let names: Vec<String> = (0..NODES).map(|at| format!("n{at}")).collect();
    let mut graph = StateGraph::new(schema()).add_edge(START, &names[0]);
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map_or(END, String::as_str);
        graph = with_step(graph, name).add_edge(name, next);
    }
    graph.compile()
}

pub fn looped(turns: usize) -> Result<CompiledGraph> {
    let next = move |state: &State| {
        let goes_on = state["step"].as_u64().unwrap_or(0) < 2 * turns as u64;
        if goes_on { "planner" } else { END }.to_owned()
    };
    with_step(with_step(StateGraph::new(schema()), "planner"), "tool")
        .add_edge(START, "planner")
        .add_edge("planner", "tool")
        .add_conditional_edges("tool", next, [("planner", "planner"), (END, END)])
        .compile()
}

pub fn fan_out(branches: usize) -> Result<CompiledGraph> {
    let schema = StateSchema::builder()
        .list_channel("out")
        .channel("total")
        .channel("i")
        .build();
    StateGraph::new(schema)
        .add_node_fn("worker", |context| async move {
            let item = context.get("i").cloned().unwrap_or_default();
            Ok(NodeOutput::new().with_update("out", item))
        })
        .add_node_fn("split", move |context| async move {
            let child = |i| context.run_node("worker", json!({ "i": i }));
            let done = futures::future::try_join_all((0..branches).map(child)).await?;
            Ok(NodeOutput::new().with_update("total", json!(done.len())))
        })
        .add_edge(START, "split")
        .add_edge("split", END)
        .add_edge("worker", END)
        .compile()
}

pub fn approval() -> Result<CompiledGraph> {
    with_step(with_step(StateGraph::new(schema()), "draft"), "done")
        .add_node_fn("ask", |context| async move {
            Ok(match context.get("answer").and_then(Value::as_str) {
                None => NodeOutput::interrupt("approve?"),
                Some(answer) => advance(&context, answer),
            })
        })
        .add_edge(START, "draft")
        .add_edge("draft", "ask")
        .add_edge("ask", "done")
        .add_edge("done", END)
        .compile()
}
