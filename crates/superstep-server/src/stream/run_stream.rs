//! The stream of one run: its events until it stops.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use superstep::DriveError;
use superstep::registry::{RunRow, RunStatus};
use tokio::time::{Instant, Interval};

use crate::feed::{FeedBody, FeedEvent, FeedItem, RunFollower, Subscription};
use crate::stream::event_id::{EventSink, SeenId};
use crate::stream::renderer::RunRenderer;
use crate::stream::sse::{self, CHUNK_BYTES, HEARTBEAT};
use crate::{App, start, wire};

/// The stream of one run.
pub(super) struct RunStream {
    app: App,
    subscription: Subscription,
    /// The last event that the client has seen when it connected.
    seen: SeenId,
    renderer: RunRenderer,
    follower: RunFollower,
    /// Whether the thread is deleted when the stream has ended.
    is_temporary: bool,
    progress: StreamProgress,
    /// Looks whether the run's row says that it has ended. A run that cannot begin has no events.
    look: Option<RunLook>,
    /// When the stream ends if nothing more comes.
    deadline: Option<Instant>,
    heartbeat: Interval,
    /// Whether something came since the last heartbeat.
    is_lively: bool,
    out: Vec<u8>,
}

#[derive(Debug)]
enum StreamProgress {
    /// The run has not begun, as far as the stream knows.
    Waiting,
    Running,
    /// The row says that the run has ended, and its last events may be on the way.
    Ending(Box<RunRow>),
    /// The run has stopped; the stream ends when its row says so too, because clients then look at the thread.
    Stopped,
    Ended,
}

/// What a look at a run's row found.
enum RunSight {
    Active,
    Ended(Box<RunRow>),
    /// The run was deleted.
    Missing,
}

type RunLook = Pin<Box<dyn Future<Output = Result<RunSight, DriveError>> + Send>>;

impl RunStream {
    pub(super) fn new(
        app: &App,
        subscription: Subscription,
        renderer: RunRenderer,
        follower: RunFollower,
        is_temporary: bool,
        seen: Option<SeenId>,
    ) -> Self {
        let mut out = Vec::new();
        let seen = seen.unwrap_or_else(|| SeenId::all_of(subscription.last()));
        renderer.begin(seen, &mut out);
        let mut stream = Self {
            app: app.clone(),
            subscription,
            seen,
            renderer,
            follower,
            is_temporary,
            progress: StreamProgress::Waiting,
            look: None,
            deadline: None,
            heartbeat: sse::heartbeat(),
            is_lively: false,
            out,
        };
        stream.look = Some(stream.wait_for_end());
        stream
    }

    /// Lets the renderer see the events of the run that the client does not get, because it needs the beginnings of messages.
    pub(super) fn prime(&mut self) {
        let events = self.subscription.events_before(self.renderer.run.id);
        self.renderer.prime(events.iter().map(|event| &**event));
    }

    /// Returns the stream as chunks of bytes.
    pub(super) fn into_chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        futures_util::stream::unfold(Some(self), |stream| async move {
            let mut stream = stream?;
            match stream.next_chunk().await {
                Some(Ok(chunk)) => Some((Ok(chunk), Some(stream))),
                // Nothing follows an error.
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        })
    }

    async fn next_chunk(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if !self.out.is_empty() {
                self.take_ready();
                return Some(Ok(std::mem::take(&mut self.out).into()));
            }
            if matches!(self.progress, StreamProgress::Ended) {
                self.follower.run_ended();
                if self.is_temporary {
                    start::discard(&self.app, &self.renderer.run.thread).await;
                }
                return None;
            }
            tokio::select! {
                item = self.subscription.next() => match item {
                    FeedItem::Event(event) => self.take(&event),
                    FeedItem::Broken => return Some(Err(sse::broken())),
                },
                sight = next_sight(&mut self.look) => {
                    self.look = None;
                    self.see(sight);
                }
                () = sleep_until(self.deadline) => self.end_in_time(),
                _ = self.heartbeat.tick() => self.beat(),
            }
        }
    }

    /// Takes what has happened in the meantime, so that it is sent together.
    fn take_ready(&mut self) {
        while self.out.len() < CHUNK_BYTES && !self.has_stopped() {
            let Some(event) = self.subscription.try_next() else {
                break;
            };
            self.take(&event);
        }
    }

    fn has_stopped(&self) -> bool {
        matches!(
            self.progress,
            StreamProgress::Stopped | StreamProgress::Ended
        )
    }

    fn take(&mut self, event: &FeedEvent) {
        self.is_lively = true;
        if self.has_stopped() {
            return;
        }
        let mut sink = EventSink::new(&mut self.out, event.id, &event.namespace, self.seen);
        self.renderer.render(event, &mut sink);
        match &event.body {
            FeedBody::Stopped(_) => {
                self.progress = StreamProgress::Stopped;
                self.look = Some(self.wait_for_end());
                self.deadline = Some(Instant::now() + ROW_WITHIN);
            }
            _ if matches!(self.progress, StreamProgress::Waiting) => {
                self.progress = StreamProgress::Running;
                self.look = None;
            }
            _ => {}
        }
        if matches!(self.progress, StreamProgress::Ending(_)) {
            self.deadline = Some(Instant::now() + LAST_EVENTS_WITHIN);
        }
    }

    fn see(&mut self, sight: Result<RunSight, DriveError>) {
        match sight {
            Ok(RunSight::Active) => {}
            Ok(RunSight::Missing) => self.progress = StreamProgress::Ended,
            Ok(RunSight::Ended(_)) if self.has_stopped() => self.progress = StreamProgress::Ended,
            Ok(RunSight::Ended(row)) => {
                self.progress = StreamProgress::Ending(row);
                self.deadline = Some(Instant::now() + LAST_EVENTS_WITHIN);
            }
            Err(error) => {
                // The next heartbeat looks again.
                tracing::warn!(run = %self.renderer.run.id, ?error, "the row of a run could not be read");
            }
        }
    }

    /// Ends the stream, because the run has ended and nothing more came of it.
    fn end_in_time(&mut self) {
        self.deadline = None;
        let progress = std::mem::replace(&mut self.progress, StreamProgress::Ended);
        if let StreamProgress::Ending(row) = progress
            && matches!(row.status, RunStatus::Error | RunStatus::Timeout)
        {
            let id = SeenId::all_of(self.subscription.last());
            self.renderer
                .fail(&wire::run_error(&row), id, &mut self.out);
        }
    }

    fn beat(&mut self) {
        self.out.extend_from_slice(HEARTBEAT);
        let is_silent = !std::mem::take(&mut self.is_lively);
        if is_silent && self.look.is_none() && !self.has_stopped() {
            // A run that the store failed stops without an event.
            self.look = Some(self.look_once());
        }
    }

    fn wait_for_end(&self) -> RunLook {
        let (app, run) = (self.app.clone(), self.renderer.run.clone());
        Box::pin(async move {
            let row = app.queue.wait(run.thread.tenant(), run.id).await?;
            Ok(row.map_or(RunSight::Missing, |row| RunSight::Ended(Box::new(row))))
        })
    }

    fn look_once(&self) -> RunLook {
        let (app, run) = (self.app.clone(), self.renderer.run.clone());
        Box::pin(async move {
            let row = app
                .queue
                .registry()
                .run(run.thread.tenant(), run.id)
                .await?;
            Ok(match row {
                None => RunSight::Missing,
                Some(row) if row.status.is_active() => RunSight::Active,
                Some(row) => RunSight::Ended(Box::new(row)),
            })
        })
    }
}

async fn next_sight(look: &mut Option<RunLook>) -> Result<RunSight, DriveError> {
    match look {
        Some(look) => look.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How long the row of a run that stopped may take to say so.
const ROW_WITHIN: Duration = Duration::from_secs(5);
/// How long the last events of a run may take to arrive after its row says that it has ended.
const LAST_EVENTS_WITHIN: Duration = Duration::from_millis(500);
