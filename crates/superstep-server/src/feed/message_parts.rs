//! Messages while models write them: turns tokens into numbered blocks of content.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::TaskId;

use crate::feed::event::{BlockKind, MessageChange, MessagePart, Namespace, TaskOrigin};

/// The messages of a thread that are being written.
#[derive(Debug, Default)]
pub(super) struct OpenMessages(Vec<OpenMessage>);

#[derive(Debug)]
struct OpenMessage {
    id: Arc<str>,
    task: TaskId,
    namespace: Namespace,
    origin: Arc<TaskOrigin>,
    block: Option<OpenBlock>,
    next_block: u32,
    /// Number of bytes of text so far.
    text_bytes: usize,
    /// Calls whose arguments were streamed.
    calls: BTreeSet<String>,
}

#[derive(Debug)]
struct OpenBlock {
    number: u32,
    kind: BlockKind,
    text: String,
}

/// A part of a message, with the graph that it belongs to.
pub(super) type PlacedPart = (Namespace, MessagePart);

/// A piece of a message, as a model sends it.
#[derive(Debug)]
pub(super) struct MessagePiece<'a> {
    pub(super) message: &'a str,
    pub(super) kind: BlockKind,
    pub(super) text: String,
}

impl<'a> MessagePiece<'a> {
    pub(super) fn new(message: &'a str, kind: BlockKind, text: String) -> Self {
        Self {
            message,
            kind,
            text,
        }
    }
}

impl OpenMessages {
    /// Adds a piece to a message, which begins with its first piece.
    pub(super) fn add(
        &mut self,
        task: TaskId,
        namespace: &Namespace,
        origin: &Arc<TaskOrigin>,
        piece: MessagePiece<'_>,
    ) -> Vec<PlacedPart> {
        let mut changes = Vec::new();
        let at = self.0.iter().position(|open| *open.id == *piece.message);
        let at = at.unwrap_or_else(|| {
            changes.push(MessageChange::Began);
            self.0.push(OpenMessage {
                id: piece.message.into(),
                task,
                namespace: namespace.clone(),
                origin: origin.clone(),
                block: None,
                next_block: 0,
                text_bytes: 0,
                calls: BTreeSet::new(),
            });
            self.0.len() - 1
        });
        let open = &mut self.0[at];
        open.add(piece.kind, piece.text, &mut changes);
        changes
            .into_iter()
            .map(|change| open.part(change))
            .collect()
    }

    /// Returns the id of the message that a call belongs to, unless the arguments of the call were streamed in it: the named
    /// message, or else the one that the task is writing.
    pub(super) fn without_call(
        &self,
        task: TaskId,
        message: Option<&str>,
        call: &str,
    ) -> Option<Arc<str>> {
        let mut open = self.0.iter().rev();
        let open = open.find(|open| match message {
            Some(message) => *open.id == *message,
            None => open.task == task,
        });
        match open {
            Some(open) => (!open.calls.contains(call)).then(|| open.id.clone()),
            None => message.map(Arc::from),
        }
    }

    /// Returns how many calls were streamed in a message.
    pub(super) fn calls_of(&self, message: &str) -> u32 {
        let open = self.0.iter().find(|open| *open.id == *message);
        open.map_or(0, |open| {
            u32::try_from(open.calls.len()).unwrap_or(u32::MAX)
        })
    }

    /// Returns the ids of the messages that a task is writing, each with the length of its text so far.
    pub(super) fn of_task(&self, task: TaskId) -> Vec<(String, usize)> {
        let open = self.0.iter().filter(|open| open.task == task);
        open.map(|open| (open.id.to_string(), open.text_bytes))
            .collect()
    }

    /// Completes a message. Does nothing if it is not being written.
    pub(super) fn end(&mut self, message: &str, usage: Option<Json>) -> Vec<PlacedPart> {
        match self.0.iter().position(|open| *open.id == *message) {
            Some(at) => self.0.remove(at).end(usage, false),
            None => Vec::new(),
        }
    }

    /// Ends all messages that a task was writing: complete because the task ended, or void because it writes them again.
    pub(super) fn end_task(&mut self, task: TaskId, is_void: bool) -> Vec<PlacedPart> {
        let of_task = |open: &mut OpenMessage| open.task == task;
        let ended = self.0.extract_if(.., of_task);
        ended.flat_map(|open| open.end(None, is_void)).collect()
    }

    /// Ends all messages: the run stopped.
    pub(super) fn end_all(&mut self) -> Vec<PlacedPart> {
        let ended = std::mem::take(&mut self.0).into_iter();
        ended.flat_map(|open| open.end(None, true)).collect()
    }
}

impl OpenMessage {
    fn add(&mut self, kind: BlockKind, text: String, changes: &mut Vec<MessageChange>) {
        let continues = self.block.as_ref().is_some_and(|block| block.is_of(&kind));
        if !continues {
            changes.extend(self.end_block());
            let number = self.next_block;
            self.next_block += 1;
            if let BlockKind::ToolCall { id, .. } = &kind {
                self.calls.insert(id.clone());
            }
            changes.push(MessageChange::BlockBegan {
                block: number,
                kind: kind.clone(),
            });
            self.block = Some(OpenBlock {
                number,
                kind,
                text: String::new(),
            });
        }
        let block = self.block.as_mut().expect("it was begun above, or before");
        if text.is_empty() {
            return;
        }
        if block.kind == BlockKind::Text {
            self.text_bytes += text.len();
        }
        block.text.push_str(&text);
        changes.push(MessageChange::Delta {
            block: block.number,
            kind: block.kind.clone(),
            text,
        });
    }

    fn end_block(&mut self) -> Option<MessageChange> {
        let block = self.block.take()?;
        Some(MessageChange::BlockEnded {
            block: block.number,
            content: block.content(),
        })
    }

    fn end(mut self, usage: Option<Json>, is_void: bool) -> Vec<PlacedPart> {
        let block = self.end_block();
        let ended = MessageChange::Ended { usage, is_void };
        let changes = block.into_iter().chain([ended]);
        changes.map(|change| self.part(change)).collect()
    }

    fn part(&self, change: MessageChange) -> PlacedPart {
        let part = MessagePart {
            origin: self.origin.clone(),
            message: self.id.clone(),
            change,
        };
        (self.namespace.clone(), part)
    }
}

impl OpenBlock {
    /// Whether a piece of this kind continues the block. Providers send the id and name of a call with its first piece only.
    fn is_of(&self, kind: &BlockKind) -> bool {
        match (&self.kind, kind) {
            (BlockKind::ToolCall { index, .. }, BlockKind::ToolCall { index: other, .. }) => {
                index == other
            }
            (own, other) => own == other,
        }
    }

    fn content(self) -> Json {
        match self.kind {
            BlockKind::Text => json!({ "type": "text", "text": self.text }),
            BlockKind::Reasoning => json!({ "type": "reasoning", "reasoning": self.text }),
            BlockKind::ToolCall { id, name, .. } => match parse_arguments(&self.text) {
                Some(args) => json!({ "type": "tool_call", "id": id, "name": name, "args": args }),
                None => json!({
                    "type": "invalid_tool_call",
                    "id": id,
                    "name": name,
                    "args": self.text,
                    "error": "the arguments are not a JSON object",
                }),
            },
        }
    }
}

/// Reads the arguments of a call; `None` if they are not an object. A call without arguments may have no text at all.
pub(crate) fn parse_arguments(text: &str) -> Option<Json> {
    if text.trim().is_empty() {
        return Some(json!({}));
    }
    serde_json::from_str(text).ok().filter(Json::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(parts: Vec<PlacedPart>) -> Vec<MessageChange> {
        parts.into_iter().map(|(_, part)| part.change).collect()
    }

    fn add(open: &mut OpenMessages, kind: BlockKind, text: &str) -> Vec<MessageChange> {
        let origin = TaskOrigin {
            node: "model".to_owned(),
            task: String::new(),
            step: 1,
            sent: None,
        };
        let piece = MessagePiece::new("m", kind, text.to_owned());
        let task = TaskId::from_bytes([1; 16]);
        changes(open.add(task, &Namespace::default(), &Arc::new(origin), piece))
    }

    #[test]
    fn a_message_is_a_list_of_blocks() {
        let mut open = OpenMessages::default();
        assert_eq!(
            add(&mut open, BlockKind::Text, "He"),
            [
                MessageChange::Began,
                MessageChange::BlockBegan {
                    block: 0,
                    kind: BlockKind::Text
                },
                MessageChange::Delta {
                    block: 0,
                    kind: BlockKind::Text,
                    text: "He".to_owned()
                },
            ]
        );
        assert_eq!(add(&mut open, BlockKind::Text, "llo").len(), 1);
        let call = |id: &str| BlockKind::ToolCall {
            index: 0,
            id: id.to_owned(),
            name: "search".to_owned(),
        };
        let began = add(&mut open, call("c1"), "");
        assert_eq!(
            began[0],
            MessageChange::BlockEnded {
                block: 0,
                content: json!({ "type": "text", "text": "Hello" })
            }
        );
        assert_eq!(add(&mut open, call(""), r#"{"query":"#).len(), 1);
        add(&mut open, call(""), r#""v3"}"#);
        let ended = changes(open.end("m", None));
        assert_eq!(
            ended[0],
            MessageChange::BlockEnded {
                block: 1,
                content: json!({
                    "type": "tool_call", "id": "c1", "name": "search", "args": { "query": "v3" }
                })
            }
        );
        assert_eq!(
            ended[1],
            MessageChange::Ended {
                usage: None,
                is_void: false
            }
        );
        assert!(open.end("m", None).is_empty());
    }
}
