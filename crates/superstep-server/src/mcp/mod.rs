//! The Model Context Protocol at `/mcp`: each assistant is a tool, and a call is a run on a thread of its own.
//!
//! The transport is Streamable HTTP, without state between requests: what a client declared when it connected is in the id of its
//! session, so any server can serve its next request. Only a call that asks its client for input belongs to the process that runs
//! it. If that process ends, the run still waits, and its thread can be answered like any other.

mod call;
mod call_runner;
mod elicitation;
mod session;
mod tools;

pub(crate) use session::OpenCalls;

use axum::Json as JsonBody;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::header::{ACCEPT, ALLOW};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value as Json, json};

use crate::App;
use crate::caller::{Caller, header_text};
use crate::error::ApiError;
use crate::json_rpc::{self, RpcError, RpcMessage, RpcRequest, success};
use crate::mcp::call::ToolCall;
use crate::mcp::elicitation::FormFields;
use crate::mcp::session::{ElicitationReply, McpSession};
use crate::permission::Permission;

/// Versions of the protocol that the server speaks, newest first.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const VERSION_HEADER: &str = "mcp-protocol-version";
const SESSION_HEADER: &str = "mcp-session-id";

/// Returns the routes of the protocol.
pub(crate) fn routes() -> Router<App> {
    let methods = || post(receive).get(not_allowed).delete(not_allowed);
    Router::new()
        .route("/mcp", methods())
        // The name in the document of LangGraph's server.
        .route("/mcp/", methods())
}

/// There is no stream besides those of calls, and no session to end.
async fn not_allowed() -> Response {
    let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    ([(ALLOW, "POST")], error).into_response()
}

async fn receive(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let connection = match McpConnection::read(app, caller, &headers) {
        Ok(connection) => connection,
        Err(error) => return error.respond(None),
    };
    match json_rpc::read(&body) {
        Ok(RpcMessage::Request(request)) => match connection.request(&request).await {
            Ok(response) => response,
            Err(error) => error.respond(Some(&request.id)),
        },
        Ok(RpcMessage::Notification { method, params }) => {
            connection.notified(&method, &params);
            StatusCode::ACCEPTED.into_response()
        }
        Ok(RpcMessage::Response { id, outcome }) => {
            let reply = outcome.map_or(ElicitationReply::Failed, ElicitationReply::Result);
            match connection.answered(id.as_str().unwrap_or_default(), reply) {
                Ok(()) => StatusCode::ACCEPTED.into_response(),
                Err(error) => error.respond(None),
            }
        }
        Err(refused) => refused.error.respond(refused.id.as_ref()),
    }
}

/// Who sends a message, and what the client can do.
struct McpConnection {
    app: App,
    caller: Caller,
    session: Option<McpSession>,
    /// Whether the client reads a stream of events.
    reads_streams: bool,
    /// What the fields of forms can be for this client.
    form_fields: FormFields,
}

impl McpConnection {
    fn read(app: App, caller: Caller, headers: &HeaderMap) -> Result<Self, RpcError> {
        let version = text(headers, VERSION_HEADER)?;
        if let Some(version) = &version
            && !VERSIONS.contains(&version.as_str())
        {
            return Err(bad_request(format!(
                "the protocol version `{}` is not supported; use one of {}",
                superstep::__private::shorten(version),
                VERSIONS.join(", ")
            )));
        }
        let accepted = AcceptedTypes::read(headers);
        if !accepted.json && !accepted.streams {
            return Err(
                bad_request("accept `application/json` and `text/event-stream`")
                    .with_status(StatusCode::NOT_ACCEPTABLE),
            );
        }
        let session = match text(headers, SESSION_HEADER)? {
            Some(id) => Some(McpSession::parse(&id).ok_or_else(|| {
                // The status after which a client connects again.
                bad_request("there is no such session").with_status(StatusCode::NOT_FOUND)
            })?),
            None => None,
        };
        Ok(Self {
            app,
            caller,
            session,
            reads_streams: accepted.streams,
            form_fields: FormFields::of_version(version.as_deref()),
        })
    }

    async fn request(&self, request: &RpcRequest) -> Result<Response, RpcError> {
        let result = match request.method.as_str() {
            "initialize" => return initialize(request),
            "ping" => json!({}),
            "tools/list" => {
                self.caller.require(Permission::Read)?;
                tools::list(&self.app, &self.caller, &request.params).await?
            }
            "tools/call" => {
                self.caller.require(Permission::Run)?;
                return self.call(request).await;
            }
            unknown => return Err(RpcError::unknown_method(unknown)),
        };
        Ok(JsonBody(success(&request.id, result)).into_response())
    }

    async fn call(&self, request: &RpcRequest) -> Result<Response, RpcError> {
        let call = ToolCall::read(self, request).await?;
        let has_more_to_say = call.reports_progress() || call.asks();
        match self.reads_streams && has_more_to_say {
            true => Ok(call.stream()),
            false => call.wait().await,
        }
    }

    fn notified(&self, method: &str, params: &Json) {
        // The others say nothing that the server acts on.
        if method == "notifications/cancelled"
            && let Some(session) = &self.session
            && let Some(id) = json_rpc::RpcId::of_param(params.get("requestId"))
        {
            self.app.mcp.cancel(&self.caller, session, &id);
        }
    }

    fn answered(&self, id: &str, reply: ElicitationReply) -> Result<(), RpcError> {
        self.caller.require(Permission::Answer)?;
        let session = self.session.as_ref();
        let is_taken = session.is_some_and(|session| {
            let calls = &self.app.mcp;
            calls.answer(id, &self.caller, session, reply)
        });
        match is_taken {
            true => Ok(()),
            false => Err(
                bad_request("no request with this id waits for a response here")
                    .with_status(StatusCode::NOT_FOUND),
            ),
        }
    }
}

fn text(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, RpcError> {
    header_text(headers, name).map_err(|error| bad_request(error.detail))
}

fn bad_request(message: impl Into<String>) -> RpcError {
    RpcError::new(json_rpc::INVALID_REQUEST, message).with_status(StatusCode::BAD_REQUEST)
}

fn initialize(request: &RpcRequest) -> Result<Response, RpcError> {
    let wanted = request.params.get("protocolVersion").and_then(Json::as_str);
    let wanted = wanted.ok_or_else(|| {
        RpcError::invalid_params("`initialize` needs `protocolVersion`, which is a text")
    })?;
    let version = VERSIONS.iter().find(|version| **version == wanted);
    let result = json!({
        "protocolVersion": version.unwrap_or(&VERSIONS[0]),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "superstep", "title": "Superstep", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Every tool is an assistant. A call runs it on a thread of its own and returns its final state. \
            If the run needs a person's answer, it waits, and the result names its thread.",
    });
    let session = McpSession::of(request.params.get("capabilities").unwrap_or(&Json::Null));
    let mut response = JsonBody(success(&request.id, result)).into_response();
    if let Ok(id) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    Ok(response)
}

/// What a client says that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AcceptedTypes {
    json: bool,
    streams: bool,
}

impl AcceptedTypes {
    fn read(headers: &HeaderMap) -> Self {
        let mut accepted = Self {
            json: !headers.contains_key(ACCEPT),
            streams: false,
        };
        for value in headers.get_all(ACCEPT) {
            let types = value.to_str().unwrap_or_default().split(',');
            for name in types.map(|part| part.split(';').next().unwrap_or_default().trim()) {
                match name {
                    "application/json" | "application/*" | "*/*" => accepted.json = true,
                    "text/event-stream" => accepted.streams = true,
                    _ => {}
                }
            }
        }
        accepted
    }
}
