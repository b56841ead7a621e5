//! HTTP client for MCP servers that bounds how much of an answer it keeps in memory.
//!
//! The client of `rmcp` limits one event of an event stream, but reads a plain JSON answer, or the body of an error, to its
//! end: a server that never ends it exhausts the memory. So this client posts messages itself, and leaves only the rest
//! (listening to the server, ending a session) to `rmcp`'s client.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, redirect};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// Posts messages, and reads a limited number of bytes of each answer.
#[derive(Debug, Clone)]
pub(super) struct BoundedClient {
    http: Client,
    answer_bytes_max: usize,
    /// Whether an answer was cut off. `rmcp` passes on the text of an error, but not always the error itself.
    has_cut: Arc<AtomicBool>,
}

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl BoundedClient {
    pub(super) fn new(answer_bytes_max: usize) -> reqwest::Result<Self> {
        let http = Client::builder()
            // An answer that is not read to its end leaves a connection that cannot be reused.
            .pool_max_idle_per_host(0)
            .redirect(redirect::Policy::custom(follow))
            .build()?;
        Ok(Self {
            http,
            answer_bytes_max,
            has_cut: Arc::default(),
        })
    }

    /// Returns whether an answer exceeded the limit.
    pub(super) fn has_cut(&self) -> bool {
        self.has_cut.load(Ordering::Relaxed)
    }

    async fn answer(
        &self,
        response: Response,
        is_request: bool,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let kind = response.headers().get(CONTENT_TYPE).cloned();
        let is = |mime: &str| {
            let kind = kind.as_ref().map(HeaderValue::as_bytes).unwrap_or_default();
            kind.starts_with(mime.as_bytes())
        };
        if !response.status().is_success() {
            return self.refusal(response, is(JSON), session, in_session).await;
        }
        if is(EVENTS) {
            let events = self.events(response);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = self.whole(response).await?;
        if is(JSON)
            && let Ok(message) = serde_json::from_slice(&body)
        {
            return Ok(StreamableHttpPostResponse::Json(message, session));
        }
        // Only a request has an answer that the caller waits for.
        match (is_request, is(JSON)) {
            (false, true) => Ok(StreamableHttpPostResponse::Accepted),
            (false, false) if body.is_empty() => Ok(StreamableHttpPostResponse::Accepted),
            (true, true) => Err(StreamableHttpError::UnexpectedServerResponse(
                "the answer is not a JSON-RPC message".into(),
            )),
            (_, false) => Err(StreamableHttpError::UnexpectedContentType(
                kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned()),
            )),
        }
    }

    /// Converts an error status. The body may contain an error of the protocol, which says more.
    async fn refusal(
        &self,
        response: Response,
        is_json: bool,
        session: Option<String>,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let body = beginning(response, REFUSAL_BYTES_MAX).await;
        // For authorization errors the status decides, whatever the body says.
        let is_forbidden = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        if is_json
            && !is_forbidden
            && let Ok(JsonRpcMessage::Error(error)) =
                serde_json::from_slice::<ServerJsonRpcMessage>(&body)
        {
            // What servers built on the protocol's own SDK say of a session they do not know. The specification says 404. With an
            // id it would be the answer of the method, which may have acted.
            if status == StatusCode::BAD_REQUEST
                && in_session
                && error.id.is_none()
                && error.error.code.0 == -32_000
            {
                return Err(StreamableHttpError::SessionExpired);
            }
            // Without an id it belongs to no request, and the caller would wait for another answer.
            if error.id.is_some() {
                let message = JsonRpcMessage::Error(error);
                return Ok(StreamableHttpPostResponse::Json(message, session));
            }
        }
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
        }
        let said = String::from_utf8_lossy(&body);
        let said: String = said.chars().take(SHOWN_CHARS_MAX).collect();
        Err(StreamableHttpError::UnexpectedServerResponse(
            format!("HTTP {status}: {said}").into(),
        ))
    }

    async fn whole(&self, mut response: Response) -> Result<Bytes, HttpError> {
        // Fail early if the announced length is already too large.
        let announced = response.content_length().unwrap_or(0);
        if announced > self.answer_bytes_max as u64 {
            return Err(self.cut().into());
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > self.answer_bytes_max {
                return Err(self.cut().into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// Returns the events of a response. An event that is too large ends the stream.
    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let state = Some((self.clone(), response, EventMeter::default()));
        let chunks = stream::unfold(state, async |state| {
            let (client, mut response, mut meter) = state?;
            let chunk = match response.chunk().await {
                Ok(chunk) => chunk?,
                Err(error) => return Some((Err(io::Error::other(error)), None)),
            };
            match meter.largest(&chunk) > client.answer_bytes_max {
                true => Some((Err(client.cut()), None)),
                false => Some((Ok(chunk), Some((client, response, meter)))),
            }
        });
        SseStream::from_bytes_stream(Box::pin(chunks)).boxed()
    }

    fn cut(&self) -> io::Error {
        self.has_cut.store(true, Ordering::Relaxed);
        io::Error::other(too_large(self.answer_bytes_max))
    }
}

/// Error text for an answer that is too large.
pub(super) fn too_large(bytes_max: usize) -> String {
    format!(
        "the answer has more than {bytes_max} bytes; ask for less at a time, or raise `ServerLimits::answer_bytes_max`"
    )
}

/// Size of the current event of a stream, counted from the empty line before it.
#[derive(Debug, Default)]
struct EventMeter {
    event: usize,
    line: usize,
}

impl EventMeter {
    /// Returns the size of the largest event that ends in this chunk or reaches into it.
    fn largest(&mut self, chunk: &[u8]) -> usize {
        let mut largest = 0;
        for byte in chunk {
            self.event += 1;
            largest = largest.max(self.event);
            match byte {
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
        }
        largest
    }
}

/// Reads the beginning of a body, until an error or the limit.
async fn beginning(mut response: Response, bytes_max: usize) -> BytesMut {
    let mut body = BytesMut::new();
    while body.len() < bytes_max
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(bytes_max - body.len())]);
    }
    body
}

/// Follows a redirect only if it repeats the same request to the same origin: the message and the token are for that server
/// only.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_body = [
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ]
    .contains(&attempt.status());
    let first = attempt.previous().first();
    let is_same = first.is_some_and(|first| first.origin() == attempt.url().origin());
    match keeps_body && is_same {
        true if attempt.previous().len() > REDIRECTS_MAX => attempt.error("too many redirects"),
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = self
            .http
            .post(&*uri)
            .headers(headers.into_iter().collect())
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .json(&message);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        let response = request.send().await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            StatusCode::NOT_FOUND if session.is_some() => Err(StreamableHttpError::SessionExpired),
            _ => {
                let is_request = matches!(message, JsonRpcMessage::Request(_));
                self.answer(response, is_request, session.is_some()).await
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.http.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let max = self.answer_bytes_max;
        self.http
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, max)
            .await
    }
}

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// How much of the body of an error is read.
const REFUSAL_BYTES_MAX: usize = 256 * 1024;
/// How much of the body of an error is shown.
const SHOWN_CHARS_MAX: usize = 500;
const REDIRECTS_MAX: usize = 10;

#[test]
fn an_event_is_as_large_as_all_its_lines() {
    let mut meter = EventMeter::default();
    assert_eq!(meter.largest(b"data: 1\n\n"), 9);
    assert_eq!(meter.largest(b"data: 12\r\n\r"), 11);
    // The event ends with the first of these bytes.
    assert_eq!(meter.largest(b"\nid: 1\n"), 12);
    assert_eq!(meter.largest(b"data: 123"), 15);
}
