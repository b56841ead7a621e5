//! A client's way through a feed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use superstep::graph::Definition;
use superstep::{DriveError, RunId};
use tokio::sync::watch;

use crate::App;
use crate::feed::FeedId;
use crate::feed::event::FeedEvent;
use crate::feed::log_source::{LogSource, ReplayedPart};
use crate::feed::thread_feed::{RunProgress, ThreadFeed, progress};

/// Reads a feed from some point on. It holds a position and nothing else, so a client that waits costs no work.
///
/// What the feed no longer has is read from the log, a part at a time.
pub(crate) struct Subscription {
    app: App,
    feed: Arc<ThreadFeed>,
    /// Only the events of this run.
    only: Option<RunId>,
    /// What was read from the log.
    backlog: VecDeque<Arc<FeedEvent>>,
    /// Position of the next event in the ring.
    next: u64,
    /// Id of the last event that was returned or skipped.
    last: FeedId,
    /// The client knows what the log has up to here, or it is in the backlog. The reader of the feed may be behind, and put it
    /// into the ring later.
    seen: FeedId,
    /// Where to continue in the log before anything of the ring is returned; `None` if the ring is next.
    log_from: Option<FeedId>,
    /// Which thread of its name the ids are of.
    generation: u64,
    changed: watch::Receiver<u64>,
    is_broken: watch::Receiver<bool>,
}

/// What a subscription returns.
#[derive(Debug)]
pub(crate) enum FeedItem {
    Event(Arc<FeedEvent>),
    /// The server shuts down. The connection must break: clients do not reconnect after an orderly end.
    Broken,
}

/// Where a stream of one run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamStart {
    /// At the beginning of the run, which was submitted just now.
    New,
    /// After an event that the client has seen.
    After(FeedId),
    /// With what happens from now on.
    Tail,
}

impl Subscription {
    /// Creates a subscription that starts with what happens from now on.
    pub(super) fn at_end(
        app: &App,
        feed: Arc<ThreadFeed>,
        is_broken: watch::Receiver<bool>,
    ) -> Self {
        let changed = feed.subscribe();
        let (next, last, generation) =
            feed.with_ring(|ring| (ring.end(), ring.last_id(), ring.generation()));
        Self {
            app: app.clone(),
            feed,
            only: None,
            backlog: VecDeque::new(),
            next,
            last,
            seen: FeedId::START,
            log_from: None,
            generation,
            changed,
            is_broken,
        }
    }

    /// Restricts the subscription to a run, and moves it to where the stream of that run starts.
    pub(super) async fn follow_run(
        &mut self,
        run: RunId,
        start: StreamStart,
    ) -> Result<(), DriveError> {
        self.only = Some(run);
        match start {
            StreamStart::Tail => Ok(()),
            StreamStart::New => {
                (self.next, self.last) = (self.feed.with_ring(|ring| ring.first()), FeedId::START);
                Ok(())
            }
            StreamStart::After(after) => {
                let beginning = self.feed.with_ring(|ring| ring.beginning_of(run));
                match beginning {
                    // The whole run is in the ring, whatever was dropped before it.
                    Some(beginning) => {
                        let after_seen = self.feed.with_ring(|ring| ring.after(after));
                        (self.next, self.last) = (beginning.max(after_seen), after);
                        self.seen = after;
                        Ok(())
                    }
                    None => self.continue_after(after).await,
                }
            }
        }
    }

    /// Moves to the events after an id.
    pub(super) async fn continue_after(&mut self, after: FeedId) -> Result<(), DriveError> {
        (self.last, self.seen) = (after, after);
        let floor = self.feed.with_ring(|ring| ring.floor());
        if floor.is_some_and(|floor| after < floor) {
            return self.catch_up().await;
        }
        self.next = self.feed.with_ring(|ring| ring.after(after));
        Ok(())
    }

    /// Moves to the beginning of the thread's last run.
    pub(super) async fn continue_last_run(&mut self) -> Result<(), DriveError> {
        let in_ring = self.feed.with_ring(|ring| ring.last_run());
        if let Some((_, position)) = in_ring {
            (self.next, self.last) = (position, FeedId::START);
            return Ok(());
        }
        let Some((run, log)) = self.feed.run_before().zip(self.log()) else {
            return Ok(());
        };
        let part = log.replay(FeedId::START, Some(run)).await?;
        // Nothing of it was returned yet.
        self.last = FeedId::START;
        self.take_part(part, FeedId::START);
        Ok(())
    }

    /// Reads what is left of the log until the ring is next.
    pub(super) async fn read_rest(&mut self) -> Result<(), DriveError> {
        while self.log_from.is_some() {
            self.catch_up().await?;
        }
        Ok(())
    }

    /// Moves to the beginning of the newest run of the ring, if that is further on.
    pub(super) fn move_to_last_run(&mut self) {
        let newest = self.feed.with_ring(|ring| ring.last_run());
        let Some((_, position)) = newest else {
            return;
        };
        if position > self.next || (position == self.next && !self.backlog.is_empty()) {
            self.backlog.clear();
            (self.next, self.log_from) = (position, None);
        }
    }

    /// Returns where the run is whose events come next.
    pub(super) fn run_progress(&self) -> Option<RunProgress> {
        self.feed.with_ring(|ring| {
            let mut events = self.backlog.iter().chain(ring.since(self.next)).peekable();
            events.peek()?;
            Some(progress(events))
        })
    }

    /// Skips everything that has happened so far.
    pub(super) fn skip_to_end(&mut self) {
        self.backlog.clear();
        self.log_from = None;
        (self.next, self.last) = self.feed.with_ring(|ring| (ring.end(), ring.last_id()));
    }

    /// Waits until something happens on the thread, at most this long.
    pub(super) async fn wait(&mut self, at_most: Duration) {
        // Whether it was in time is seen from the ring.
        let _ = tokio::time::timeout(at_most, self.changed.changed()).await;
    }

    /// Returns the graph of the thread; `None` if no run has begun on it.
    pub(crate) fn graph(&self) -> Option<Arc<Definition>> {
        self.feed.graph()
    }

    /// Returns the id of the last event that was returned or skipped.
    pub(crate) fn last(&self) -> FeedId {
        self.last
    }

    /// Returns the events of a run that are before this subscription, as far as the feed has them: a client that joins in the
    /// middle of a message needs its beginning.
    pub(crate) fn events_before(&self, run: RunId) -> Vec<Arc<FeedEvent>> {
        let is_of_run = |event: &&Arc<FeedEvent>| event.run == run;
        self.feed.with_ring(|ring| {
            let events = ring.since(0).filter(is_of_run);
            events
                .take_while(|event| event.id <= self.last)
                .cloned()
                .collect()
        })
    }

    /// Returns the next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> FeedItem {
        loop {
            if *self.is_broken.borrow_and_update() {
                return FeedItem::Broken;
            }
            if let Some(event) = self.try_next() {
                return FeedItem::Event(event);
            }
            if self.is_behind() {
                // In a box, because a client that waits must not hold the room for it.
                if let Err(error) = Box::pin(self.catch_up()).await {
                    tracing::warn!(thread = %self.feed.thread, ?error, "the log of a thread could not be read");
                    tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                }
                continue;
            }
            tokio::select! {
                changed = self.changed.changed() => {
                    debug_assert!(changed.is_ok(), "the feed is held by this");
                }
                broken = self.is_broken.changed() => {
                    if broken.is_err() {
                        return FeedItem::Broken;
                    }
                }
            }
        }
    }

    /// Returns the next event that has already happened, from the log if necessary; `None` if there is none.
    pub(crate) async fn next_past(&mut self) -> Result<Option<Arc<FeedEvent>>, DriveError> {
        loop {
            if let Some(event) = self.try_next() {
                return Ok(Some(event));
            }
            if !self.is_behind() {
                return Ok(None);
            }
            self.catch_up().await?;
        }
    }

    /// Returns the next event if it is at hand.
    pub(crate) fn try_next(&mut self) -> Option<Arc<FeedEvent>> {
        loop {
            let event = match self.backlog.pop_front() {
                Some(event) => event,
                None if self.log_from.is_some() => return None,
                None => self.next_in_ring()?,
            };
            self.last = self.last.max(event.id);
            if self.only.is_none_or(|run| event.run == run) {
                return Some(event);
            }
        }
    }

    /// Returns the next event of the ring that the client does not know.
    fn next_in_ring(&mut self) -> Option<Arc<FeedEvent>> {
        loop {
            let (generation, event) = self
                .feed
                .with_ring(|ring| (ring.generation(), ring.get(self.next).cloned()));
            if generation != self.generation {
                // The thread was deleted, and another one of its name begins with the first id again.
                self.generation = generation;
                (self.last, self.seen) = (FeedId::START, FeedId::START);
            }
            let event = event?;
            self.next += 1;
            // What nodes show live is in the ring once, whatever its id.
            if event.id > self.seen || event.id.place >= FeedId::LIVE {
                return Some(event);
            }
        }
    }

    /// Whether there are events that this subscription has not returned and that are not in the ring.
    fn is_behind(&self) -> bool {
        self.log_from.is_some() || self.next < self.feed.with_ring(|ring| ring.first())
    }

    /// Reads a part of what the ring no longer has from the log. Continues in the ring behind it.
    async fn catch_up(&mut self) -> Result<(), DriveError> {
        let after = self.log_from.unwrap_or(self.last.max(self.seen));
        let part = match self.log() {
            Some(log) => log.replay(after, self.only).await?,
            None => ReplayedPart {
                events: Vec::new(),
                through: after,
                has_more: false,
            },
        };
        self.take_part(part, after);
        Ok(())
    }

    /// Takes in a part of the log that was read after an id.
    fn take_part(&mut self, part: ReplayedPart, after: FeedId) {
        let read = part.events.last().map_or(self.last, |event| event.id);
        self.backlog.extend(part.events);
        self.seen = self.seen.max(part.through);
        let floor = self.feed.with_ring(|ring| ring.floor());
        // The ring may have dropped more while the log was read. A log that has nothing more is not read again.
        let has_gap = part.through > after && floor.is_some_and(|floor| floor > part.through);
        self.log_from = (part.has_more || has_gap).then_some(part.through);
        if self.log_from.is_none() {
            self.next = self
                .feed
                .with_ring(|ring| ring.after(read).max(ring.first()));
        }
    }

    fn log(&self) -> Option<LogSource> {
        let graph = self.feed.graph()?;
        Some(LogSource::new(&self.app, &graph, &self.feed.thread))
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("thread", &self.feed.thread)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);
