//! What a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::message::Message;

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Who asks, for scripts, traces and errors; in a graph the node's name. Providers do not see it.
    pub label: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// What the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// Whether it may, must or must not.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// The form that the answer must have. Not together with tools: servers that bind the answer to a grammar then ignore
    /// one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// How long the answer may get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u32>,
    /// How freely it chooses its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// For servers that repeat themselves when asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A tool, as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema of its arguments.
    pub schema: Json,
}

/// Whether tools are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// At least one.
    Required,
    /// None.
    None,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A short name that some providers want.
    pub name: String,
    /// The JSON schema, flat: see [`crate::structured`].
    pub schema: Json,
}

impl Request {
    /// A question with these messages.
    pub fn new(label: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            label: label.into(),
            messages,
            ..Self::default()
        }
    }

    /// With tools that the model may call.
    pub fn tools(mut self, tools: Vec<ToolSpec>) -> Self {
        self.tools = tools;
        self
    }

    /// With the form that the answer must have.
    pub fn output(mut self, output: OutputSchema) -> Self {
        self.output = Some(output);
        self
    }

    /// With a limit on the length of the answer.
    pub fn tokens_max(mut self, tokens: u32) -> Self {
        self.tokens_max = Some(tokens);
        self
    }

    /// With a temperature.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// With a seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}
