//! Requests to models.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::message::Message;

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Name of the caller for scripts, traces and errors; in a graph the node's name. Not sent to providers.
    pub label: String,
    /// The whole conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// Whether the model may, must or must not call a tool.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Schema of structured output. Do not combine with tools: servers that constrain the answer with a grammar then ignore
    /// one of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSchema>,
    /// Maximum length of the answer, in tokens. `None`: the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u32>,
    /// Sampling temperature. `None`: the provider's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the model picks from the likeliest tokens that together have this probability. `None`: the provider's
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the model stops. The answer does not contain them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Sampling seed, for servers that support reproducible output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A tool, as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name that the model calls the tool by.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Json,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call at least one tool.
    Required,
    /// The model must not call tools.
    None,
}

/// Schema of structured output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A short name, which some providers require.
    pub name: String,
    /// JSON Schema of the answer. Must be flat: see [`crate::structured`].
    pub schema: Json,
}

impl Request {
    /// Creates a request with these messages.
    pub fn new(label: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            label: label.into(),
            messages,
            ..Self::default()
        }
    }

    /// Sets the tools that the model may call.
    pub fn tools(mut self, tools: Vec<ToolSpec>) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the schema of structured output.
    pub fn output(mut self, output: OutputSchema) -> Self {
        self.output = Some(output);
        self
    }

    /// Limits the length of the answer, in tokens.
    pub fn tokens_max(mut self, tokens: u32) -> Self {
        self.tokens_max = Some(tokens);
        self
    }

    /// Sets the sampling temperature.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the probability of nucleus sampling.
    pub fn top_p(mut self, probability: f64) -> Self {
        self.top_p = Some(probability);
        self
    }

    /// Adds a text at which the model stops.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// Sets the sampling seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}
