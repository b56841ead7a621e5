//! Runs as the other protocols show them: their events until they have ended, and how they ended.

mod conversation;
mod result;
mod sse_stream;
mod thread_name;

pub(crate) use conversation::{message_channel, text_of};
pub(crate) use result::{RunResult, question_of, request_of, result_of};
pub(crate) use sse_stream::{SseSource, stream, write_data};
pub(crate) use thread_name::thread_named;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use superstep::registry::{RunRow, RunStatus};
use superstep::{DriveError, RunId};
use tokio::time::Instant;

use crate::App;
use crate::error::ApiResult;
use crate::feed::{FeedBody, FeedEvent, FeedId, FeedItem, StreamStart, Subscription};

/// The events of one run until it has ended.
pub(crate) struct RunEvents {
    app: App,
    tenant: String,
    run: RunId,
    subscription: Subscription,
    end: RunWait,
    /// What the row says after the end; an inner `None` if the run was deleted.
    row: Option<Option<Box<RunRow>>>,
    /// Whether no further events are expected.
    has_stopped: bool,
    /// When the run counts as stopped if nothing more comes.
    deadline: Option<Instant>,
}

type RunWait = Pin<Box<dyn Future<Output = Result<Option<RunRow>, DriveError>> + Send>>;

/// What [`RunEvents`] returns.
#[derive(Debug)]
pub(crate) enum RunItem {
    Event(Arc<FeedEvent>),
    /// The run has ended, and nothing follows; `None` if it was deleted.
    Ended(Option<Box<RunRow>>),
    /// The server shuts down. The connection must break, because the run has not ended.
    Broken,
}

impl RunEvents {
    /// Follows a run from its beginning.
    pub(crate) async fn of(app: &App, row: &RunRow) -> ApiResult<Self> {
        let start = match row.status {
            RunStatus::Pending => StreamStart::New,
            _ => StreamStart::After(FeedId::START),
        };
        let subscription = app.feeds.of_run(app, &row.thread, row.id, start).await?;
        let tenant = row.thread.tenant().to_owned();
        Ok(Self {
            end: wait_for_end(app, &tenant, row.id),
            app: app.clone(),
            tenant,
            run: row.id,
            subscription,
            row: None,
            has_stopped: false,
            deadline: None,
        })
    }

    /// Returns what comes next. Do not call it after the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> RunItem {
        loop {
            if self.has_stopped
                && let Some(row) = self.row.take()
            {
                return RunItem::Ended(row);
            }
            tokio::select! {
                biased;
                item = self.subscription.next(), if !self.has_stopped => match item {
                    FeedItem::Event(event) => {
                        self.take(&event);
                        return RunItem::Event(event);
                    }
                    FeedItem::Broken => return RunItem::Broken,
                },
                row = &mut self.end, if self.row.is_none() => match row {
                    Ok(row) => {
                        self.row = Some(row.map(Box::new));
                        // Its last events may be on the way, and a run that cannot begin has none.
                        self.deadline = Some(Instant::now() + LAST_EVENTS_WITHIN);
                    }
                    Err(error) => {
                        tracing::warn!(run = %self.run, ?error, "the row of a run could not be read");
                        self.end = wait_for_end(&self.app, &self.tenant, self.run);
                        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                    }
                },
                () = sleep_until(self.deadline) => {
                    self.deadline = None;
                    self.has_stopped = true;
                }
            }
        }
    }

    fn take(&mut self, event: &FeedEvent) {
        if matches!(event.body, FeedBody::Stopped(_)) {
            self.has_stopped = true;
        } else if self.row.is_some() {
            self.deadline = Some(Instant::now() + LAST_EVENTS_WITHIN);
        }
    }
}

impl std::fmt::Debug for RunEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunEvents")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

fn wait_for_end(app: &App, tenant: &str, run: RunId) -> RunWait {
    let (app, tenant) = (app.clone(), tenant.to_owned());
    Box::pin(async move { app.queue.wait(&tenant, run).await })
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How long the last events of a run may take to arrive after its row says that it has ended.
const LAST_EVENTS_WITHIN: Duration = Duration::from_millis(500);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);
