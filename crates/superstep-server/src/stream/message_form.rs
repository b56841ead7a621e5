//! Messages in the forms in which streams of runs show them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::feed::{BlockKind, MessageChange, parse_arguments};

/// Returns the chunk with which a client extends a message; `None` if the change adds nothing to it.
pub(super) fn chunk(message: &str, change: &MessageChange) -> Option<Json> {
    let mut chunk = json!({
        "content": "",
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "AIMessageChunk",
        "name": null,
        "id": message,
        "tool_calls": [],
        "invalid_tool_calls": [],
        "usage_metadata": null,
        "tool_call_chunks": [],
        "chunk_position": null,
    });
    match change {
        MessageChange::BlockBegan {
            kind: BlockKind::ToolCall { index, id, name },
            ..
        } => chunk["tool_call_chunks"] = json!([call_chunk(*index, Some((id, name)), "")]),
        MessageChange::Delta { kind, text, .. } => match kind {
            BlockKind::Text => chunk["content"] = text.as_str().into(),
            BlockKind::Reasoning => {
                chunk["additional_kwargs"] = json!({ "reasoning_content": text });
            }
            BlockKind::ToolCall { index, .. } => {
                chunk["tool_call_chunks"] = json!([call_chunk(*index, None, text)]);
            }
        },
        MessageChange::Ended {
            usage,
            is_void: false,
        } => {
            chunk["usage_metadata"] = usage.clone().unwrap_or_default();
            chunk["chunk_position"] = "last".into();
        }
        MessageChange::Began
        | MessageChange::BlockBegan { .. }
        | MessageChange::BlockEnded { .. }
        | MessageChange::Ended { is_void: true, .. } => return None,
    }
    Some(chunk)
}

fn call_chunk(index: u32, call: Option<(&String, &String)>, args: &str) -> Json {
    json!({
        "name": call.map(|(_, name)| name),
        "args": args,
        "id": call.map(|(id, _)| id),
        "index": index,
        "type": "tool_call_chunk",
    })
}

/// A message that grows.
#[derive(Debug, Default)]
pub(super) struct GrowingMessage {
    content: String,
    reasoning: String,
    calls: BTreeMap<u32, GrowingCall>,
    usage: Json,
}

#[derive(Debug, Default)]
struct GrowingCall {
    id: String,
    name: String,
    args: String,
}

impl GrowingMessage {
    /// Adds a change. Returns whether clients see the message again: as it is now, or complete.
    pub(super) fn add(&mut self, change: &MessageChange) -> bool {
        match change {
            MessageChange::Began => {
                // A message that is written again starts from nothing.
                *self = Self::default();
                return false;
            }
            MessageChange::BlockBegan {
                kind: BlockKind::ToolCall { index, id, name },
                ..
            } => {
                let call = GrowingCall {
                    id: id.clone(),
                    name: name.clone(),
                    args: String::new(),
                };
                self.calls.insert(*index, call);
            }
            MessageChange::Delta { kind, text, .. } => match kind {
                BlockKind::Text => self.content.push_str(text),
                BlockKind::Reasoning => self.reasoning.push_str(text),
                BlockKind::ToolCall { index, .. } => {
                    self.calls.entry(*index).or_default().args.push_str(text);
                }
            },
            MessageChange::Ended {
                usage,
                is_void: false,
            } => self.usage = usage.clone().unwrap_or_default(),
            MessageChange::BlockBegan { .. }
            | MessageChange::BlockEnded { .. }
            | MessageChange::Ended { .. } => return false,
        }
        true
    }

    /// Returns the message so far.
    pub(super) fn message(&self, id: &str) -> Json {
        let mut extra = json!({});
        if !self.reasoning.is_empty() {
            extra["reasoning_content"] = self.reasoning.as_str().into();
        }
        let call = |call: &GrowingCall| {
            json!({
                "name": call.name,
                // Arguments that are not complete yet cannot be read.
                "args": parse_arguments(&call.args).unwrap_or_else(|| json!({})),
                "id": call.id,
                "type": "tool_call",
            })
        };
        let calls: Vec<Json> = self.calls.values().map(call).collect();
        json!({
            "content": self.content,
            "additional_kwargs": extra,
            "response_metadata": {},
            "type": "ai",
            "name": null,
            "id": id,
            "tool_calls": calls,
            "invalid_tool_calls": [],
            "usage_metadata": self.usage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> BlockKind {
        BlockKind::ToolCall {
            index: 0,
            id: "c1".to_owned(),
            name: "search".to_owned(),
        }
    }

    #[test]
    fn chunks_and_the_growing_message_say_the_same() {
        let delta = |kind: BlockKind, text: &str| MessageChange::Delta {
            block: 0,
            kind,
            text: text.to_owned(),
        };
        let changes = [
            MessageChange::Began,
            delta(BlockKind::Text, "Hello"),
            MessageChange::BlockBegan {
                block: 1,
                kind: call(),
            },
            delta(call(), r#"{"q":1}"#),
            MessageChange::Ended {
                usage: Some(json!({ "input_tokens": 1 })),
                is_void: false,
            },
        ];
        let mut growing = GrowingMessage::default();
        let mut chunks = Vec::new();
        for change in &changes {
            growing.add(change);
            chunks.extend(chunk("m", change));
        }
        assert_eq!(chunks.len(), 4);
        assert_eq!(chunks[0]["content"], "Hello");
        assert_eq!(chunks[1]["tool_call_chunks"][0]["id"], "c1");
        assert_eq!(chunks[2]["tool_call_chunks"][0]["args"], r#"{"q":1}"#);
        assert_eq!(chunks[3]["chunk_position"], "last");
        let message = growing.message("m");
        assert_eq!(message["content"], "Hello");
        assert_eq!(message["tool_calls"][0]["args"], json!({ "q": 1 }));
        assert_eq!(message["usage_metadata"]["input_tokens"], 1);
    }

    #[test]
    fn a_message_that_is_written_again_starts_from_nothing() {
        let mut growing = GrowingMessage::default();
        for text in ["He", "Hello"] {
            growing.add(&MessageChange::Began);
            growing.add(&MessageChange::Delta {
                block: 0,
                kind: BlockKind::Text,
                text: text.to_owned(),
            });
        }
        assert_eq!(growing.message("m")["content"], "Hello");
    }
}
