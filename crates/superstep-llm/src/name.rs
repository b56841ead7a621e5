//! Names of models: `provider:name`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Name of a model, such as `openai:gpt-4.1-mini`, `ollama:qwen3:8b` or `script:demo.json`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelName {
    provider: Provider,
    name: String,
}

/// Where a model runs, and which API it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// OpenAI's chat completions API, and compatible servers.
    OpenAi,
    /// OpenAI's Responses API, and compatible servers.
    OpenAiResponses,
    /// Anthropic's Messages API, and compatible servers.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// An Ollama server, local by default.
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

    /// Returns the prefix in a model's name, such as `openai`.
    pub fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, provider)| *provider == self);
        found.map_or("", |(word, _)| word)
    }
}

impl ModelName {
    /// Creates a name from its parts.
    pub fn new(provider: Provider, name: impl Into<String>) -> Self {
        Self {
            provider,
            name: name.into(),
        }
    }

    /// Parses a name that a person typed: PROVIDER:NAME, or a bare name of a family that only one provider has, such as
    /// `gpt-4o`, `claude-sonnet-4` or `gemini-2.5-pro`.
    ///
    /// ```
    /// use superstep_llm::ModelName;
    ///
    /// assert_eq!(ModelName::from_typed("gpt-4o")?.to_string(), "openai:gpt-4o");
    /// assert!(ModelName::from_typed("qwen3").is_err());
    /// # Ok::<(), superstep_llm::NotAModel>(())
    /// ```
    pub fn from_typed(given: &str) -> Result<Self, NotAModel> {
        let family = FAMILIES.iter().find(|(begin, _)| given.starts_with(begin));
        match family {
            Some((_, provider)) if !given.contains(':') => Ok(Self::new(*provider, given)),
            _ => given.parse(),
        }
    }

    /// Returns the provider.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// Returns the provider's name of the model; for scripts and cassettes the path of the file.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Beginnings of names that only one provider uses.
const FAMILIES: [(&str, Provider); 6] = [
    ("gpt-", Provider::OpenAi),
    ("chatgpt-", Provider::OpenAi),
    ("o3-", Provider::OpenAi),
    ("o4-", Provider::OpenAi),
    ("claude-", Provider::Anthropic),
    ("gemini-", Provider::Gemini),
];

/// Error for a text that is not a model name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is not a model: write PROVIDER:NAME with a provider of {}, such as `openai:gpt-4.1-mini`, or `script:FILE`",
    words()
)]
pub struct NotAModel {
    /// The rejected text.
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
