//! Embeddings of a server, through OpenAI's `/embeddings`.

use std::fmt;

use serde_json::json;

use super::Address;
use super::failure::{of_status, shown};
use super::gate::bounded;
use crate::embed::{Embedded, Embedder};
use crate::error::ModelError;
use crate::model::BoxFuture;
use crate::name::ModelName;
use crate::secret::Secret;
use crate::usage::Usage;

/// Embedder of a server that speaks OpenAI's `/embeddings`: OpenAI, Ollama, llama.cpp, vLLM and others.
#[derive(Clone)]
pub struct RemoteEmbedder {
    name: ModelName,
    url: String,
    key: Option<Secret>,
    /// Or why there is none: the machine has no root certificates, for example.
    http: Result<reqwest::Client, String>,
}

impl RemoteEmbedder {
    /// Creates an embedder for the model with this name at this address.
    pub fn at(name: &ModelName, address: Address) -> Self {
        Self {
            name: name.clone(),
            url: format!("{}/embeddings", address.url.trim_end_matches('/')),
            key: address.key,
            http: (reqwest::Client::builder().build()).map_err(|error| format!("{error:?}")),
        }
    }

    /// Creates an embedder from `OPENAI_BASE_URL` and `OPENAI_API_KEY`. Default address: `https://api.openai.com/v1`.
    pub fn from_env(name: &ModelName) -> Self {
        let url = std::env::var("OPENAI_BASE_URL")
            .ok()
            .filter(|url| !url.is_empty());
        let address = Address {
            url: url.unwrap_or_else(|| "https://api.openai.com/v1".to_owned()),
            key: Secret::from_env("OPENAI_API_KEY"),
        };
        Self::at(name, address)
    }

    async fn ask(&self, texts: &[String]) -> Result<Embedded, ModelError> {
        let body = json!({ "model": self.name.name(), "input": texts, "encoding_format": "float" });
        let unreachable = |why: String| ModelError::Unreachable {
            model: self.name.clone(),
            why,
        };
        let http = self.http.as_ref().map_err(|why| unreachable(why.clone()))?;
        let mut request = http.post(&self.url).json(&body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let response = request
            .send()
            .await
            .map_err(|error| unreachable(error.without_url().to_string()))?;
        let status = response.status();
        if !status.is_success() {
            let why = bounded(response, BYTES_MAX).await.unwrap_or_default();
            let why = String::from_utf8_lossy(&why).into_owned();
            let why = shown(&why, self.key.as_ref());
            return Err(of_status(&self.name, status.as_u16(), why, None));
        }
        let unreadable = |why: String| ModelError::Unreadable {
            model: self.name.clone(),
            why,
        };
        let told = bounded(response, BYTES_MAX)
            .await
            .map_err(|error| unreadable(error.without_url().to_string()))?;
        let told: EmbeddingResponse =
            serde_json::from_slice(&told).map_err(|error| unreadable(error.to_string()))?;
        self.read(told, texts.len())
    }

    fn read(&self, mut told: EmbeddingResponse, wanted: usize) -> Result<Embedded, ModelError> {
        told.data.sort_by_key(|point| point.index);
        if told.data.len() != wanted {
            return Err(ModelError::Unreadable {
                model: self.name.clone(),
                why: format!("{} points for {wanted} texts", told.data.len()),
            });
        }
        let usage = told.usage.map(|usage| Usage {
            input_tokens: usage.prompt_tokens,
            ..Usage::default()
        });
        Ok(Embedded {
            points: told.data.into_iter().map(|point| point.embedding).collect(),
            usage,
        })
    }
}

#[derive(serde::Deserialize)]
struct EmbeddingResponse {
    data: Vec<Point>,
    usage: Option<EmbeddingUsage>,
}

#[derive(serde::Deserialize)]
struct Point {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(serde::Deserialize)]
struct EmbeddingUsage {
    #[serde(default)]
    prompt_tokens: u64,
}

impl Embedder for RemoteEmbedder {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        Box::pin(self.ask(texts))
    }
}

impl fmt::Debug for RemoteEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEmbedder")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Maximum size of an answer: vectors for some thousand texts.
const BYTES_MAX: usize = 256 * 1024 * 1024;
