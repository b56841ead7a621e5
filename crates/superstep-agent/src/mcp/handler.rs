//! What a server sends besides answers: that its list of tools changed, how far a call is, and questions to a person.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use superstep_core::__private::lock;
use tokio::sync::watch;

use super::plain_text::plain;
use super::{ServerLimits, elicitation};
use crate::agent::AgentEvent;
use crate::tool::ToolCx;

/// Our end of a session.
pub(super) struct Handler {
    /// Name of the server, as given by the program.
    server: String,
    questions_max: usize,
    /// Whether the server said that its list of tools changed, since it was last read.
    pub(super) list_changed: AtomicBool,
    /// Whether the server no longer knows this session, which the transport over HTTP does not notice.
    pub(super) is_lost: AtomicBool,
    /// Calls that wait for their result, by the token under which the server reports their progress.
    running: Mutex<HashMap<ProgressToken, watch::Sender<Option<ProgressNotificationParam>>>>,
    /// The call that questions of the server belong to.
    asker: Mutex<Option<ToolCx>>,
}

/// A call that waits for its result.
pub(super) struct RunningCall {
    /// Name of the tool, as the model knows it.
    pub(super) tool: String,
    pub(super) cx: ToolCx,
}

impl Handler {
    pub(super) fn new(server: &str, limits: &ServerLimits) -> Self {
        Self {
            server: server.to_owned(),
            questions_max: limits.questions_max,
            list_changed: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            running: Mutex::default(),
            asker: Mutex::default(),
        }
    }

    /// Returns the mark to set when a call is abandoned that the server may still ask about; `None` if it may not ask.
    pub(super) fn lost_by_questions(&self) -> Option<&AtomicBool> {
        (self.questions_max > 0).then_some(&self.is_lost)
    }

    /// Attributes questions of the server to this call, until the guard is dropped.
    pub(super) fn attribute_questions(&self, cx: &ToolCx) -> Attribution<'_> {
        *lock(&self.asker) = Some(cx.clone());
        Attribution(self)
    }

    /// Collects the progress that is reported under this token, until the guard is dropped.
    pub(super) fn follow(&self, token: ProgressToken, call: RunningCall) -> Following<'_> {
        let (reports, latest) = watch::channel(None);
        lock(&self.running).insert(token.clone(), reports);
        Following {
            handler: self,
            token,
            call,
            latest,
        }
    }
}

/// Progress of a call. Ends the reports to it when it is dropped.
pub(super) struct Following<'a> {
    handler: &'a Handler,
    token: ProgressToken,
    call: RunningCall,
    /// The latest report. A server may send more than anyone can read, so the others are dropped.
    latest: watch::Receiver<Option<ProgressNotificationParam>>,
}

impl Following<'_> {
    /// Shows the latest report, at most once per [`PROGRESS_INTERVAL`].
    pub(super) async fn show(&mut self) -> Infallible {
        while self.latest.changed().await.is_ok() {
            self.emit_latest();
            tokio::time::sleep(PROGRESS_INTERVAL).await;
        }
        // No more reports will come.
        std::future::pending().await
    }

    /// Shows the latest report, if it was not shown yet.
    pub(super) fn show_latest(&mut self) {
        if self.latest.has_changed().unwrap_or(false) {
            self.emit_latest();
        }
    }

    fn emit_latest(&mut self) {
        let Some(report) = self.latest.borrow_and_update().clone() else {
            return;
        };
        let RunningCall { tool, cx } = &self.call;
        // Showing an event is a sign of life, too. An event that cannot be shown is no reason to end the call.
        let _ = cx.show(AgentEvent::ToolProgress {
            id: cx.call_id().into(),
            name: tool.as_str().into(),
            progress: report.progress,
            total: report.total,
            message: report
                .message
                .map(|text| plain(&text, PROGRESS_CHARS_MAX).into()),
        });
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        lock(&self.handler.running).remove(&self.token);
    }
}

/// Ends the attribution of questions to a call when it is dropped.
pub(super) struct Attribution<'a>(&'a Handler);

impl Drop for Attribution<'_> {
    fn drop(&mut self) {
        *lock(&self.0.asker) = None;
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        if self.questions_max > 0 {
            let form = FormElicitationCapability::new();
            config.capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        }
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _cx: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asker = lock(&self.asker).clone();
        Ok(elicitation::answer(
            &self.server,
            self.questions_max,
            asker.as_ref(),
            request,
        ))
    }

    async fn on_tool_list_changed(&self, _cx: NotificationContext<RoleClient>) {
        self.list_changed.store(true, Ordering::Release);
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _cx: NotificationContext<RoleClient>,
    ) {
        if let Some(reports) = lock(&self.running).get(&progress.progress_token) {
            reports.send_replace(Some(progress));
        }
    }
}

/// Minimum time between two reports of progress that a call shows.
pub(super) const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How much of a progress message is shown.
const PROGRESS_CHARS_MAX: usize = 500;
