//! The name of a model, as people write it: `provider:name`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `openai:gpt-4.1-mini`, `ollama:qwen3:8b`, `script:demo.json`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName {
    provider: Provider,
    name: String,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// OpenAI's chat completions, and every server that speaks them.
    OpenAi,
    /// OpenAI's Responses, and every server that speaks them.
    OpenAiResponses,
    /// Anthropic's messages, and every server that speaks them.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A local Ollama.
    Ollama,
    /// A file with ordered replies; see [`crate::script`].
    Script,
    /// A recording; see [`crate::cassette`].
    Cassette,
}

impl Provider {
    const ALL: [(&'static str, Self); 7] = [
        ("openai", Self::OpenAi),
        ("openai_responses", Self::OpenAiResponses),
        ("anthropic", Self::Anthropic),
        ("gemini", Self::Gemini),
        ("ollama", Self::Ollama),
        ("script", Self::Script),
        ("cassette", Self::Cassette),
    ];

    /// Its word in a model's name.
    pub fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, provider)| *provider == self);
        found.map_or("", |(word, _)| word)
    }
}

impl ModelName {
    /// From its parts.
    pub fn new(provider: Provider, name: impl Into<String>) -> Self {
        Self {
            provider,
            name: name.into(),
        }
    }

    /// Who answers.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The provider's name for it; for a script its file.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// What is not the name of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is not a model: write PROVIDER:NAME with a provider of {}, such as `openai:gpt-4.1-mini`, or `script:FILE`",
    words()
)]
pub struct NotAModel {
    /// What was given.
    pub given: String,
}

fn words() -> String {
    let words: Vec<_> = Provider::ALL.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}

impl FromStr for ModelName {
    type Err = NotAModel;

    fn from_str(given: &str) -> Result<Self, NotAModel> {
        let wrong = || NotAModel {
            given: given.to_owned(),
        };
        let (word, name) = given.split_once(':').ok_or_else(wrong)?;
        let known = Provider::ALL.iter().find(|(known, _)| *known == word);
        match known {
            Some((_, provider)) if !name.is_empty() => Ok(Self::new(*provider, name)),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for ModelName {
    type Error = NotAModel;

    fn try_from(given: String) -> Result<Self, NotAModel> {
        given.parse()
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider.word(), self.name)
    }
}
