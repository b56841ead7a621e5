//! One call of a server's tool.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CancelledNotification,
    CancelledNotificationParam, ClientNotification, ClientRequest, MetaObject, RequestId,
    RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value as Json, json};

use super::connection::{Connection, Session, note_lost};
use super::handler::RunningCall;
use super::{FINGERPRINT, IDEMPOTENCY_KEY, answer};
use crate::tool::{ToolCx, ToolError, ToolOutput};

/// A tool of a server, by the server's name for it and by the model's.
#[derive(Debug, Clone)]
pub(super) struct RemoteTool {
    pub(super) name: String,
    pub(super) shown_name: String,
}

/// Calls a tool, if the server still defines it as it was accepted.
pub(super) async fn call(
    connection: &Connection,
    tool: &RemoteTool,
    args: Json,
    cx: &ToolCx,
) -> Result<ToolOutput, ToolError> {
    let Json::Object(args) = args else {
        return Err(ToolError::failed("the arguments are not an object"));
    };
    let mut params = CallToolRequestParams::new(tool.name.clone()).with_arguments(args);
    let meta = json!({
        IDEMPOTENCY_KEY: cx.idempotency_key(),
        FINGERPRINT: cx.fingerprint(),
    });
    if let Json::Object(meta) = meta {
        params.meta = Some(RequestMetaObject(MetaObject(meta)));
    }
    let wait = connection.limits.connect_time_max;
    let Ok(_turn) = tokio::time::timeout(wait, connection.turn()).await else {
        return Err(ToolError::failed(format!(
            "the MCP server `{}` is busy with another call, so this one was not sent; try again, and give the server's tools a timeout",
            connection.name
        )));
    };
    let session = connection.session_for(&tool.name).await;
    let session = session.map_err(ToolError::failed)?;
    // Only now: a call that waited for its turn, or for the server to start, was not sent.
    let sent = async { Ok(send(&session, tool, params.clone(), cx).await) };
    let mut answered = cx.within_timeout(sent).await?;
    // No server has acted on the request, so sending it in a new session does not repeat the call.
    if note_lost(&session.client, &answered) {
        let session = connection.session_for(&tool.name).await;
        let session = session.map_err(ToolError::failed)?;
        let sent = async { Ok(send(&session, tool, params, cx).await) };
        answered = cx.within_timeout(sent).await?;
        note_lost(&session.client, &answered);
    }
    answer::read(answered)
}

/// Sends the request and waits for its result. Cancels the request if it is dropped before.
async fn send(
    session: &Session,
    tool: &RemoteTool,
    params: CallToolRequestParams,
    cx: &ToolCx,
) -> Result<CallToolResponse, ServiceError> {
    let client = &session.client;
    let call = RunningCall {
        tool: tool.shown_name.clone(),
        cx: cx.clone(),
    };
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::no_options();
    // Declared before the attribution, so that it is dropped after it.
    let mut retire = RetireOnDrop(client.service().lost_by_questions());
    // Before the request is sent: the server may ask at once.
    let _attribution = client.service().attribute_questions(cx);
    let sent = match client.send_cancellable_request(request, options).await {
        Ok(sent) => sent,
        Err(error) => {
            retire.0 = None;
            return Err(error);
        }
    };
    let mut progress = client.service().follow(sent.progress_token.clone(), call);
    let mut cancel = CancelOnDrop(Some((sent.peer.clone(), sent.id.clone())));
    let answered = tokio::select! {
        biased;
        answered = sent.await_response() => answered,
        never = progress.show() => match never {},
    };
    progress.show_latest();
    cancel.0 = None;
    retire.0 = None;
    match answered? {
        ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
        ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
        ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Ends the session if a call that may ask is dropped before it is disarmed. The server may ignore the cancellation and ask
/// later; in the same session that question would count as one of the next call, which may belong to another thread.
struct RetireOnDrop<'a>(Option<&'a AtomicBool>);

impl Drop for RetireOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(is_lost) = self.0 {
            is_lost.store(true, Ordering::Release);
        }
    }
}

/// Cancels the request on the server if it is dropped before it is disarmed.
struct CancelOnDrop(Option<(Peer<RoleClient>, RequestId)>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((peer, request)) = self.0.take() else {
            return;
        };
        let reason = "the caller no longer waits".to_owned();
        let params = CancelledNotificationParam::new(Some(request), Some(reason));
        let notification =
            ClientNotification::CancelledNotification(CancelledNotification::new(params));
        // The first poll puts it into the queue of the transport. If the queue is full, the server is not told.
        let _ = peer.send_notification(notification).now_or_never();
    }
}
