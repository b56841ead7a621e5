//! What is said: messages, their content, and the calls of tools in them.
//!
//! The stored form is the one that chat front ends read: `{"type": "human", "content": "…"}`, `ai` with `tool_calls`,
//! `tool` with a `tool_call_id`, `system`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    /// Instructions from the program's author.
    System {
        /// What it says.
        content: Content,
    },
    /// From the person.
    #[serde(rename = "human")]
    User {
        /// What it says.
        content: Content,
    },
    /// From the model.
    #[serde(rename = "ai")]
    Assistant(Answer),
    /// What a tool gave back.
    Tool(ToolResult),
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its words.
    #[serde(default)]
    pub content: Content,
    /// The tools it wants called.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// What it thought, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// A call of a tool, as a model decided it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within its conversation; the result names it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments, an object. Text that is no JSON is kept as text, so that the tool can refuse it.
    pub args: Json,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that this answers.
    pub tool_call_id: String,
    /// The tool.
    #[serde(default)]
    pub name: String,
    /// What it gave.
    pub content: Content,
    /// Whether it failed.
    #[serde(default)]
    pub status: ToolStatus,
}

/// How a tool call went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// As it should.
    #[default]
    Success,
    /// Not; the content says why.
    Error,
}

/// The content of a message: blocks, usually one of text. Stored as plain text if it is that.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content(pub Vec<Block>);

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture or another file, by address or by its bytes.
    File {
        /// What kind, such as `image/png`.
        mime_type: String,
        /// Where it is, or what it is.
        source: FileSource,
    },
}

/// Where the bytes of a file come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// The provider fetches it.
    Url(String),
    /// The bytes in base64.
    Base64(String),
}

impl Message {
    /// Instructions.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System {
            content: text.into().into(),
        }
    }

    /// Words of a person.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            content: text.into().into(),
        }
    }

    /// Words of a model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant(Answer {
            content: text.into().into(),
            ..Answer::default()
        })
    }

    /// What a tool gave.
    pub fn tool(call: &ToolCall, text: impl Into<String>) -> Self {
        Self::Tool(ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            content: text.into().into(),
            status: ToolStatus::Success,
        })
    }

    /// Why a tool could not give anything.
    pub fn tool_error(call: &ToolCall, why: impl Into<String>) -> Self {
        Self::Tool(ToolResult {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            content: why.into().into(),
            status: ToolStatus::Error,
        })
    }

    /// What it says.
    pub fn content(&self) -> &Content {
        match self {
            Self::System { content } | Self::User { content } => content,
            Self::Assistant(answer) => &answer.content,
            Self::Tool(result) => &result.content,
        }
    }

    /// Its words, without what is not text.
    pub fn text(&self) -> String {
        self.content().text()
    }

    /// The tools it wants called; none unless a model said it.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(answer) => &answer.tool_calls,
            Self::System { .. } | Self::User { .. } | Self::Tool(_) => &[],
        }
    }
}

impl Content {
    /// The words, without what is not text.
    pub fn text(&self) -> String {
        let words = self.0.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::File { .. } => None,
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        match text.is_empty() {
            true => Self(Vec::new()),
            false => Self(vec![Block::Text { text }]),
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
        match self.0.as_slice() {
            [] => serializer.serialize_str(""),
            [Block::Text { text }] => serializer.serialize_str(text),
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
            Form::Blocks(blocks) => Self(blocks),
        })
    }
}
