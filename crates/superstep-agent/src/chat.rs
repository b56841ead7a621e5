//! The message type of a conversation channel.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use superstep_core::Labels;
use superstep_llm::{Answer, Message, ToolResult};

/// A message with its id and its labels, as stored in a `#[state(messages)]` channel.
///
/// It serializes to the flat object that chat front ends read, with the list of labels added: `{"id": "…", "labels": [],
/// "type": "human", "content": "…"}`. The list is present even when it is empty. Without it decoding fails, so a message that
/// lost its labels cannot pass for one that had none.
///
/// Core's label rule applies: a node that [noted](superstep_core::NodeCx::note_read) what it read may only write messages
/// that carry those labels.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(from = "Stored")]
pub struct ChatMessage {
    /// Id, unique in the conversation. The runtime assigns one if it is `None`.
    pub id: Option<String>,
    /// Labels of the data that the content was made from.
    pub labels: Labels,
    /// Role and content.
    pub message: Message,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    id: Option<String>,
    // No default, on purpose: a message without labels must not decode.
    labels: Labels,
    #[serde(flatten)]
    message: Message,
}

impl From<Stored> for ChatMessage {
    fn from(stored: Stored) -> Self {
        Self {
            id: stored.id,
            labels: stored.labels,
            message: stored.message,
        }
    }
}

impl ChatMessage {
    /// Creates a message with the labels of its content, and no id yet.
    pub fn new(message: Message, labels: impl Into<Labels>) -> Self {
        Self {
            id: None,
            labels: labels.into(),
            message,
        }
    }

    /// Creates a message of the program's user, without labels.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Message::user(text), Labels::NONE)
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the text of the content.
    pub fn text(&self) -> String {
        self.message.text()
    }
}

impl superstep_core::Message for ChatMessage {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }
}

/// Prints the content only if there are no labels, because a log is a sink too.
impl fmt::Debug for ChatMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ChatMessage");
        shown.field("id", &self.id).field("labels", &self.labels);
        if !self.labels.is_empty() {
            return shown.finish_non_exhaustive();
        }
        shown.field("message", &self.message).finish()
    }
}

/// Struct name by which core recognizes a value that carries labels; its list is the field `labels`. A test keeps the two
/// crates in sync.
const LABELED: &str = "superstep::Labeled";

// By hand: a derived implementation with `flatten` serializes as a map, and core's label rule needs the struct's name.
impl Serialize for ChatMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct(LABELED, 7)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("labels", &self.labels)?;
        match &self.message {
            Message::System { content } => {
                fields.serialize_field("type", "system")?;
                fields.serialize_field("content", content)?;
            }
            Message::User { content } => {
                fields.serialize_field("type", "human")?;
                fields.serialize_field("content", content)?;
            }
            Message::Assistant(answer) => write_answer(&mut fields, answer)?,
            Message::Tool(result) => write_result(&mut fields, result)?,
        }
        fields.end()
    }
}

fn write_answer<F: SerializeStruct>(fields: &mut F, answer: &Answer) -> Result<(), F::Error> {
    fields.serialize_field("type", "ai")?;
    fields.serialize_field("content", &answer.content)?;
    fields.serialize_field("tool_calls", &answer.tool_calls)?;
    match &answer.reasoning {
        Some(reasoning) => fields.serialize_field("reasoning", reasoning),
        None => fields.skip_field("reasoning"),
    }
}

fn write_result<F: SerializeStruct>(fields: &mut F, result: &ToolResult) -> Result<(), F::Error> {
    fields.serialize_field("type", "tool")?;
    fields.serialize_field("tool_call_id", &result.tool_call_id)?;
    fields.serialize_field("name", &result.name)?;
    fields.serialize_field("content", &result.content)?;
    fields.serialize_field("status", &result.status)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};
    use superstep_core::Label;
    use superstep_llm::ToolCall;

    use super::*;

    fn samples() -> Vec<Message> {
        let call = ToolCall {
            id: "c1".to_owned(),
            name: "look".to_owned(),
            args: json!({ "at": 1 }),
        };
        let answer = Answer {
            content: "I look.".into(),
            tool_calls: vec![call.clone()],
            reasoning: Some("why not".to_owned()),
        };
        vec![
            Message::system("be brief"),
            Message::user("hello"),
            Message::assistant("hi"),
            Message::Assistant(answer),
            Message::tool(&call, "12"),
            Message::tool_error(&call, "no"),
        ]
    }

    #[test]
    fn the_stored_form_is_the_message_with_an_id_and_labels() {
        for message in samples() {
            let mut plain = serde_json::to_value(&message).unwrap();
            plain["id"] = json!("m1");
            plain["labels"] = json!(["untrusted"]);
            let kept = ChatMessage::new(message, Label::UNTRUSTED).with_id("m1");
            let stored = serde_json::to_value(&kept).unwrap();
            assert_eq!(stored, plain);
            assert_eq!(serde_json::from_value::<ChatMessage>(stored).unwrap(), kept);
        }
    }

    #[test]
    fn a_message_that_lost_its_labels_does_not_decode() {
        let stripped = json!({ "id": "m1", "type": "human", "content": "hello" });
        let refused = serde_json::from_value::<ChatMessage>(stripped).unwrap_err();
        assert!(refused.to_string().contains("labels"), "{refused}");
    }

    #[test]
    fn labeled_words_are_not_shown_in_logs() {
        let message = ChatMessage::new(Message::user("my pin is 1234"), Label::PRIVATE);
        assert!(!format!("{message:?}").contains("1234"));
        let _: Json = serde_json::to_value(message).unwrap();
    }
}
