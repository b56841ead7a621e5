//! A2A, the protocol between agents: a card for each assistant, and its tasks over JSON-RPC at `/a2a/{assistant_id}`.
//!
//! A context is a thread. A task is a run, together with the runs that answer its interrupts. Versions 0.3 and 1.0 of the protocol
//! are spoken side by side: they have other names for the same methods, so the method decides.

mod card;
mod dialect;
mod message;
mod task;
mod task_list;
mod task_stream;

use axum::Json as JsonBody;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use serde_json::Value as Json;

use crate::a2a::dialect::ProtocolDialect;
use crate::a2a::message::SentMessage;
use crate::a2a::task::{AgentTasks, TaskName};
use crate::a2a::task_stream::TaskStream;
use crate::caller::{Caller, header_text};
use crate::follow::stream;
use crate::json_rpc::{self, RpcError, RpcMessage, RpcRequest, success};
use crate::permission::Permission;
use crate::start::Awaits;
use crate::{App, assistant};

/// Codes of the protocol's own errors.
const TASK_NOT_FOUND: i64 = -32_001;
const TASK_NOT_CANCELABLE: i64 = -32_002;
const NO_PUSH_NOTIFICATIONS: i64 = -32_003;
const UNSUPPORTED_OPERATION: i64 = -32_004;
const CONTENT_TYPE_NOT_SUPPORTED: i64 = -32_005;
const NO_EXTENDED_CARD: i64 = -32_007;
const VERSION_NOT_SUPPORTED: i64 = -32_009;

/// Returns the routes of the protocol.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/.well-known/agent-card.json", get(card::read))
        .route("/a2a/{assistant_id}", post(receive))
}

async fn receive(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request = match json_rpc::read(&body) {
        Ok(RpcMessage::Request(request)) => request,
        Ok(RpcMessage::Notification { .. } | RpcMessage::Response { .. }) => {
            let error = RpcError::new(json_rpc::INVALID_REQUEST, "send a request with an `id`");
            return error.respond(None);
        }
        // Clients of this protocol read the error from a response that succeeded.
        Err(refused) => {
            let error = refused.error.with_status(StatusCode::OK);
            return error.respond(refused.id.as_ref());
        }
    };
    match execute(app, caller, &name, &headers, &request).await {
        Ok(response) => response,
        Err(error) => error.respond(Some(&request.id)),
    }
}

async fn execute(
    app: App,
    caller: Caller,
    name: &str,
    headers: &HeaderMap,
    request: &RpcRequest,
) -> Result<Response, RpcError> {
    check_version(headers)?;
    let dialect = ProtocolDialect::of_method(&request.method);
    let operation = A2aOperation::of_method(&request.method)?;
    match operation {
        // Whether it takes the permission to run or to answer shows when the thread is known.
        A2aOperation::Send | A2aOperation::Stream => {}
        A2aOperation::Cancel => caller.require(Permission::Run)?,
        A2aOperation::Get | A2aOperation::List | A2aOperation::Subscribe => {
            caller.require(Permission::Read)?;
        }
    }
    let assistant = assistant::get(&app, &caller, name).await?;
    let graph = assistant::graph_of(&app, &assistant)?;
    let tasks = AgentTasks {
        app,
        caller,
        assistant,
        graph,
        dialect,
    };
    let params = &request.params;
    let result = match operation {
        A2aOperation::Send => {
            let sent = SentMessage::read(params)?;
            let task = tasks.send(&sent, Awaits::End).await?;
            let task = match sent.returns_at_once {
                true => task,
                false => tasks.finish(&task).await?,
            };
            let shown = tasks.show(&task, sent.history_length).await?;
            dialect.sent(shown)
        }
        A2aOperation::Stream => {
            let sent = SentMessage::read(params)?;
            let task = tasks.send(&sent, Awaits::Events).await?;
            let events = TaskStream::open(tasks, task, request.id.clone()).await?;
            return Ok(stream(events));
        }
        A2aOperation::Get => {
            let task = tasks.find(&TaskName::read(params)?).await?;
            tasks.show(&task, history_length(params)?).await?
        }
        A2aOperation::List => tasks.list(params).await?,
        A2aOperation::Cancel => {
            let task = tasks.find(&TaskName::read(params)?).await?;
            let task = tasks.cancel(&task).await?;
            tasks.show(&task, None).await?
        }
        A2aOperation::Subscribe => {
            let task = tasks.find(&TaskName::read(params)?).await?;
            if !task.latest.status.is_active() {
                return Err(RpcError::new(
                    UNSUPPORTED_OPERATION,
                    "the task has ended, or waits for input; get it instead",
                ));
            }
            let events = TaskStream::open(tasks, task, request.id.clone()).await?;
            return Ok(stream(events));
        }
    };
    Ok(JsonBody(success(&request.id, result)).into_response())
}

/// What a method does, whichever version names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum A2aOperation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
}

impl A2aOperation {
    fn of_method(method: &str) -> Result<Self, RpcError> {
        Ok(match method {
            "message/send" | "SendMessage" => Self::Send,
            "message/stream" | "SendStreamingMessage" => Self::Stream,
            "tasks/get" | "GetTask" => Self::Get,
            "tasks/list" | "ListTasks" => Self::List,
            "tasks/cancel" | "CancelTask" => Self::Cancel,
            "tasks/resubscribe" | "SubscribeToTask" => Self::Subscribe,
            "agent/getAuthenticatedExtendedCard" | "GetExtendedAgentCard" => {
                return Err(RpcError::new(
                    NO_EXTENDED_CARD,
                    "there is no card besides the one at /.well-known/agent-card.json",
                ));
            }
            push if push.contains("ushNotificationConfig") => {
                return Err(RpcError::new(
                    NO_PUSH_NOTIFICATIONS,
                    "push notifications are not supported; stream the task, or get it again",
                ));
            }
            unknown => return Err(RpcError::unknown_method(unknown)),
        })
    }
}

/// Refuses a version of the protocol that the server does not speak. A request that names none is of 0.3.
fn check_version(headers: &HeaderMap) -> Result<(), RpcError> {
    let version = header_text(headers, "a2a-version")?;
    let version = version.as_deref().filter(|version| !version.is_empty());
    let is_spoken = |version: &str| {
        let mut parts = version.split('.');
        matches!(
            (parts.next(), parts.next()),
            (Some("0"), Some("3")) | (Some("1"), Some("0") | None)
        )
    };
    match version {
        Some(version) if !is_spoken(version) => Err(RpcError::new(
            VERSION_NOT_SUPPORTED,
            format!(
                "version `{}` is not supported; use 0.3 or 1.0",
                superstep::__private::shorten(version)
            ),
        )),
        _ => Ok(()),
    }
}

/// Returns how many messages of the conversation the client wants to see.
fn history_length(params: &Json) -> Result<Option<usize>, RpcError> {
    match params.get("historyLength") {
        None | Some(Json::Null) => Ok(None),
        Some(length) => {
            let length = length
                .as_u64()
                .and_then(|length| usize::try_from(length).ok());
            let refused =
                || RpcError::invalid_params("`historyLength` must be a number, 0 or more");
            Ok(Some(length.ok_or_else(refused)?))
        }
    }
}

#[test]
fn methods_of_both_versions_are_the_same_operations() {
    use serde_json::json;
    for (old, new) in [
        ("message/send", "SendMessage"),
        ("message/stream", "SendStreamingMessage"),
        ("tasks/get", "GetTask"),
        ("tasks/list", "ListTasks"),
        ("tasks/cancel", "CancelTask"),
        ("tasks/resubscribe", "SubscribeToTask"),
    ] {
        assert_eq!(
            A2aOperation::of_method(old).unwrap(),
            A2aOperation::of_method(new).unwrap()
        );
    }
    for (method, code) in [
        ("tasks/pushNotificationConfig/set", NO_PUSH_NOTIFICATIONS),
        ("CreateTaskPushNotificationConfig", NO_PUSH_NOTIFICATIONS),
        ("GetExtendedAgentCard", NO_EXTENDED_CARD),
        ("tasks/delete", json_rpc::METHOD_NOT_FOUND),
    ] {
        assert_eq!(A2aOperation::of_method(method).unwrap_err().code, code);
    }
    let three = history_length(&json!({ "historyLength": 3 }));
    assert_eq!(three.unwrap(), Some(3));
    assert!(history_length(&json!({ "historyLength": -1 })).is_err());
}
