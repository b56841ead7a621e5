//! The stream of a thread: the events of all its runs. It never ends by itself.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use serde_json::json;
use superstep::RunId;
use tokio::time::Interval;

use crate::App;
use crate::caller::QueryFields;
use crate::error::{ApiError, ApiResult};
use crate::feed::{FeedBody, FeedEvent, FeedItem, RunStop, Subscription};
use crate::stream::event_id::{EventSink, SeenId};
use crate::stream::renderer::RunRenderer;
use crate::stream::sse::{self, HEARTBEAT};
use crate::wire;

/// What a client can ask to see of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ThreadMode {
    /// The events of each run, in the modes that the run was submitted with.
    RunModes,
    /// When runs begin and stop.
    Lifecycle,
    /// The state whenever it changes.
    StateUpdate,
}

/// The modes of the stream of a thread.
#[derive(Debug, Clone)]
pub(super) struct ThreadModes(BTreeSet<ThreadMode>);

impl ThreadModes {
    /// Reads the modes of a request. The name of the field is `stream_modes`; the clients send `stream_mode`.
    pub(super) fn read(fields: &QueryFields) -> ApiResult<Self> {
        let mut names = fields.list("stream_modes");
        names.extend(fields.list("stream_mode"));
        let mode = |name: &String| match name.as_str() {
            "run_modes" => Ok(ThreadMode::RunModes),
            "lifecycle" => Ok(ThreadMode::Lifecycle),
            "state_update" => Ok(ThreadMode::StateUpdate),
            _ => Err(ApiError::invalid(format!(
                "Invalid stream mode: '{name}'. Must be one of: run_modes, lifecycle, state_update"
            ))),
        };
        let mut modes: BTreeSet<ThreadMode> = names.iter().map(mode).collect::<ApiResult<_>>()?;
        if modes.is_empty() {
            modes.insert(ThreadMode::RunModes);
        }
        Ok(Self(modes))
    }
}

/// The stream of a thread.
pub(super) struct ThreadStream {
    app: App,
    tenant: String,
    subscription: Subscription,
    /// The last event that the client has seen when it connected.
    seen: SeenId,
    /// The last event that was taken.
    last: SeenId,
    modes: ThreadModes,
    /// The run of the last event, and how its events are shown; `None` before the first event.
    run: Option<(RunId, RunView)>,
    heartbeat: Interval,
}

/// How the events of a run are shown.
enum RunView {
    Rendered(Box<RunRenderer>),
    /// They are not: it is not a run of the registry, but a change of the state for example.
    Hidden,
    /// The run has stopped. What writes its events is dropped, because the stream may wait for the next run for days.
    Stopped,
}

impl ThreadStream {
    pub(super) fn new(
        app: &App,
        tenant: &str,
        subscription: Subscription,
        modes: ThreadModes,
        seen: Option<SeenId>,
    ) -> Self {
        let seen = seen.unwrap_or_else(|| SeenId::all_of(subscription.last()));
        Self {
            app: app.clone(),
            tenant: tenant.to_owned(),
            subscription,
            seen,
            last: seen,
            modes,
            run: None,
            heartbeat: sse::heartbeat(),
        }
    }

    /// Returns the stream as chunks of bytes.
    pub(super) fn into_chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        futures_util::stream::unfold(Some(self), |stream| async move {
            let mut stream = stream?;
            match stream.next_chunk().await {
                Ok(chunk) => Some((Ok(chunk), Some(stream))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn next_chunk(&mut self) -> io::Result<Bytes> {
        loop {
            let mut out = Vec::new();
            tokio::select! {
                item = self.subscription.next() => match item {
                    FeedItem::Event(event) => self.take(&event, &mut out).await,
                    FeedItem::Broken => return Err(sse::broken()),
                },
                _ = self.heartbeat.tick() => out.extend_from_slice(HEARTBEAT),
            }
            if !out.is_empty() {
                return Ok(out.into());
            }
        }
    }

    async fn take(&mut self, event: &FeedEvent, out: &mut Vec<u8>) {
        if self.modes.0.contains(&ThreadMode::RunModes) && !self.renders(event.run) {
            // In a box, because a stream that waits must not hold the room for it.
            Box::pin(self.meet_run(event, out)).await;
        }
        let has = |mode: ThreadMode| self.modes.0.contains(&mode);
        let mut sink = EventSink::new(out, event.id, &event.namespace, self.seen);
        if has(ThreadMode::Lifecycle)
            && let Some(phase) = phase(&event.body)
        {
            let data = json!({ "event": phase, "run_id": wire::uuid(event.run.to_bytes()) });
            sink.write_plain("lifecycle", &data);
        }
        if has(ThreadMode::StateUpdate)
            && event.namespace.is_root()
            && let FeedBody::Values(values) = &event.body
        {
            sink.write_plain("state_update", &json!({ "values": &**values }));
        }
        if has(ThreadMode::RunModes)
            && let Some((_, RunView::Rendered(renderer))) = &mut self.run
        {
            renderer.render(event, &mut sink);
            if matches!(event.body, FeedBody::Stopped(_)) {
                self.run = Some((event.run, RunView::Stopped));
            }
        }
        self.last = SeenId::all_of(event.id);
    }

    /// Whether it is known how the events of a run are shown.
    fn renders(&self, run: RunId) -> bool {
        match &self.run {
            Some((_, RunView::Stopped)) | None => false,
            Some((known, _)) => *known == run,
        }
    }

    /// Makes sure that the events of the run can be written that an event belongs to.
    async fn meet_run(&mut self, event: &FeedEvent, out: &mut Vec<u8>) {
        let is_begun = self.run.as_ref().is_some_and(|(run, _)| *run == event.run);
        let view = match self.renderer_of(event.run).await {
            Some(mut renderer) => {
                if !is_begun {
                    renderer.begin(self.last, out);
                }
                // A client that joins in the middle of a message needs its beginning.
                let before = self.subscription.events_before(event.run);
                let before = before.iter().filter(|before| before.id < event.id);
                renderer.prime(before.map(|event| &**event));
                RunView::Rendered(Box::new(renderer))
            }
            // Noted, or the registry would be asked with every event.
            None => RunView::Hidden,
        };
        self.run = Some((event.run, view));
    }

    /// Returns what writes the events of a run; `None` for what is not a run of the registry, such as a change of the state.
    async fn renderer_of(&self, run: RunId) -> Option<RunRenderer> {
        loop {
            let row = self.app.queue.registry().run(&self.tenant, run).await;
            match row {
                Ok(row) => return row.as_ref().map(RunRenderer::of_row),
                // The event was taken from the feed, so it waits until the store answers.
                Err(error) => {
                    tracing::warn!(%run, ?error, "the row of a run could not be read");
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
            }
        }
    }
}

fn phase(body: &FeedBody) -> Option<&'static str> {
    match body {
        FeedBody::RunBegan => Some("running"),
        FeedBody::Stopped(RunStop::Finished) => Some("completed"),
        FeedBody::Stopped(RunStop::Paused | RunStop::Cancelled) => Some("interrupted"),
        FeedBody::Stopped(RunStop::Failed { .. }) => Some("failed"),
        _ => None,
    }
}

const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);

/// Ten thousand clients may wait at once.
#[test]
fn a_stream_that_waits_is_small() {
    fn size<Chunks>(_: impl Fn(ThreadStream) -> Chunks) -> usize {
        size_of::<Chunks>()
    }
    let bytes = size(ThreadStream::into_chunks);
    assert!(bytes <= 2_048, "{bytes} bytes");
}
