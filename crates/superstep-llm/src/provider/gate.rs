//! The gate between the `genai` crate and a server, which bounds what the server may send.
//!
//! `genai` assembles an event in memory until the event ends, and reads the body of an error to its end: a server that never
//! ends either one exhausts the memory. Neither `genai` nor the HTTP client it is given has a setting for a limit. So `genai`
//! gets the address of a gate instead of the server's: a listener on the loopback interface that exists for one call, accepts
//! only requests with its unguessable path, makes the call itself, and forwards whole events within the
//! [limits](ReplyLimits). `genai` never sees the key: it gets a placeholder, which the gate replaces.
//!
//! The gate knows why a call failed; `genai` only sees a broken connection. See [`Gate::verdict`].

use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use serde_json::Value as Json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::failure::shown;
use crate::error::ModelError;
use crate::lock::lock;
use crate::name::{ModelName, Provider};
use crate::quiet::quiet;
use crate::secret::Secret;

/// Limits on what a server may send for one reply. Beyond them the stream ends with [`ModelError::ReplyTooLarge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Maximum size of text, reasoning and tool arguments together, in bytes. Default: 8 MiB.
    pub content_bytes_max: usize,
    /// Maximum size of one event or line of the stream, in bytes. Default: 4 MiB.
    pub event_bytes_max: usize,
    /// Maximum size of the whole response, in bytes; each token is an event of some hundred bytes. Default: 256 MiB.
    pub response_bytes_max: u64,
    /// Maximum time from the request to the end of the reply. Long, because a slow local server may write a token every few
    /// seconds; [`Patience`](crate::Patience) limits silence. Default: 6 hours.
    pub time_max: Duration,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self {
            content_bytes_max: 8 * 1024 * 1024,
            event_bytes_max: 4 * 1024 * 1024,
            response_bytes_max: 256 * 1024 * 1024,
            time_max: Duration::from_secs(6 * 60 * 60),
        }
    }
}

/// The gate of one call. Dropping it closes the gate and cancels the call.
pub(super) struct Gate {
    /// Address to give to `genai` instead of the server's.
    pub(super) url: String,
    /// Key to give to `genai` instead of the server's.
    pub(super) placeholder: String,
    verdict: Verdict,
    _relay: JoinSet<()>,
}

type Verdict = Arc<Mutex<Option<ModelError>>>;
type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What a gate forwards, and to which server.
pub(super) struct Passage {
    pub(super) model: ModelName,
    pub(super) base: Url,
    pub(super) http: reqwest::Client,
    pub(super) key: Option<Secret>,
    pub(super) limits: ReplyLimits,
}

struct Relay {
    passage: Passage,
    path: String,
    placeholder: String,
    began: Instant,
    verdict: Verdict,
}

impl Gate {
    pub(super) async fn open(passage: Passage) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let path = format!("/{}", unguessable());
        let url = format!(
            "http://{}{path}{}",
            listener.local_addr()?,
            passage.base.path()
        );
        let placeholder = match passage.key {
            Some(_) => unguessable(),
            None => NO_KEY.to_owned(),
        };
        let verdict = Verdict::default();
        let relay = Arc::new(Relay {
            passage,
            path,
            placeholder: placeholder.clone(),
            began: Instant::now(),
            verdict: verdict.clone(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(quiet(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(quiet(serve(relay.clone(), stream)));
            }
        }));
        Ok(Self {
            url,
            placeholder,
            verdict,
            _relay: tasks,
        })
    }

    /// Returns why the call failed, if the gate is the reason. Returns it once.
    pub(super) fn verdict(&self) -> Option<ModelError> {
        lock(&self.verdict).take()
    }
}

async fn serve(relay: Arc<Relay>, stream: TcpStream) {
    let answer = service_fn(|request| {
        let relay = relay.clone();
        async move { Ok::<_, Infallible>(relay.answer(request).await) }
    });
    // The client is in this process, and learns from the verdict why a connection broke.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

impl Relay {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let rest = parts.uri.path().strip_prefix(&self.path);
        let Some(rest) = rest.filter(|rest| rest.starts_with('/')) else {
            return plain(StatusCode::NOT_FOUND);
        };
        let mut url = self.passage.base.clone();
        url.set_path(rest);
        url.set_query(parts.uri.query());
        let Ok(body) = body.collect().await else {
            return plain(StatusCode::BAD_REQUEST);
        };
        let call = self
            .passage
            .http
            .request(parts.method, url)
            .headers(self.with_key(&parts.headers))
            .body(body.to_bytes())
            .send();
        match timeout_at(self.deadline(), call).await {
            Ok(Ok(response)) => self.pass_on(response).await,
            Ok(Err(error)) => {
                let why = shown(&chain(&error.without_url()), self.passage.key.as_ref());
                self.judge(ModelError::Unreachable {
                    model: self.passage.model.clone(),
                    why,
                });
                plain(StatusCode::BAD_GATEWAY)
            }
            Err(_) => {
                self.judge(self.too_slow());
                plain(StatusCode::GATEWAY_TIMEOUT)
            }
        }
    }

    /// Copies the headers of a request, with the key in place of the placeholder.
    fn with_key(&self, headers: &HeaderMap) -> HeaderMap {
        let mut passed = HeaderMap::new();
        for (name, value) in headers {
            if OF_THIS_HOP.contains(name) {
                continue;
            }
            passed.append(name, self.replaced(value));
        }
        passed
    }

    fn replaced(&self, value: &HeaderValue) -> HeaderValue {
        let Some(key) = &self.passage.key else {
            return value.clone();
        };
        let replaced = value
            .to_str()
            .ok()
            .filter(|text| text.contains(&self.placeholder))
            .map(|text| text.replace(&self.placeholder, key.expose()));
        let replaced = replaced.and_then(|text| HeaderValue::from_str(&text).ok());
        replaced.map_or_else(
            || value.clone(),
            |mut replaced| {
                replaced.set_sensitive(true);
                replaced
            },
        )
    }

    async fn pass_on(self: Arc<Self>, response: reqwest::Response) -> Response<Body> {
        let mut passed = Response::builder().status(response.status());
        if let Some(headers) = passed.headers_mut() {
            for (name, value) in response.headers() {
                if !OF_THIS_HOP.contains(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        let body = match response.status().is_success() {
            true => {
                let events = Events::new(self, response);
                let frames = stream::unfold(Some(events), Events::next);
                StreamBody::new(frames).boxed_unsync()
            }
            // Error texts beyond this limit are of no use.
            false => {
                let body = bounded(response, ERROR_BYTES_MAX).await.unwrap_or_default();
                whole(body)
            }
        };
        passed
            .body(body)
            .unwrap_or_else(|_| plain(StatusCode::BAD_GATEWAY))
    }

    fn deadline(&self) -> Instant {
        self.began + self.passage.limits.time_max
    }

    fn too_slow(&self) -> ModelError {
        self.too_large(format!("{} s", self.passage.limits.time_max.as_secs_f32()))
    }

    fn too_large(&self, limit: String) -> ModelError {
        ModelError::ReplyTooLarge {
            model: self.passage.model.clone(),
            limit,
        }
    }

    /// Sets the verdict. The first one wins.
    fn judge(&self, error: ModelError) {
        lock(&self.verdict).get_or_insert(error);
    }
}

/// The events of a response, whole and within the limits.
struct Events {
    relay: Arc<Relay>,
    response: reqwest::Response,
    buffer: BytesMut,
    received: u64,
    /// How much of the buffer was searched for the end of an event, and the length of the line where the search stopped.
    searched: usize,
    line: usize,
}

impl Events {
    fn new(relay: Arc<Relay>, response: reqwest::Response) -> Self {
        Self {
            relay,
            response,
            buffer: BytesMut::new(),
            received: 0,
            searched: 0,
            line: 0,
        }
    }

    /// Returns the next event as a frame of the response body.
    async fn next(events: Option<Self>) -> Option<(io::Result<Frame<Bytes>>, Option<Self>)> {
        let mut events = events?;
        match events.event().await {
            Ok(Some(event)) => Some((Ok(Frame::data(event)), Some(events))),
            Ok(None) => None,
            Err(None) => Some((Err(io::Error::other("the server broke off")), None)),
            Err(Some(error)) => {
                events.relay.judge(error);
                Some((Err(io::Error::other("not passed on")), None))
            }
        }
    }

    /// Reads the next event. `Err(None)` is a connection error, without a verdict.
    async fn event(&mut self) -> Result<Option<Bytes>, Option<ModelError>> {
        let limits = self.relay.passage.limits.clone();
        loop {
            if let Some(end) = self.find_end() {
                let event = self.buffer.split_to(end).freeze();
                (self.searched, self.line) = (0, 0);
                self.check(&event)?;
                return Ok(Some(event));
            }
            if self.buffer.len() > limits.event_bytes_max {
                let limit = format!("{} bytes in one event", limits.event_bytes_max);
                return Err(Some(self.relay.too_large(limit)));
            }
            let chunk = timeout_at(self.relay.deadline(), self.response.chunk()).await;
            let Ok(chunk) = chunk else {
                return Err(Some(self.relay.too_slow()));
            };
            let Some(chunk) = chunk.map_err(|_| None)? else {
                let rest = self.buffer.split().freeze();
                self.check(&rest)?;
                return Ok((!rest.is_empty()).then_some(rest));
            };
            self.received += chunk.len() as u64;
            if self.received > limits.response_bytes_max {
                let limit = format!("{} bytes in all", limits.response_bytes_max);
                return Err(Some(self.relay.too_large(limit)));
            }
            self.buffer.extend_from_slice(&chunk);
        }
    }

    /// Finds the end of the first event in the buffer: after an empty line, or after any line if each line is an event.
    fn find_end(&mut self) -> Option<usize> {
        let is_lines = self.relay.passage.model.provider() == Provider::Ollama;
        for at in self.searched..self.buffer.len() {
            match self.buffer[at] {
                b'\n' if is_lines || self.line == 0 => return Some(at + 1),
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
        }
        self.searched = self.buffer.len();
        None
    }

    /// `genai` allocates room for as many calls as the highest index says, so an event of 100 bytes could exhaust the memory.
    fn check(&self, event: &[u8]) -> Result<(), Option<ModelError>> {
        let has_calls = event.windows(CALLS.len()).any(|part| part == CALLS);
        if !has_calls || self.relay.passage.model.provider() != Provider::OpenAi {
            return Ok(());
        }
        let lines = event.split(|byte| *byte == b'\n');
        for line in lines.filter_map(|line| line.strip_prefix(b"data:")) {
            let Ok(json) = serde_json::from_slice::<Json>(line) else {
                continue;
            };
            let highest = json
                .pointer("/choices")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .filter_map(|choice| choice.pointer("/delta/tool_calls")?.as_array())
                .flatten()
                .filter_map(|call| call.get("index")?.as_u64())
                .max();
            if highest.is_some_and(|highest| highest >= CALLS_MAX) {
                let limit = format!("{CALLS_MAX} tool calls");
                return Err(Some(self.relay.too_large(limit)));
            }
        }
        Ok(())
    }
}

/// Reads a body up to a limit. Truncates it if it is longer.
pub(crate) async fn bounded(
    mut response: reqwest::Response,
    bytes_max: usize,
) -> reqwest::Result<Bytes> {
    let mut body = BytesMut::new();
    while body.len() < bytes_max
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk[..chunk.len().min(bytes_max - body.len())]);
    }
    Ok(body.freeze())
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn whole(body: Bytes) -> Body {
    Full::new(body)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns 128 bits of the operating system's randomness, by way of the keys of two hashers.
fn unguessable() -> String {
    let word = |n: u8| RandomState::new().hash_one(n);
    format!("{:016x}{:016x}", word(0), word(1))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// Sent as the key if there is none.
const NO_KEY: &str = "none";
/// How much of the body of an error is read.
const ERROR_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of tool calls in a reply.
const CALLS_MAX: u64 = 1_024;
const CALLS: &[u8] = b"\"tool_calls\"";

/// Headers that describe a single connection. The forwarded body is neither compressed nor of a known length.
const OF_THIS_HOP: [HeaderName; 7] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::TE,
];
