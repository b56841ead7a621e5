//! Where in a graph a task runs, as clients read it.

use serde_json::{Map, Value as Json, json};

/// Returns where a task runs: its node, the number of its superstep, its namespace, and its place among the tasks of the superstep
/// that were sent a payload, if it was.
pub(crate) fn task_place(
    node: &str,
    step: i64,
    namespace: &str,
    sent: Option<u32>,
) -> Map<String, Json> {
    let trigger = match sent {
        Some(_) => PUSH.to_owned(),
        None => format!("branch:to:{node}"),
    };
    let fields: [(&str, Json); 5] = [
        ("langgraph_step", step.into()),
        ("langgraph_node", node.into()),
        ("langgraph_triggers", json!([trigger])),
        ("langgraph_path", task_path(node, sent)),
        ("langgraph_checkpoint_ns", namespace.into()),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the path of a task within its superstep.
pub(crate) fn task_path(node: &str, sent: Option<u32>) -> Json {
    match sent {
        Some(place) => json!([PUSH, place, false]),
        None => json!(["__pregel_pull", node]),
    }
}

/// What starts a task that was sent a payload, as clients know it.
const PUSH: &str = "__pregel_push";
