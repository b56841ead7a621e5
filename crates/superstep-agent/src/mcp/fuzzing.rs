//! Parsers of untrusted bytes, for `testing/fuzz`. Not part of the public API.

use rmcp::ServiceError;
use rmcp::model::{
    CallToolResponse, JsonRpcMessage, ListToolsResult, ServerJsonRpcMessage, ServerResult,
};
use superstep_llm::ToolSpec;

use super::{answer, digest_of, spec_of};
use crate::tool::{ToolError, ToolOutput};

/// Parses a line from a server as the answer to a call; `None` if it is not an answer.
pub fn read_answer(line: &[u8]) -> Option<Result<ToolOutput, ToolError>> {
    // The same choice that the client makes when a call is answered.
    let answered = match serde_json::from_slice(line).ok()? {
        ServerJsonRpcMessage::Response(response) => match response.result {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => {
                Ok(CallToolResponse::InputRequired(result))
            }
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(ServiceError::UnexpectedResponse),
        },
        JsonRpcMessage::Error(error) => Err(ServiceError::McpError(error.error)),
        _ => return None,
    };
    Some(answer::read(answered))
}

/// Parses a list of tools: its digest in the given and in reverse order, and the specs that a model sees.
pub fn read_tools(json: &[u8]) -> Option<(String, String, Vec<ToolSpec>)> {
    let mut tools = serde_json::from_slice::<ListToolsResult>(json).ok()?.tools;
    let digest = digest_of(&tools);
    let specs = tools.iter().map(|tool| spec_of("server", tool)).collect();
    tools.reverse();
    Some((digest, digest_of(&tools), specs))
}
