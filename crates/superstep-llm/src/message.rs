//! Messages, their content, and tool calls.
//!
//! The serialized form is the one that chat front ends read: `{"type": "human", "content": "…"}`, `ai` with `tool_calls`,
//! `tool` with a `tool_call_id`, `system`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// Instructions from the program's author.
    System {
        /// The instructions.
        content: Content,
    },
    /// A message from the person.
    #[serde(rename = "human")]
    User {
        /// What the person wrote or attached.
        content: Content,
    },
    /// An answer of the model.
    #[serde(rename = "ai")]
    Assistant(Answer),
    /// The result of a tool call.
    Tool(ToolResult),
}

/// An answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Text of the answer. Empty if the model only calls tools.
    #[serde(default)]
    pub content: Content,
    /// Tool calls that the model requests, in order.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// Reasoning text, if the provider exposes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// A tool call requested by a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id, unique within the conversation; the result refers to it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments, normally an object. Text that is not valid JSON is kept as a string, so the tool can refuse it.
    pub args: Json,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call that this answers.
    pub tool_call_id: String,
    /// Name of the tool. May be empty in stored data.
    #[serde(default)]
    pub name: String,
    /// What the tool returned, or why it failed.
    pub content: Content,
    /// Whether the call succeeded.
    #[serde(default)]
    pub status: ToolStatus,
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The tool returned a result.
    #[default]
    Success,
    /// The call failed; the content says why.
    Error,
}

/// Content of a message: blocks, usually a single text.
///
/// Serialized as a plain string if it is empty or a single text. Content that was read from a list is written as a list again, because
/// clients compare what they sent with what they read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// Whether a single text is written as a list with one block.
    is_list: bool,
}

/// A part of a message's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image or another file.
    File {
        /// MIME type, such as `image/png`.
        mime_type: String,
        /// Where the bytes come from.
        source: FileSource,
    },
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// A URL that the provider fetches.
    Url(String),
    /// The bytes themselves, in base64.
    Base64(String),
}

impl Message {
    /// Creates a system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System {
            content: text.into().into(),
        }
    }

    /// Creates a message of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            content: text.into().into(),
        }
    }

    /// Creates an answer of the model without tool calls.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant(Answer {
            content: text.into().into(),
            ..Answer::default()
        })
    }

    /// Creates the result of a successful tool call.
    pub fn tool(call: &ToolCall, text: impl Into<String>) -> Self {
        Self::Tool(ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            content: text.into().into(),
            status: ToolStatus::Success,
        })
    }

    /// Creates the result of a failed tool call.
    pub fn tool_error(call: &ToolCall, why: impl Into<String>) -> Self {
        Self::Tool(ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            content: why.into().into(),
            status: ToolStatus::Error,
        })
    }

    /// Returns the content.
    pub fn content(&self) -> &Content {
        match self {
            Self::System { content } | Self::User { content } => content,
            Self::Assistant(answer) => &answer.content,
            Self::Tool(result) => &result.content,
        }
    }

    /// Returns who the message is from, in the word of the serialized form: `system`, `human`, `ai` or `tool`.
    pub const fn role(&self) -> &'static str {
        match self {
            Self::System { .. } => "system",
            Self::User { .. } => "human",
            Self::Assistant(_) => "ai",
            Self::Tool(_) => "tool",
        }
    }

    /// Returns the text of the content, without files.
    pub fn text(&self) -> String {
        self.content().text()
    }

    /// Returns the requested tool calls; empty for messages that are not from the model.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(answer) => &answer.tool_calls,
            Self::System { .. } | Self::User { .. } | Self::Tool(_) => &[],
        }
    }
}

impl Content {
    /// Returns the text blocks, joined by line breaks. Skips files.
    pub fn text(&self) -> String {
        let words = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::File { .. } => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Returns whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self {
            blocks,
            is_list: false,
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        match text.is_empty() {
            true => Self::default(),
            false => vec![Block::Text { text }].into(),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.blocks.as_slice() {
            [] => serializer.serialize_str(""),
            [Block::Text { text }] if !self.is_list => serializer.serialize_str(text),
            blocks => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Blocks(Vec<Block>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Blocks(blocks) => Self {
                is_list: matches!(blocks.as_slice(), [Block::Text { .. }]),
                blocks,
            },
        })
    }
}

#[test]
fn content_is_written_in_the_form_in_which_it_was_read() {
    let read = |form: Json| serde_json::from_value::<Content>(form).unwrap();
    let list = serde_json::json!([{ "type": "text", "text": "hi" }]);
    for form in [list.clone(), "hi".into(), "".into()] {
        assert_eq!(serde_json::to_value(read(form.clone())).unwrap(), form);
    }
    assert_eq!(read(list).text(), "hi");
    let made = Content::from(vec![Block::Text {
        text: "hi".to_owned(),
    }]);
    assert_eq!(made, read("hi".into()));
}
