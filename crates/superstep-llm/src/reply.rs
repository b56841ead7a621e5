//! What a model gave back, at once or in pieces.

use std::pin::Pin;

use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::message::{Answer, Message};
use crate::name::ModelName;
use crate::price::Cost;
use crate::usage::Usage;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it said.
    pub answer: Answer,
    /// What it took. None if the server did not tell.
    pub usage: Option<Usage>,
    /// Why it stopped.
    pub finish: Finish,
    /// Who answered; with a fallback not always the first that was asked.
    pub model: ModelName,
    /// What it cost, by the table of prices.
    pub cost: Cost,
}

impl Reply {
    /// As a message of the conversation.
    pub fn message(&self) -> Message {
        Message::Assistant(self.answer.clone())
    }

    /// Its words.
    pub fn text(&self) -> String {
        self.answer.content.text()
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It had said all.
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// It reached the limit of tokens; what there is may be cut in the middle.
    Length,
    /// The provider held something back.
    Filtered,
    /// Something else, in the provider's word.
    Other(String),
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chunk {
    /// Words.
    Text(String),
    /// Thoughts, where the provider tells.
    Reasoning(String),
    /// The call of a tool has begun or grown; the whole is in the end.
    ToolCall {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// What came so far is void: the call is made again, by the same model or the next.
    Again {
        /// Why.
        why: String,
    },
    /// That was all. Always the last.
    End(Box<Reply>),
}

/// The pieces of an answer, as they come. Dropping it ends the call.
pub type ReplyStream = Pin<Box<dyn Stream<Item = Result<Chunk, ModelError>> + Send>>;
