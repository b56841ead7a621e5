//! Interpretation of a server's answer: a result, a refusal, or an unknown outcome.

use rmcp::ServiceError;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ErrorCode};
use superstep_llm::{Block, Content, FileSource};

use super::plain_text::plain;
use crate::tool::{ToolError, ToolOutput};

pub(super) fn read(
    answered: Result<CallToolResponse, ServiceError>,
) -> Result<ToolOutput, ToolError> {
    match answered {
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
            Err(ToolError::failed(content(&result).text()))
        }
        Ok(CallToolResponse::Complete(result)) => Ok(ToolOutput::new(content(&result))),
        Ok(CallToolResponse::InputRequired(_)) => Err(ToolError::failed(
            "the server wants to ask something in the middle of the call, which is not supported",
        )),
        Ok(_) => Err(ToolError::unknown(
            "the server continues it in the background, where it cannot be followed",
        )),
        Err(ServiceError::McpError(error)) if is_refusal(error.code) => Err(ToolError::failed(
            format!("the server refused the call: {}", one_line(&error.message)),
        )),
        Err(error) => Err(ToolError::unknown(format!(
            "the server gave no answer: {}",
            one_line(&error.to_string())
        ))),
    }
}

/// Returns a server's message as part of a sentence. A person may read it when deciding whether a call happened, so it must not
/// look like lines of ours.
fn one_line(message: &str) -> String {
    plain(message, MESSAGE_CHARS_MAX).replace(['\n', '\r'], " ")
}

const MESSAGE_CHARS_MAX: usize = 500;

/// Returns whether the server detects this error before the tool starts.
fn is_refusal(code: ErrorCode) -> bool {
    [
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
    ]
    .contains(&code)
}

fn content(result: &CallToolResult) -> Content {
    let mut blocks: Vec<_> = result.content.iter().map(block).collect();
    if let (true, Some(json)) = (blocks.is_empty(), &result.structured_content) {
        blocks.push(Block::Text {
            text: json.to_string(),
        });
    }
    Content::from(blocks)
}

pub(super) fn block(block: &ContentBlock) -> Block {
    match block {
        ContentBlock::Text(text) => Block::Text {
            text: text.text.clone(),
        },
        ContentBlock::Image(image) => Block::File {
            mime_type: image.mime_type.clone(),
            source: FileSource::Base64(image.data.clone()),
        },
        // Models do not accept this kind of content, so it is passed as its JSON.
        other => Block::Text {
            text: serde_json::to_string(other).unwrap_or_else(|error| error.to_string()),
        },
    }
}
