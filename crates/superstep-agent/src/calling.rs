//! Calling a tool from a node of your own: asked about, keyed and recorded as the ready-made loop does it.

use superstep_core::{Labels, NodeCx, NodeError};
use superstep_llm::{Message, ToolCall, ToolResult};

use crate::call::Caller;
use crate::tool::{Tool, Tools};

/// Calls a tool, from the approval to the result. For a node of your own; [`ToolNode`](crate::ToolNode) is made of the same.
///
/// What decides on the call, be it a model or a person, must be committed before this node begins: another node wrote it. The
/// id of the call tells the calls of one node apart.
pub async fn call_tool(
    tool: &Tool,
    call: &ToolCall,
    labels: &Labels,
    cx: &NodeCx,
) -> Result<ToolResult, NodeError> {
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
    match caller.call(call).await?.message {
        Message::Tool(result) => Ok(result),
        other => Err(NodeError::fatal(format!(
            "a call gave something else than a result: {}",
            other.text()
        ))),
    }
}
