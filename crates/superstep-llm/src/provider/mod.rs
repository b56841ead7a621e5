//! Models called over the network, through the `genai` crate.
//!
//! This module adds what that crate lacks: errors that say whether and when to retry, limits on the size of a reply, the
//! context size, and prices.

mod embedder;
mod failure;
mod gate;
mod reading;
mod streamed_calls;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use reqwest::Url;
use serde_json::{Value as Json, json};

use crate::error::ModelError;
use crate::model::{BoxFuture, Model};
use crate::name::{ModelName, Provider};
use crate::price::Prices;
use crate::quiet::quiet;
use crate::reply::ReplyStream;
use crate::request::Request;
use crate::secret::Secret;
use gate::{Gate, Passage, bounded};
use reading::Reading;
use streamed_calls::StreamedCalls;

pub use embedder::RemoteEmbedder;
pub use gate::ReplyLimits;

/// A model behind an HTTP server.
pub struct Remote {
    name: ModelName,
    client: Client,
    target: ServiceTarget,
    base: Url,
    /// Client that talks to the server. The `genai` client only talks to the gate.
    http: reqwest::Client,
    limits: ReplyLimits,
    key: Option<Secret>,
    prices: Arc<Prices>,
    /// Cached, because the server's answer does not change.
    context_size: OnceLock<u64>,
}

/// Address of a server, and the key for it.
#[expect(missing_debug_implementations, reason = "it holds a secret")]
#[derive(Clone)]
pub struct Address {
    /// Base URL including the API version, such as `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// API key; `None` for a server that needs none.
    pub key: Option<Secret>,
}

impl Address {
    /// Reads a provider's address and key from the environment, with the provider's usual address as the default. `None` for
    /// scripts and cassettes.
    pub fn from_env(provider: Provider) -> Option<Self> {
        Self::from_env_or(provider, None)
    }

    /// Reads a provider's address and key from the environment, with `url` as the default address. `None` for scripts and
    /// cassettes.
    pub fn from_env_or(provider: Provider, url: Option<&str>) -> Option<Self> {
        way(provider).map(|way| way.address(url))
    }
}

/// How to reach a provider.
struct Way {
    adapter: AdapterKind,
    url: &'static str,
    url_variable: &'static str,
    key_variable: &'static str,
    needs_key: bool,
}

impl Way {
    fn address(&self, default: Option<&str>) -> Address {
        let custom = self.custom_url(default);
        Address {
            url: custom.unwrap_or_else(|| self.url.to_owned()),
            key: Secret::from_env(self.key_variable),
        }
    }

    /// Returns the address that the environment or else the caller sets; `None` for the provider's own.
    fn custom_url(&self, default: Option<&str>) -> Option<String> {
        let url = std::env::var(self.url_variable).ok();
        let url = url.filter(|url| !url.is_empty());
        url.or_else(|| default.map(str::to_owned)).map(with_scheme)
    }
}

/// Adds a scheme: Ollama's own tools accept `127.0.0.1:11434` as an address.
fn with_scheme(url: String) -> String {
    match url.contains("://") {
        true => url,
        false => format!("http://{url}"),
    }
}

fn way(provider: Provider) -> Option<Way> {
    let way = |adapter, url, url_variable, key_variable, needs_key| Way {
        adapter,
        url,
        url_variable,
        key_variable,
        needs_key,
    };
    let openai = "https://api.openai.com/v1";
    Some(match provider {
        Provider::OpenAi => way(
            AdapterKind::OpenAI,
            openai,
            "OPENAI_BASE_URL",
            "OPENAI_API_KEY",
            true,
        ),
        Provider::OpenAiResponses => way(
            AdapterKind::OpenAIResp,
            openai,
            "OPENAI_BASE_URL",
            "OPENAI_API_KEY",
            true,
        ),
        Provider::Anthropic => way(
            AdapterKind::Anthropic,
            "https://api.anthropic.com/v1",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_API_KEY",
            true,
        ),
        Provider::Gemini => way(
            AdapterKind::Gemini,
            "https://generativelanguage.googleapis.com/v1beta",
            "GEMINI_BASE_URL",
            "GEMINI_API_KEY",
            true,
        ),
        Provider::Ollama => way(
            AdapterKind::Ollama,
            "http://localhost:11434",
            "OLLAMA_HOST",
            "OLLAMA_API_KEY",
            false,
        ),
        Provider::Script | Provider::Cassette => return None,
    })
}

impl Remote {
    /// Creates a model from the environment: `OPENAI_BASE_URL` and `OPENAI_API_KEY` for `openai:…` and `openai_responses:…`,
    /// `ANTHROPIC_…`, `GEMINI_…`, and `OLLAMA_HOST`.
    pub fn from_env(name: &ModelName) -> Result<Self, ModelError> {
        Self::from_env_or(name, None)
    }

    /// Creates a model from the environment like [`Remote::from_env`], at `url` if the environment sets no address.
    pub fn from_env_or(name: &ModelName, url: Option<&str>) -> Result<Self, ModelError> {
        let way = Self::way(name)?;
        let address = way.address(url);
        // A self-hosted server may need no key; the providers' own servers always do.
        if way.needs_key && way.custom_url(url).is_none() && address.key.is_none() {
            return Err(ModelError::Unauthorized {
                model: name.clone(),
                status: 0,
                key: way.key_variable,
            });
        }
        Self::at(name, address)
    }

    /// Creates a model with this name at this address.
    pub fn at(name: &ModelName, address: Address) -> Result<Self, ModelError> {
        let way = Self::way(name)?;
        let url = format!("{}/", address.url.trim_end_matches('/'));
        let base = Url::parse(&url).map_err(|error| ModelError::Unreachable {
            model: name.clone(),
            why: format!("`{url}` is not an address: {error}"),
        })?;
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(url),
            // Replaced for each call by the placeholder of its gate.
            auth: AuthData::from_single("none"),
            model: ModelIden::new(way.adapter, name.name()),
        };
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .build()
            .map_err(|error| unreachable(name, &error))?;
        // Each gate serves a single call, and is local whatever proxies are configured.
        let to_gate = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| unreachable(name, &error))?;
        let client = Client::builder().with_reqwest(to_gate).build();
        Ok(Self {
            name: name.clone(),
            client: client.map_err(|error| unreachable(name, &error))?,
            target,
            base,
            http,
            limits: ReplyLimits::default(),
            key: address.key,
            prices: Arc::new(Prices::known()),
            context_size: OnceLock::new(),
        })
    }

    /// Sets the price table. Default: [`Prices::known`].
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    /// Limits what the server may send for one reply.
    #[must_use]
    pub fn limits(mut self, limits: ReplyLimits) -> Self {
        self.limits = limits;
        self
    }

    fn way(name: &ModelName) -> Result<Way, ModelError> {
        way(name.provider()).ok_or_else(|| ModelError::BadFile {
            model: name.clone(),
            why: "this is a file, not a server".to_owned(),
        })
    }

    async fn open_gate(&self) -> Result<Gate, ModelError> {
        let passage = Passage {
            model: self.name.clone(),
            base: self.base.clone(),
            http: self.http.clone(),
            key: self.key.clone(),
            limits: self.limits.clone(),
        };
        let gate = Gate::open(passage).await;
        gate.map_err(|error| unreachable(&self.name, &error))
    }

    async fn get(&self, url: &str) -> Option<Json> {
        let mut request = self.http.get(url).timeout(ASIDE_MAX);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let response = request.send().await.ok()?.error_for_status().ok()?;
        json_of(response).await
    }

    /// Returns the address with the version of the API, and the one without.
    fn bases(&self) -> (&str, &str) {
        let base = self.target.endpoint.base_url().trim_end_matches('/');
        (base, base.trim_end_matches("/v1"))
    }

    /// Asks for the properties that llama.cpp's server tells, and others do not.
    async fn props(&self) -> Option<Json> {
        let (_, root) = self.bases();
        self.get(&format!("{root}/props")).await
    }

    /// Servers report the context size in one of three places, or not at all, which is not an error.
    async fn told_context(&self) -> Option<u64> {
        let (base, root) = self.bases();
        if self.name.provider() == Provider::Ollama {
            let url = format!("{root}/api/show");
            let body = json!({ "model": self.name.name() });
            let request = self.http.post(url).timeout(ASIDE_MAX).json(&body);
            let told = json_of(request.send().await.ok()?).await?;
            let info = told.get("model_info")?.as_object()?;
            let size = info
                .iter()
                .find(|(key, _)| key.ends_with(".context_length"));
            return size.and_then(|(_, size)| size.as_u64());
        }
        // llama.cpp's server: the size of one slot, which is less than what the model was trained with.
        if let Some(props) = self.props().await {
            let size = props.pointer("/default_generation_settings/n_ctx");
            if let Some(size) = size.and_then(Json::as_u64) {
                return Some(size);
            }
        }
        let models = self.get(&format!("{base}/models")).await?;
        let models = models.get("data")?.as_array()?;
        let ours = models
            .iter()
            .find(|model| model.get("id").and_then(Json::as_str) == Some(self.name.name()))?;
        let words = [
            "max_model_len",
            "context_length",
            "context_window",
            "max_input_tokens",
        ];
        words
            .iter()
            .find_map(|word| ours.get(word).and_then(Json::as_u64))
    }
}

impl Model for Remote {
    fn name(&self) -> &ModelName {
        &self.name
    }

    fn stream<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<ReplyStream, ModelError>> {
        Box::pin(async move {
            let (asked, options) = (self.request(request), self.options(request));
            let gate = self.open_gate().await?;
            let target = ServiceTarget {
                endpoint: Endpoint::from_owned(gate.url.clone()),
                auth: AuthData::from_single(gate.placeholder.clone()),
                ..self.target.clone()
            };
            let begun = quiet(self.client.exec_chat_stream(target, asked, Some(&options))).await;
            let begun = begun.map_err(|error| {
                let verdict = gate.verdict();
                verdict.unwrap_or_else(|| failure::failure(&self.name, &error, self.key.as_ref()))
            })?;
            let mut reading = Reading {
                stream: begun.stream,
                name: self.name.clone(),
                key: self.key.clone(),
                prices: self.prices.clone(),
                tokens_max: request.tokens_max,
                text: String::new(),
                gate,
                content_bytes_max: self.limits.content_bytes_max,
                reasoning_bytes: 0,
                call_bytes: HashMap::new(),
                calls: StreamedCalls::default(),
                held: None,
                is_over: false,
            };
            // `genai` sends the request when the stream is first read, but our caller must know now whether the server
            // accepted it.
            let first = reading.next().await;
            match first {
                Some(Err(error)) => return Err(error),
                first => reading.held = first,
            }
            Ok(Box::pin(reading) as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async move {
            if let Some(known) = self.context_size.get() {
                return Ok(Some(*known));
            }
            let told = self.told_context().await;
            Ok(told.map(|size| *self.context_size.get_or_init(|| size)))
        })
    }

    fn slots(&self) -> BoxFuture<'_, Option<usize>> {
        Box::pin(async move {
            match self.name.provider() {
                // Processes one request at a time unless it is configured otherwise, which it does not tell.
                Provider::Ollama => Some(1),
                Provider::OpenAi | Provider::OpenAiResponses | Provider::Anthropic
                    if !self.is_providers_own() =>
                {
                    let told = self.props().await?.get("total_slots")?.as_u64()?;
                    usize::try_from(told).ok()
                }
                _ => None,
            }
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.name)
            .field("url", &self.target.endpoint.base_url())
            .finish_non_exhaustive()
    }
}

/// Parses the body of an auxiliary request, if it is JSON and not too long.
async fn json_of(response: reqwest::Response) -> Option<Json> {
    let body = bounded(response, ASIDE_BYTES_MAX).await.ok()?;
    serde_json::from_slice(&body).ok()
}

fn unreachable(model: &ModelName, error: &dyn std::error::Error) -> ModelError {
    ModelError::Unreachable {
        model: model.clone(),
        why: error.to_string(),
    }
}

const CONNECT_MAX: Duration = Duration::from_secs(10);

const ASIDE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Timeout of auxiliary requests, such as the one for the context size.
const ASIDE_MAX: Duration = Duration::from_secs(5);

#[test]
fn an_address_without_a_scheme_is_one_over_http() {
    assert_eq!(
        with_scheme("127.0.0.1:11434".to_owned()),
        "http://127.0.0.1:11434"
    );
    assert_eq!(
        with_scheme("https://x.example/v1".to_owned()),
        "https://x.example/v1"
    );
}
