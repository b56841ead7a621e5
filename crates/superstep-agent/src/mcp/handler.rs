//! What a server says without being asked: that its list of tools changed, and how far a call is.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use superstep_core::__private::lock;

use super::ServerLimits;
use super::plain_text::plain;
use crate::agent::AgentEvent;
use crate::tool::ToolCx;

/// The client's side of a session.
pub(super) struct Handler {
    /// Whether the server said that its list of tools changed, since it was last read.
    pub(super) list_changed: AtomicBool,
    /// Calls that wait for their result, by the token under which the server reports their progress.
    running: Mutex<HashMap<ProgressToken, RunningCall>>,
}

/// A call that waits for its result.
#[derive(Clone)]
pub(super) struct RunningCall {
    /// Name of the tool, as the model knows it.
    pub(super) tool: String,
    pub(super) cx: ToolCx,
}

impl Handler {
    pub(super) fn new(_server: &str, _limits: &ServerLimits) -> Self {
        Self {
            list_changed: AtomicBool::new(false),
            running: Mutex::default(),
        }
    }

    /// Reports progress under this token to this call, until the guard is dropped.
    pub(super) fn follow(&self, token: ProgressToken, call: RunningCall) -> Following<'_> {
        lock(&self.running).insert(token.clone(), call);
        Following {
            handler: self,
            token,
        }
    }
}

/// Ends the reports to a call when it is dropped.
pub(super) struct Following<'a> {
    handler: &'a Handler,
    token: ProgressToken,
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        lock(&self.handler.running).remove(&self.token);
    }
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _cx: NotificationContext<RoleClient>) {
        self.list_changed.store(true, Ordering::Release);
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _cx: NotificationContext<RoleClient>,
    ) {
        let call = lock(&self.running).get(&progress.progress_token).cloned();
        let Some(call) = call else { return };
        let message = progress.message.as_deref();
        // Showing an event is a sign of life, too. An event that cannot be shown is no reason to end the call.
        let _ = call.cx.show(AgentEvent::ToolProgress {
            id: call.cx.call_id().into(),
            name: call.tool.as_str().into(),
            progress: progress.progress,
            total: progress.total,
            message: message.map(|text| plain(text, PROGRESS_CHARS_MAX).into()),
        });
    }
}

/// How much of a progress message is shown.
const PROGRESS_CHARS_MAX: usize = 500;
