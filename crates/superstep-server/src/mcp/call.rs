//! A call of a tool: a run on a thread of its own.
//!
//! A task of the server follows the run, not the request of the client: a client that goes away cancels nothing, as the protocol
//! wants it, and the thread is deleted when the run has ended. A thread whose run waits for answers stays.

use std::io;

use axum::Json as JsonBody;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::registry::Assistant;
use tokio::sync::{mpsc, watch};

use crate::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::follow::{SseSource, stream, write_data};
use crate::json_rpc::{RpcError, RpcId, RpcRequest};
use crate::mcp::call_runner::CallRunner;
use crate::mcp::elicitation::FormFields;
use crate::mcp::session::{CallEntry, McpSession};
use crate::mcp::{McpConnection, tools};
use crate::stream::sse;

/// A call, as a client sent it.
pub(super) struct ToolCall {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) session: Option<McpSession>,
    pub(super) id: RpcId,
    pub(super) assistant: Assistant,
    pub(super) arguments: Json,
    /// What the client knows the progress of the call by.
    pub(super) progress_token: Option<Json>,
    /// What the fields of forms can be for this client.
    pub(super) form_fields: FormFields,
    /// Whether the client reads a stream of events.
    reads_streams: bool,
}

/// What a call sends to its client.
#[derive(Debug)]
pub(super) enum CallOutput {
    /// A notification, or a request of the server.
    Message(Json),
    /// The reply, which is the last message.
    Reply(Json),
    /// The client cancelled the call, and expects no reply.
    Cancelled,
}

impl ToolCall {
    pub(super) async fn read(
        connection: &McpConnection,
        request: &RpcRequest,
    ) -> Result<Self, RpcError> {
        let params = &request.params;
        let name = params.get("name").and_then(Json::as_str);
        let name = name.ok_or_else(|| RpcError::invalid_params("`tools/call` needs a `name`"))?;
        let arguments = match params.get("arguments") {
            None | Some(Json::Null) => json!({}),
            Some(arguments @ Json::Object(_)) => arguments.clone(),
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        };
        let token = params.pointer("/_meta/progressToken");
        let is_token = |token: &&Json| token.is_string() || token.is_number();
        let (app, caller) = (&connection.app, &connection.caller);
        let assistant = tools::find(app, caller, name).await?.ok_or_else(|| {
            RpcError::invalid_params(format!(
                "unknown tool `{}`",
                superstep::__private::shorten(name)
            ))
        })?;
        Ok(Self {
            app: app.clone(),
            caller: caller.clone(),
            session: connection.session.clone(),
            id: request.id.clone(),
            assistant,
            arguments,
            progress_token: token.filter(is_token).cloned(),
            form_fields: connection.form_fields,
            reads_streams: connection.reads_streams,
        })
    }

    pub(super) fn reports_progress(&self) -> bool {
        self.progress_token.is_some()
    }

    /// Whether interrupts are shown to the user of the client.
    pub(super) fn asks(&self) -> bool {
        self.reads_streams && self.session.as_ref().is_some_and(McpSession::elicits)
    }

    /// Runs the call, and returns a stream that ends with the reply.
    pub(super) fn stream(self) -> Response {
        stream(CallStream(self.start()))
    }

    /// Runs the call, and returns the reply.
    pub(super) async fn wait(self) -> Result<Response, RpcError> {
        let mut outputs = self.start();
        loop {
            match outputs.recv().await {
                Some(CallOutput::Message(_)) => {}
                Some(CallOutput::Reply(reply)) => return Ok(JsonBody(reply).into_response()),
                Some(CallOutput::Cancelled) => {
                    return Err(RpcError::new(REQUEST_CANCELLED, "the call was cancelled"));
                }
                None => return Err(shutting_down().into()),
            }
        }
    }

    fn start(self) -> mpsc::Receiver<CallOutput> {
        let (out, outputs) = mpsc::channel(OUTPUTS_MAX);
        let app = self.app.clone();
        let cancel = self.session.as_ref().map(|session| {
            let (entry, cancelled) = app.mcp.begin(&self.caller, session, &self.id);
            CancelSignal {
                app: app.clone(),
                entry,
                cancelled,
            }
        });
        let runner = CallRunner::new(self, out, cancel);
        app.background.run(runner.run());
        outputs
    }
}

fn shutting_down() -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the server shuts down; call again",
    )
}

/// The messages of a call as server-sent events.
struct CallStream(mpsc::Receiver<CallOutput>);

impl SseSource for CallStream {
    async fn write_next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        match self.0.recv().await {
            Some(CallOutput::Message(message)) => {
                write_data(out, &message);
                Ok(true)
            }
            Some(CallOutput::Reply(reply)) => {
                write_data(out, &reply);
                Ok(false)
            }
            Some(CallOutput::Cancelled) => Ok(false),
            None => Err(sse::broken()),
        }
    }
}

/// Becomes ready when the client cancels the call.
pub(super) struct CancelSignal {
    app: App,
    entry: CallEntry,
    cancelled: watch::Receiver<bool>,
}

impl Drop for CancelSignal {
    fn drop(&mut self) {
        self.app.mcp.end(&self.entry, &self.cancelled);
    }
}

/// Waits until the client cancels the call.
pub(super) async fn cancelled(signal: &mut Option<CancelSignal>) {
    let is_cancelled = match signal {
        Some(signal) => signal.cancelled.wait_for(|is| *is).await.is_ok(),
        None => false,
    };
    if !is_cancelled {
        // A client that cannot be recognised, or that has used the id for another call, cannot cancel this one.
        std::future::pending().await
    }
}

/// The code of the Language Server Protocol for it; MCP has none.
const REQUEST_CANCELLED: i64 = -32_800;
/// Number of messages that wait for a client that reads slowly.
const OUTPUTS_MAX: usize = 64;
