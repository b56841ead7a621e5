//! Feeds: what happens on threads, read and decoded once, for any number of clients.
//!
//! A thread has one feed while a client watches it or a run is active on it. One task reads the log and the live events of
//! the thread, converts them into [`FeedEvent`]s in LangGraph's order (`log_converter.rs`), and puts them into a ring.
//! Clients hold a position in the ring and wait for a change of it, so a client that waits costs no work. The reader stops
//! when no run is active; a thread that is watched and idle costs memory only.
//!
//! The ring keeps the events of the run and of ten minutes after it, tokens included. For what is older, or was dropped
//! because there was too much, a client reads the log again: tokens are missing then, and messages come as a whole. The same
//! goes for a run whose caller only waits for its end, if nobody watches its thread: it is not read at all.
//!
//! When a task runs again, after a failed attempt or an answer, what it showed before is void and it shows everything again.
//! Streams of runs keep both, as LangGraph's do: a client sees the tokens of a message twice under one id, and the message
//! itself in the state. In the thread protocol the first message ends, and another one with the same id begins.

mod agent_payload;
mod event;
mod follower;
mod id;
mod log_converter;
mod log_source;
mod message_parts;
mod reader;
mod ring;
mod subscription;
mod thread_feed;

pub(crate) use event::{
    BlockKind, CheckpointTask, EndedTask, FeedBody, FeedEvent, MessageChange, MessagePart,
    Namespace, RunStop, StartedTask, StreamedCheckpoint, SubgraphEnd, TaskOrigin, ToolChange,
    ToolPart, split_segment,
};
pub(crate) use follower::RunFollower;
pub(crate) use id::FeedId;
pub(crate) use message_parts::parse_arguments;
pub(crate) use subscription::{FeedItem, StreamStart, Subscription};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::Value as Json;
use superstep::__private::lock;
use superstep::graph::Definition;
use superstep::{EventId, RunId, Seq, ThreadId, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::{ApiError, ApiResult};
use crate::feed::log_source::LogSource;
use crate::feed::thread_feed::{RunProgress, ThreadFeed};
use crate::{App, Shared, thread};

/// The feeds of all threads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feeds(Arc<FeedMap>);

struct FeedMap {
    feeds: Mutex<BTreeMap<ThreadId, Arc<ThreadFeed>>>,
    /// Readers, and what cancels runs of clients that went away. They end with the server.
    tasks: Mutex<JoinSet<()>>,
    /// Number of clients that stream each run.
    followers: Mutex<BTreeMap<(String, RunId), usize>>,
    /// Whether connections are to break, because the server shuts down.
    is_broken: watch::Sender<bool>,
    /// Whether a task drops old feeds.
    is_swept: AtomicBool,
}

/// Returns what these tasks wrote, by their ids, as far as they ended after an entry.
pub(crate) async fn results_of(
    app: &Shared,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    after: Seq,
    mut tasks: BTreeSet<String>,
) -> ApiResult<BTreeMap<String, Arc<Json>>> {
    let source = LogSource::new(app, graph, thread);
    let mut results = BTreeMap::new();
    let mut read = FeedId::end_of(after.0);
    while !tasks.is_empty() {
        let part = source.replay(read, None).await?;
        for event in &part.events {
            if let FeedBody::TaskEnded(ended) = &event.body
                && ended.error.is_none()
                && ended.interrupts.is_empty()
                && tasks.remove(&ended.origin.task)
            {
                results.insert(ended.origin.task.clone(), ended.result.clone());
            }
        }
        if !part.has_more {
            break;
        }
        read = part.through;
    }
    Ok(results)
}

impl Feeds {
    /// Starts to read a thread, because a run is submitted on it. Call it before the run can begin, or its first tokens may
    /// be missed.
    pub(crate) fn began(&self, app: &App, graph: &Arc<Definition>, thread: &ThreadId) {
        self.start_reader(app, &self.feed(thread), Some(graph), true);
    }

    /// Starts to read a thread as [`Feeds::began`] does, if somebody watches or watched it.
    pub(crate) fn began_unwatched(&self, app: &App, graph: &Arc<Definition>, thread: &ThreadId) {
        let feed = lock(&self.0.feeds).get(thread).cloned();
        if let Some(feed) = feed {
            self.start_reader(app, &feed, Some(graph), true);
        }
    }

    /// Drops what is known of a thread, because it was deleted: another of the same name may follow.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        if let Some(feed) = lock(&self.0.feeds).get(thread) {
            feed.forget();
        }
    }

    /// Breaks all connections: clients reconnect after that, and not after an orderly end.
    pub(crate) fn drain(&self) {
        self.0.is_broken.send_replace(true);
    }

    /// Makes sure that the feed knows where the thread is, and returns the id of the thread's newest event. What happens
    /// afterwards is in the feed.
    pub(crate) async fn settle(&self, app: &App, thread: &ThreadId) -> ApiResult<FeedId> {
        let feed = self.settled(app, thread).await?;
        Ok(feed.with_ring(|ring| ring.last_id()))
    }

    /// Subscribes to a run.
    pub(crate) async fn of_run(
        &self,
        app: &App,
        thread: &ThreadId,
        run: RunId,
        start: StreamStart,
    ) -> ApiResult<Subscription> {
        let feed = self.settled(app, thread).await?;
        let mut subscription = self.subscribe(app, feed);
        subscription.follow_run(run, start).await?;
        Ok(subscription)
    }

    /// Subscribes to a thread: to everything after an event, or from the beginning of its last run on.
    pub(crate) async fn of_thread(
        &self,
        app: &App,
        thread: &ThreadId,
        after: Option<FeedId>,
    ) -> ApiResult<Subscription> {
        let feed = self.settled(app, thread).await?;
        let mut subscription = self.subscribe(app, feed);
        match after {
            Some(after) => subscription.continue_after(after).await?,
            None => subscription.continue_last_run().await?,
        }
        Ok(subscription)
    }

    /// Subscribes to what happens on a thread from now on.
    pub(crate) async fn tail(&self, app: &App, thread: &ThreadId) -> ApiResult<Subscription> {
        let feed = self.settled(app, thread).await?;
        Ok(self.subscribe(app, feed))
    }

    /// Subscribes to a thread for a client that only watches how its runs go.
    ///
    /// Such a client opens its stream next to the command that starts a run, takes the first end that it sees for the end of
    /// that run, and does not say which events it knows. So a run that ended before must not be shown to it, but a quick run
    /// that it has just started must. The run that is shown is the one that is active or paused; or the one that begins
    /// within half a second; or the last one, if that ended a moment ago.
    pub(crate) async fn for_watcher(
        &self,
        app: &App,
        thread: &ThreadId,
    ) -> ApiResult<Subscription> {
        let mut subscription = self.of_thread(app, thread, None).await?;
        // Whether the run is over shows only in its last event.
        subscription.read_rest().await?;
        let is_over = |subscription: &Subscription| match subscription.run_progress() {
            Some(RunProgress::Ended(at)) => Some(at),
            Some(RunProgress::Running | RunProgress::Paused) | None => None,
        };
        if is_over(&subscription).is_none() {
            return Ok(subscription);
        }
        let deadline = tokio::time::Instant::now() + NEXT_RUN_WITHIN;
        while let Some(ended) = is_over(&subscription) {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                if !is_fresh(ended, app.runtime.now()) {
                    subscription.skip_to_end();
                }
                return Ok(subscription);
            }
            subscription.wait(left).await;
            subscription.move_to_last_run();
        }
        Ok(subscription)
    }

    /// Notes that a client streams a run. With `is_cancelling`, the run is cancelled if the client goes away and none comes
    /// back.
    pub(crate) fn follow(
        &self,
        app: &App,
        tenant: &str,
        run: RunId,
        is_cancelling: bool,
    ) -> RunFollower {
        RunFollower::new(app, tenant, run, is_cancelling)
    }

    fn subscribe(&self, app: &App, feed: Arc<ThreadFeed>) -> Subscription {
        Subscription::at_end(app, feed, self.0.is_broken.subscribe())
    }

    /// Whether the server shuts down, so that connections which end are not clients that went away.
    pub(crate) fn is_broken(&self) -> bool {
        *self.0.is_broken.borrow()
    }

    /// Returns the feed of a thread, after its reader has found its place. A thread that has no graph yet has nothing to
    /// read: its feed waits until a run begins.
    async fn settled(&self, app: &App, id: &ThreadId) -> ApiResult<Arc<ThreadFeed>> {
        let feed = self.feed(id);
        if feed.is_settled() {
            return Ok(feed);
        }
        if feed.graph().is_none() {
            let row = thread::find(app, id).await?;
            let graph = row.as_ref().and_then(|row| thread::graph_of(app, row));
            let Some(graph) = graph else {
                return Ok(feed);
            };
            self.start_reader(app, &feed, Some(graph), false);
        } else {
            self.start_reader(app, &feed, None, false);
        }
        let mut changed = feed.subscribe();
        let settles = async { while !feed.is_settled() && changed.changed().await.is_ok() {} };
        match tokio::time::timeout(SETTLE_WITHIN, settles).await {
            Ok(()) => Ok(feed),
            Err(_) => Err(ApiError::new(
                http::StatusCode::SERVICE_UNAVAILABLE,
                "the state of the thread could not be read in time; try again",
            )),
        }
    }

    fn feed(&self, thread: &ThreadId) -> Arc<ThreadFeed> {
        let mut feeds = lock(&self.0.feeds);
        if let Some(feed) = feeds.get(thread) {
            return feed.clone();
        }
        let feed = Arc::new(ThreadFeed::new(thread));
        feeds.insert(thread.clone(), feed.clone());
        drop(feeds);
        if !self.0.is_swept.swap(true, Ordering::SeqCst) {
            self.spawn(sweep(Arc::downgrade(&self.0)));
        }
        feed
    }

    fn start_reader(
        &self,
        app: &App,
        feed: &Arc<ThreadFeed>,
        graph: Option<&Arc<Definition>>,
        is_begun: bool,
    ) {
        let source = |graph: &Arc<Definition>| LogSource::new(app, graph, &feed.thread);
        let start = feed.start(graph, |graph, place| source(graph).read_after(place.after));
        let Some(start) = start else {
            return;
        };
        let (feed, source, generation) = (feed.clone(), source(&start.graph), start.generation);
        match start.place {
            None => {
                // Now, not when the task first runs: what a run on a new thread shows at once is not missed.
                let early = source.read_after(EventId::START);
                let reads = reader::read_from_outside(feed, generation, source, early, is_begun);
                self.spawn(reads);
            }
            Some((reader, place)) => {
                self.spawn(reader::read(feed, generation, source, reader, place));
            }
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.0.tasks);
        while tasks.try_join_next().is_some() {}
        // A follower may be dropped after the runtime of the server has stopped.
        if let Ok(handle) = tokio::runtime::Handle::try_current() {
            tasks.spawn_on(work, &handle);
        }
    }
}

impl Default for Feeds {
    fn default() -> Self {
        Self(Arc::new(FeedMap {
            feeds: Mutex::default(),
            tasks: Mutex::default(),
            followers: Mutex::default(),
            is_broken: watch::Sender::new(false),
            is_swept: AtomicBool::new(false),
        }))
    }
}

impl fmt::Debug for Feeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeds")
            .field("feeds", &lock(&self.0.feeds).len())
            .finish_non_exhaustive()
    }
}

/// Drops the events of threads on which nothing has happened for a while, until there are none.
async fn sweep(map: Weak<FeedMap>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(map) = map.upgrade() else {
            return;
        };
        let mut feeds = lock(&map.feeds);
        // A subscriber holds its feed. Nobody can get another hold while the map is locked.
        feeds.retain(|_, feed| !feed.sweep(KEPT_AFTER_END) || Arc::strong_count(feed) > 1);
        drop_oldest(&mut feeds, BYTES_MAX);
        // Readers that have ended keep their memory until they are joined.
        while lock(&map.tasks).try_join_next().is_some() {}
        if feeds.is_empty() {
            map.is_swept.store(false, Ordering::SeqCst);
            return;
        }
    }
}

/// Drops the feeds that were touched longest ago, of those that nobody reads, until the others are within the limit.
fn drop_oldest(feeds: &mut BTreeMap<ThreadId, Arc<ThreadFeed>>, bytes_max: usize) {
    let mut bytes: usize = feeds.values().map(|feed| feed.bytes()).sum();
    if bytes <= bytes_max {
        return;
    }
    let unread = feeds
        .iter()
        .filter(|(_, feed)| Arc::strong_count(feed) == 1);
    let mut oldest: Vec<_> = unread
        .map(|(thread, feed)| (feed.touched(), feed.bytes(), thread.clone()))
        .collect();
    oldest.sort_unstable_by_key(|(touched, ..)| *touched);
    for (_, freed, thread) in oldest {
        if bytes <= bytes_max {
            break;
        }
        feeds.remove(&thread);
        bytes -= freed;
    }
}

fn is_fresh(ended: Timestamp, now: Timestamp) -> bool {
    now.0.saturating_sub(ended.0) < FRESH_MS
}

/// How long the events of a run are kept after its end.
const KEPT_AFTER_END: Duration = Duration::from_secs(10 * 60);
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Bytes that the events of all threads may take before those that nobody reads are dropped early.
const BYTES_MAX: usize = 128 * 1024 * 1024;
/// How long a request waits until the feed of its thread knows where the thread is.
const SETTLE_WITHIN: Duration = Duration::from_secs(10);
/// How long a watcher waits for the next run before it is shown one that has ended.
const NEXT_RUN_WITHIN: Duration = Duration::from_millis(500);
/// How long ago a run may have ended for a watcher to be shown its end.
const FRESH_MS: i64 = 3_000;
