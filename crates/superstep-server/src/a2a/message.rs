//! A message that a client sends to an agent.

use serde_json::{Map, Value as Json, json};
use superstep::graph::Definition;

use crate::a2a::dialect::{SentPart, read_part};
use crate::a2a::task::TaskName;
use crate::a2a::{CONTENT_TYPE_NOT_SUPPORTED, history_length};
use crate::follow::message_channel;
use crate::json_rpc::RpcError;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(super) struct SentMessage {
    id: String,
    /// Name of the context, if the client knows one.
    pub(super) context: Option<String>,
    /// The task that the message continues.
    pub(super) task: Option<TaskName>,
    texts: Vec<String>,
    data: Map<String, Json>,
    files: Vec<Json>,
    /// Whether the client does not wait for the end of the task.
    pub(super) returns_at_once: bool,
    pub(super) history_length: Option<usize>,
}

impl SentMessage {
    pub(super) fn read(params: &Json) -> Result<Self, RpcError> {
        let message = params.get("message").filter(|message| message.is_object());
        let message =
            message.ok_or_else(|| RpcError::invalid_params("`message` must be an object"))?;
        let text = |name: &str| {
            let found = message.get(name).and_then(Json::as_str);
            found.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        if !matches!(message["role"].as_str(), Some("user" | "ROLE_USER")) {
            return Err(RpcError::invalid_params(
                "`message.role` must be `user`, or `ROLE_USER` in version 1.0",
            ));
        }
        let id = text("messageId");
        let id =
            id.ok_or_else(|| RpcError::invalid_params("`message.messageId` must be a text"))?;
        let parts = message.get("parts").and_then(Json::as_array);
        let parts = parts.filter(|parts| !parts.is_empty());
        let parts = parts
            .ok_or_else(|| RpcError::invalid_params("`message.parts` must be a list of parts"))?;
        let configuration = params.get("configuration").unwrap_or(&Json::Null);
        let mut sent = Self {
            id,
            context: text("contextId"),
            task: text("taskId").map(|id| TaskName::parse(&id)).transpose()?,
            texts: Vec::new(),
            data: Map::new(),
            files: Vec::new(),
            // The names of 0.3 and 1.0; both wait by default.
            returns_at_once: configuration["blocking"] == false
                || configuration["returnImmediately"] == true,
            history_length: history_length(configuration)?,
        };
        for part in parts {
            match read_part(part) {
                Some(SentPart::Text(text)) => sent.texts.push(text),
                Some(SentPart::Data(data)) => sent.data.extend(data),
                Some(SentPart::File(block)) => sent.files.push(block),
                None => {
                    return Err(RpcError::invalid_params(
                        "a part must be a text, a file or an object of data",
                    ));
                }
            }
        }
        Ok(sent)
    }

    /// Returns the answer to open interrupts: the data if there are any, or else the text.
    pub(super) fn answer(&self) -> Json {
        match self.data.is_empty() {
            true => self.texts.join("\n").into(),
            false => Json::Object(self.data.clone()),
        }
    }

    /// Returns the input of a run: data are the fields of the input, and the rest is what the user says.
    pub(super) fn input(&self, graph: &Definition) -> Result<Json, RpcError> {
        let mut input = self.data.clone();
        if self.texts.is_empty() && self.files.is_empty() {
            return Ok(Json::Object(input));
        }
        let Some(channel) = message_channel(graph) else {
            let names: Vec<&str> = graph.inputs().iter().copied().collect();
            return Err(RpcError::new(
                CONTENT_TYPE_NOT_SUPPORTED,
                format!(
                    "this agent takes no text; send a part with `data`, whose fields are {}",
                    names.join(", ")
                ),
            ));
        };
        let text = self.texts.join("\n");
        let content = match self.files.is_empty() {
            true => Json::from(text),
            false => {
                let said = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
                said.into_iter().chain(self.files.iter().cloned()).collect()
            }
        };
        let message = json!({ "id": self.id, "role": "user", "content": content });
        input.insert(channel.to_owned(), json!([message]));
        Ok(Json::Object(input))
    }
}

#[test]
fn a_message_without_an_id_a_role_or_parts_is_refused() {
    for params in [
        json!({}),
        json!({ "message": "hi" }),
        json!({ "message": {} }),
        json!({ "message": { "messageId": "1", "role": "user", "parts": [] } }),
        json!({ "message": { "messageId": "1", "role": "user", "parts": "hi" } }),
        json!({ "message": { "messageId": "1", "role": "user", "parts": [{ "kind": "smell" }] } }),
        json!({ "message": { "messageId": "1", "role": "agent", "parts": [{ "text": "hi" }] } }),
        json!({ "message": { "messageId": "1", "parts": [{ "text": "hi" }] } }),
        json!({ "message": { "role": "user", "parts": [{ "text": "hi" }] } }),
        json!({
            "message": { "messageId": "1", "role": "user", "parts": [{ "text": "hi" }] },
            "configuration": { "historyLength": -1 },
        }),
    ] {
        assert!(SentMessage::read(&params).is_err(), "{params}");
    }
    let params =
        json!({ "message": { "messageId": "1", "role": "user", "parts": [{ "text": "hi" }] } });
    let sent = SentMessage::read(&params).unwrap();
    assert_eq!(sent.answer(), "hi");
    assert!(!sent.returns_at_once);
}
