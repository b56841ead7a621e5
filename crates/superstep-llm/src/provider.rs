//! Models that are asked over the network, through the `genai` crate.
//!
//! What that crate does not do is done here: errors that say whether to try again and after how long, the size of the
//! context, and prices.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{self as wire, ChatStreamEvent};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::{Value as Json, json};

use crate::error::ModelError;
use crate::message::{Answer, Block, Content, FileSource, Message, ToolCall};
use crate::model::{BoxFuture, Model};
use crate::name::{ModelName, Provider};
use crate::price::Prices;
use crate::quiet::{quiet, quietly};
use crate::reply::{Chunk, Finish, Reply, ReplyStream};
use crate::request::{Request, ToolChoice};
use crate::secret::Secret;
use crate::usage::Usage;

/// A model behind an HTTP server.
pub struct Remote {
    name: ModelName,
    client: Client,
    target: ServiceTarget,
    /// For what is asked beside answers.
    http: reqwest::Client,
    key: Option<Secret>,
    prices: Arc<Prices>,
}

/// Where a server is and how to get in.
#[expect(missing_debug_implementations, reason = "it holds a secret")]
#[derive(Clone)]
pub struct Address {
    /// With the version, such as `http://127.0.0.1:8080/v1`.
    pub url: String,
    /// None for a server that asks for none.
    pub key: Option<Secret>,
}

/// How a provider is reached.
struct Way {
    adapter: AdapterKind,
    url: &'static str,
    url_variable: &'static str,
    key_variable: &'static str,
    needs_key: bool,
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
    /// The model of this name, where the environment says it is: `OPENAI_BASE_URL` and `OPENAI_API_KEY` for `openai:…` and
    /// `openai_responses:…`, `ANTHROPIC_…`, `GEMINI_…`, and `OLLAMA_HOST`.
    pub fn from_env(name: &ModelName) -> Result<Self, ModelError> {
        let way = Self::way(name)?;
        let custom = std::env::var(way.url_variable)
            .ok()
            .filter(|url| !url.is_empty());
        let key = Secret::from_env(way.key_variable);
        // Somebody's own server may want no key; the providers' own always do.
        if way.needs_key && custom.is_none() && key.is_none() {
            return Err(ModelError::Unauthorized {
                model: name.clone(),
                status: 0,
                key: way.key_variable,
            });
        }
        let url = custom.unwrap_or_else(|| way.url.to_owned());
        Self::at(name, Address { url, key })
    }

    /// The model of this name at this address.
    pub fn at(name: &ModelName, address: Address) -> Result<Self, ModelError> {
        let way = Self::way(name)?;
        let url = format!("{}/", address.url.trim_end_matches('/'));
        let auth = address.key.as_ref().map_or("none", Secret::expose);
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(url),
            auth: AuthData::from_single(auth),
            model: ModelIden::new(way.adapter, name.name()),
        };
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .build()
            .map_err(|error| unreachable(name, &error))?;
        let client = Client::builder().with_reqwest(http.clone()).build();
        Ok(Self {
            name: name.clone(),
            client: client.map_err(|error| unreachable(name, &error))?,
            target,
            http,
            key: address.key,
            prices: Arc::new(Prices::known()),
        })
    }

    /// With prices of your own.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Arc::new(prices);
        self
    }

    fn way(name: &ModelName) -> Result<Way, ModelError> {
        way(name.provider()).ok_or_else(|| ModelError::BadFile {
            model: name.clone(),
            why: "this is a file, not a server".to_owned(),
        })
    }

    /// What happened, in our words.
    fn error(&self, error: &genai::Error) -> ModelError {
        failure(&self.name, error, self.key.as_ref())
    }

    async fn get(&self, url: &str) -> Option<Json> {
        let mut request = self.http.get(url).timeout(ASIDE_MAX);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose());
        }
        let response = request.send().await.ok()?.error_for_status().ok()?;
        response.json().await.ok()
    }

    /// Servers that tell do so in one of three places, and those that do not are not at fault.
    async fn told_context(&self) -> Option<u64> {
        let base = self
            .target
            .endpoint
            .base_url()
            .trim_end_matches('/')
            .to_owned();
        let root = base.trim_end_matches("/v1");
        if self.name.provider() == Provider::Ollama {
            let url = format!("{root}/api/show");
            let body = json!({ "model": self.name.name() });
            let request = self.http.post(url).timeout(ASIDE_MAX).json(&body);
            let told: Json = request.send().await.ok()?.json().await.ok()?;
            let info = told.get("model_info")?.as_object()?;
            let size = info
                .iter()
                .find(|(key, _)| key.ends_with(".context_length"));
            return size.and_then(|(_, size)| size.as_u64());
        }
        // llama.cpp's server: what one of its slots has, which is less than what the model was trained with.
        if let Some(props) = self.get(&format!("{root}/props")).await {
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
            let target = self.target.clone();
            let begun = quiet(self.client.exec_chat_stream(target, asked, Some(&options)))
                .await
                .map_err(|error| self.error(&error))?;
            let mut reading = Reading {
                stream: begun.stream,
                name: self.name.clone(),
                key: self.key.clone(),
                prices: self.prices.clone(),
                tokens_max: request.tokens_max,
                text: String::new(),
                held: None,
                is_over: false,
            };
            // The request leaves when the stream is first read: whoever asked wants to know now whether it was taken.
            let first = reading.next().await;
            match first {
                Some(Err(error)) => return Err(error),
                first => reading.held = first,
            }
            Ok(Box::pin(reading) as ReplyStream)
        })
    }

    fn context_size(&self) -> BoxFuture<'_, Result<Option<u64>, ModelError>> {
        Box::pin(async move { Ok(self.told_context().await) })
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

/// One answer, as it comes in.
struct Reading {
    stream: wire::ChatStream,
    name: ModelName,
    key: Option<Secret>,
    prices: Arc<Prices>,
    tokens_max: Option<u32>,
    text: String,
    /// Read already.
    held: Option<Result<Chunk, ModelError>>,
    is_over: bool,
}

impl Reading {
    fn chunk(&mut self, event: ChatStreamEvent) -> Option<Chunk> {
        match event {
            ChatStreamEvent::Chunk(chunk) if chunk.content.is_empty() => None,
            ChatStreamEvent::Chunk(chunk) => {
                self.text.push_str(&chunk.content);
                Some(Chunk::Text(chunk.content))
            }
            ChatStreamEvent::ReasoningChunk(chunk) => Some(Chunk::Reasoning(chunk.content)),
            ChatStreamEvent::ToolCallChunk(chunk) => Some(Chunk::ToolCall {
                id: chunk.tool_call.call_id,
                name: chunk.tool_call.fn_name,
            }),
            ChatStreamEvent::End(end) => Some(Chunk::End(Box::new(self.reply(end)))),
            ChatStreamEvent::Start
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => None,
        }
    }

    fn reply(&mut self, end: wire::StreamEnd) -> Reply {
        self.is_over = true;
        let usage = end.captured_usage.as_ref().and_then(usage);
        let calls = end
            .captured_content
            .map(wire::MessageContent::into_tool_calls);
        let tool_calls: Vec<_> = calls.unwrap_or_default().into_iter().map(call).collect();
        let is_full = usage.zip(self.tokens_max);
        let is_full = is_full.is_some_and(|(usage, max)| usage.output_tokens >= u64::from(max));
        let finish = match end.captured_stop_reason {
            // Not every server says so when it calls, and not every one says so when it ran into the limit.
            _ if !tool_calls.is_empty() => Finish::ToolCalls,
            Some(wire::StopReason::Completed(_)) | None if is_full => Finish::Length,
            Some(wire::StopReason::MaxTokens(_)) => Finish::Length,
            Some(wire::StopReason::ContentFilter(_)) => Finish::Filtered,
            Some(wire::StopReason::Other(word)) => Finish::Other(word),
            _ => Finish::Stop,
        };
        Reply {
            answer: Answer {
                content: std::mem::take(&mut self.text).into(),
                tool_calls,
                reasoning: end.captured_reasoning_content,
            },
            usage,
            finish,
            cost: self.prices.cost(&self.name, usage.as_ref()),
            model: self.name.clone(),
        }
    }
}

impl Stream for Reading {
    type Item = Result<Chunk, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(held) = this.held.take() {
            return Poll::Ready(Some(held));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        loop {
            let item = match ready!(quietly(|| Pin::new(&mut this.stream).poll_next(cx))) {
                Some(Ok(event)) => this.chunk(event).map(Ok),
                Some(Err(error)) => {
                    this.is_over = true;
                    Some(Err(failure(&this.name, &error, this.key.as_ref())))
                }
                None => {
                    this.is_over = true;
                    Some(Err(ModelError::Cut))
                }
            };
            if item.is_some() {
                return Poll::Ready(item);
            }
        }
    }
}

impl Remote {
    fn request(&self, request: &Request) -> wire::ChatRequest {
        let messages = request.messages.iter().map(message).collect();
        let mut asked = wire::ChatRequest::new(messages);
        if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
            let tools = request.tools.iter().map(|tool| {
                wire::Tool::new(tool.name.as_str())
                    .with_description(tool.description.clone())
                    .with_schema(tool.schema.clone())
            });
            asked.tools = Some(tools.collect());
        }
        asked
    }

    fn options(&self, request: &Request) -> wire::ChatOptions {
        let mut options = wire::ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true);
        options.temperature = request.temperature;
        options.max_tokens = request.tokens_max;
        options.seed = request.seed;
        if let Some(output) = &request.output {
            let spec = wire::JsonSpec::new(output.name.clone(), output.schema.clone());
            options.response_format = Some(spec.into());
            if self.name.provider() == Provider::OpenAiResponses && !self.is_openais_own() {
                // Servers of others that speak Responses look for the form where chat completions have it.
                let format =
                    json!({ "name": output.name, "strict": true, "schema": output.schema });
                let format = json!({ "type": "json_schema", "json_schema": format });
                options.extra_body = Some(json!({ "response_format": format }));
            }
        }
        if !request.tools.is_empty() && request.tool_choice == ToolChoice::Required {
            options.tool_choice = Some(wire::ToolChoice::Required);
        }
        options
    }

    fn is_openais_own(&self) -> bool {
        self.target
            .endpoint
            .base_url()
            .starts_with("https://api.openai.com/")
    }
}

fn message(message: &Message) -> wire::ChatMessage {
    match message {
        Message::System { content } => wire::ChatMessage::system(parts(content)),
        Message::User { content } => wire::ChatMessage::user(parts(content)),
        Message::Assistant(answer) => {
            let mut said: Vec<wire::ContentPart> = blocks(&answer.content);
            said.extend(answer.tool_calls.iter().map(|call| {
                wire::ContentPart::ToolCall(wire::ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: call.args.clone(),
                    thought_signatures: None,
                })
            }));
            wire::ChatMessage::assistant(wire::MessageContent::from(said))
        }
        Message::Tool(result) => {
            let response =
                wire::ToolResponse::new(result.tool_call_id.clone(), result.content.text());
            wire::ChatMessage::from(response.with_fn_name(result.name.clone()))
        }
    }
}

fn parts(content: &Content) -> wire::MessageContent {
    wire::MessageContent::from(blocks(content))
}

fn blocks(content: &Content) -> Vec<wire::ContentPart> {
    let part = |block: &Block| match block {
        Block::Text { text } => wire::ContentPart::Text(text.clone()),
        Block::File { mime_type, source } => wire::ContentPart::Binary(match source {
            FileSource::Url(url) => wire::Binary::from_url(mime_type.clone(), url.clone(), None),
            FileSource::Base64(bytes) => {
                wire::Binary::from_base64(mime_type.clone(), bytes.as_str(), None)
            }
        }),
    };
    content.0.iter().map(part).collect()
}

fn call(call: wire::ToolCall) -> ToolCall {
    ToolCall {
        id: call.call_id,
        name: call.fn_name,
        args: match call.fn_arguments {
            // Some servers give the arguments as the text of an object, and none as an empty text.
            Json::String(text) if text.trim().is_empty() => Json::Object(serde_json::Map::new()),
            Json::String(text) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
            Json::Null => Json::Object(serde_json::Map::new()),
            args => args,
        },
    }
}

fn usage(told: &wire::Usage) -> Option<Usage> {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let details = told.prompt_tokens_details.as_ref();
    Some(Usage {
        input_tokens: count(told.prompt_tokens)?,
        output_tokens: count(told.completion_tokens).unwrap_or(0),
        cached_tokens: count(details.and_then(|details| details.cached_tokens)).unwrap_or(0),
    })
}

fn failure(model: &ModelName, error: &genai::Error, key: Option<&Secret>) -> ModelError {
    // What failed before the first event is wrapped once more.
    if let genai::Error::WebStream { error, .. } = error
        && let Some(inner) = error.downcast_ref::<genai::Error>()
    {
        return failure(model, inner, key);
    }
    let model = model.clone();
    let why = shown(&told(error), key);
    let retry_after = error.headers().and_then(retry_after);
    let Some(status) = error.status().map(|status| status.as_u16()) else {
        return match error {
            genai::Error::StreamParse { .. }
            | genai::Error::InvalidJsonResponseElement { .. }
            | genai::Error::NoChatResponse { .. }
            | genai::Error::ChatResponseGeneration { .. }
            | genai::Error::SerdeJson(_)
            | genai::Error::JsonValueExt(_) => ModelError::Unreadable { model, why },
            genai::Error::WebStream { .. }
            | genai::Error::WebModelCall { .. }
            | genai::Error::WebAdapterCall { .. } => ModelError::Unreachable { model, why },
            genai::Error::ChatResponse { .. } => ModelError::Unavailable {
                model,
                status: 200,
                why,
                retry_after,
            },
            _ => ModelError::Refused {
                model,
                status: 0,
                why,
            },
        };
    };
    of_status(&model, status, why, retry_after)
}

/// As much of a server's words as an error holds. Cut after the key is out of it: half a key is a secret, too.
pub(crate) fn shown(why: &str, key: Option<&Secret>) -> String {
    let why = key.map_or_else(|| why.to_owned(), |key| key.scrub(why));
    why.chars().take(WHY_CHARS_MAX).collect()
}

/// What a status means.
pub(crate) fn of_status(
    model: &ModelName,
    status: u16,
    why: String,
    retry_after: Option<Duration>,
) -> ModelError {
    let model = model.clone();
    let key = way(model.provider()).map_or("its key", |way| way.key_variable);
    let is_too_long = TOO_LONG
        .iter()
        .any(|word| why.to_lowercase().contains(word));
    match status {
        429 => ModelError::RateLimited { model, retry_after },
        401 | 403 => ModelError::Unauthorized { model, status, key },
        408 | 409 | 500..=599 => ModelError::Unavailable {
            model,
            status,
            why,
            retry_after,
        },
        400 | 413 if is_too_long => ModelError::TooLong { model, why },
        _ => ModelError::Refused { model, status, why },
    }
}

/// The server's own words where it sent some: the rest of the error names the request, which may be long and private.
fn told(error: &genai::Error) -> String {
    let body = match error {
        genai::Error::HttpError { body, .. } => body.clone(),
        genai::Error::WebModelCall { webc_error, .. }
        | genai::Error::WebAdapterCall { webc_error, .. } => match webc_error {
            genai::webc::Error::ResponseFailedStatus { body, .. } => body.clone(),
            other => return other.to_string(),
        },
        genai::Error::WebStream { cause, .. } => return cause.clone(),
        genai::Error::ChatResponse { body, .. } => body.to_string(),
        genai::Error::ChatResponseGeneration { cause, .. } => return cause.clone(),
        other => return other.to_string(),
    };
    let json: Option<Json> = serde_json::from_str(&body).ok();
    let said = json.as_ref().and_then(|json| {
        let said = json.pointer("/error/message").or_else(|| json.get("error"));
        said.or_else(|| json.get("message")).and_then(Json::as_str)
    });
    said.map_or(body.clone(), str::to_owned)
}

/// In seconds, or in milliseconds where the provider has a header of its own. Dates are not read: the servers we know give
/// seconds.
fn retry_after(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = match number("retry-after-ms") {
        Some(ms) => ms / 1_000.0,
        None => number("retry-after")?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

fn unreachable(model: &ModelName, error: &dyn std::error::Error) -> ModelError {
    ModelError::Unreachable {
        model: model.clone(),
        why: error.to_string(),
    }
}

/// How providers say that a conversation does not fit.
const TOO_LONG: [&str; 5] = [
    "context length",
    "context size",
    "context window",
    "too long",
    "exceeds the available context",
];

const CONNECT_MAX: Duration = Duration::from_secs(10);

/// For questions beside the answer, such as the size of the context.
const ASIDE_MAX: Duration = Duration::from_secs(5);

/// How much of a server's words an error holds.
const WHY_CHARS_MAX: usize = 500;
