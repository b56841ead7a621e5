//! Replies of models, whole or streamed.

use std::pin::Pin;

use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::message::{Answer, Message};
use crate::name::ModelName;
use crate::price::Cost;
use crate::usage::Usage;

/// The whole reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Text, tool calls and reasoning.
    pub answer: Answer,
    /// Tokens used. `None` if the server did not report them.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Model that answered; with fallbacks not always the first one.
    pub model: ModelName,
    /// Cost by the price table, or unknown.
    pub cost: Cost,
}

impl Reply {
    /// Returns the answer as a message of the conversation.
    pub fn message(&self) -> Message {
        Message::Assistant(self.answer.clone())
    }

    /// Returns the text of the answer.
    pub fn text(&self) -> String {
        self.answer.content.text()
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The answer is complete.
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The token limit was reached; the answer may be cut off.
    Length,
    /// The provider's content filter withheld something.
    Filtered,
    /// Another reason, in the provider's word.
    Other(String),
}

/// A chunk of a streamed reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// Text to append to the answer.
    Text(String),
    /// Text to append to the reasoning, if the provider streams it.
    Reasoning(String),
    /// A tool call has started or grown. The complete call, with its arguments, is in [`Chunk::End`].
    ToolCall {
        /// Position of the call among the calls of the reply, from 0.
        #[serde(default)]
        index: u32,
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Text to append to the arguments, which are JSON once the call is complete. Empty if only the name is known so far.
        #[serde(default)]
        args: String,
    },
    /// Discard all chunks so far: the call is repeated, with the same model or the next one.
    Again {
        /// Why the previous attempt failed.
        why: String,
        /// Number of the attempt that follows, from 2. 0 in a recording of an older version.
        #[serde(default)]
        attempt: u32,
        /// Highest number of attempts, those with the next models included.
        #[serde(default)]
        attempts_max: u32,
    },
    /// The whole reply. Always the last chunk.
    End(Box<Reply>),
}

/// Stream of a reply's chunks. Dropping it cancels the call.
pub type ReplyStream = Pin<Box<dyn Stream<Item = Result<Chunk, ModelError>> + Send>>;
