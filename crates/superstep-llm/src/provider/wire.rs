//! Conversion between our types and those of `genai`.

use genai::chat as wire;
use serde_json::{Value as Json, json};

use super::Remote;
use crate::message::{Block, Content, FileSource, Message, ToolCall};
use crate::name::Provider;
use crate::request::{Request, ToolChoice};
use crate::usage::Usage;

impl Remote {
    pub(super) fn request(&self, request: &Request) -> wire::ChatRequest {
        let messages = request.messages.iter().map(message).collect();
        let mut asked = wire::ChatRequest::new(messages);
        if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
            let tools = request.tools.iter().map(|tool| {
                wire::Tool::new(tool.name.as_str())
                    .with_description(tool.description.clone())
                    .with_schema(tool.schema.clone())
            });
            asked.tools = Some(tools.collect());
        }
        asked
    }

    pub(super) fn options(&self, request: &Request) -> wire::ChatOptions {
        let mut options = wire::ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true);
        options.temperature = request.temperature;
        options.max_tokens = request.tokens_max;
        options.top_p = request.top_p;
        options.stop_sequences.clone_from(&request.stop);
        options.seed = request.seed;
        if let Some(output) = &request.output {
            let spec = wire::JsonSpec::new(output.name.clone(), output.schema.clone());
            options.response_format = Some(spec.into());
            if self.name.provider() == Provider::OpenAiResponses && !self.is_providers_own() {
                // Third-party servers that speak Responses look for the schema where chat completions have it.
                let format =
                    json!({ "name": output.name, "strict": true, "schema": output.schema });
                let format = json!({ "type": "json_schema", "json_schema": format });
                options.extra_body = Some(json!({ "response_format": format }));
            }
        }
        if !request.tools.is_empty() && request.tool_choice == ToolChoice::Required {
            options.tool_choice = Some(wire::ToolChoice::Required);
        }
        options
    }

    /// Returns whether the server is the provider's own, and not one that speaks its protocol.
    pub(super) fn is_providers_own(&self) -> bool {
        let own = ["https://api.openai.com/", "https://api.anthropic.com/"];
        let base = self.target.endpoint.base_url();
        own.iter().any(|own| base.starts_with(own))
    }
}

fn message(message: &Message) -> wire::ChatMessage {
    match message {
        Message::System { content } => wire::ChatMessage::system(parts(content)),
        Message::User { content } => wire::ChatMessage::user(parts(content)),
        Message::Assistant(answer) => {
            let mut said: Vec<wire::ContentPart> = blocks(&answer.content);
            said.extend(answer.tool_calls.iter().map(|call| {
                wire::ContentPart::ToolCall(wire::ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: call.args.clone(),
                    thought_signatures: None,
                })
            }));
            wire::ChatMessage::assistant(wire::MessageContent::from(said))
        }
        Message::Tool(result) => {
            let response =
                wire::ToolResponse::new(result.tool_call_id.clone(), result.content.text());
            wire::ChatMessage::from(response.with_fn_name(result.name.clone()))
        }
    }
}

fn parts(content: &Content) -> wire::MessageContent {
    wire::MessageContent::from(blocks(content))
}

fn blocks(content: &Content) -> Vec<wire::ContentPart> {
    let part = |block: &Block| match block {
        Block::Text { text } => wire::ContentPart::Text(text.clone()),
        Block::File { mime_type, source } => wire::ContentPart::Binary(match source {
            FileSource::Url(url) => wire::Binary::from_url(mime_type.clone(), url.clone(), None),
            FileSource::Base64(bytes) => {
                wire::Binary::from_base64(mime_type.clone(), bytes.as_str(), None)
            }
        }),
    };
    content.blocks.iter().map(part).collect()
}

pub(super) fn call(call: wire::ToolCall) -> ToolCall {
    ToolCall {
        id: call.call_id,
        name: call.fn_name,
        args: match call.fn_arguments {
            // Some servers send the arguments as JSON text, and no arguments as an empty text.
            Json::String(text) if text.trim().is_empty() => Json::Object(serde_json::Map::new()),
            Json::String(text) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
            Json::Null => Json::Object(serde_json::Map::new()),
            args => args,
        },
    }
}

pub(super) fn usage(told: &wire::Usage) -> Option<Usage> {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let details = told.prompt_tokens_details.as_ref();
    Some(Usage {
        input_tokens: count(told.prompt_tokens)?,
        output_tokens: count(told.completion_tokens).unwrap_or(0),
        cached_tokens: count(details.and_then(|details| details.cached_tokens)).unwrap_or(0),
    })
}
