//! Tool calls from your own nodes, with the same approval, key and records as the ready-made loop.

use superstep_core::{Labels, NodeCx, NodeError};
use superstep_llm::{Message, ToolCall, ToolResult};

use crate::call::{Caller, Decision};
use crate::tool::{Tool, Tools};

/// Calls a tool, from the approval to the result. For your own nodes; [`ToolNode`](crate::ToolNode) uses the same code.
///
/// The decision to call, whether a model's or a person's, must be committed by another node before this node starts. The
/// call's id must be unique within the node: records and the idempotency key are derived from it.
pub async fn call_tool(
    tool: &Tool,
    call: &ToolCall,
    labels: &Labels,
    cx: &NodeCx,
) -> Result<ToolResult, NodeError> {
    let (_, result) = call_decided_tool(tool, call, labels, cx).await?;
    Ok(result)
}

/// Calls a tool as [`call_tool`] does, and returns what was decided about the call next to its result. The text of a call that was not made is for
/// a model; a node that answers a person says it in its own words.
pub async fn call_decided_tool(
    tool: &Tool,
    call: &ToolCall,
    labels: &Labels,
    cx: &NodeCx,
) -> Result<(Decision, ToolResult), NodeError> {
    let tools = Tools::new([tool.clone()]).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        NodeError::fatal(faults.join("; "))
    })?;
    let caller = Caller {
        cx,
        tools: &tools,
        hooks: &[],
        labels,
    };
    let outcome = caller.call(call).await?;
    let decision = outcome.decision;
    match outcome.only_message()?.message {
        Message::Tool(result) => Ok((decision, result)),
        other => Err(NodeError::fatal(format!(
            "a call gave something else than a result: {}",
            other.text()
        ))),
    }
}
