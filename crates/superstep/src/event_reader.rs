//! Reads the events of a thread: the stored log, then live messages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use superstep_core::checkpoint::StoredBody;
use superstep_core::checkpoint::format::{Change, Entry};
use superstep_core::driver::LiveEvent;
use superstep_core::graph::Definition;
use superstep_core::run::{LiveFilter, LiveVerdict, LogFollower, StreamMode};
use superstep_core::{Seq, ThreadId};

use crate::drive::{DriveError, LocalDriver};
use crate::events::{Event, EventId};
use crate::live_bus::{LiveDelivery, LiveMessage, Subscription};
use crate::retrying_checkpointer::RetryingCheckpointer;

/// Reads the log of a thread and listens to its live messages.
pub(crate) struct EventReader {
    graph: Arc<Definition>,
    thread: ThreadId,
    after: Seq,
    /// Item up to which the watcher has seen everything.
    seen: Option<EventId>,
    /// Entry up to which to read the log now; `None` to read to its end.
    upto: Option<Seq>,
    watch: Option<LogFollower>,
    ready: VecDeque<Event>,
    /// Live events from before this watcher subscribed, held back until the log is read.
    before: Option<Vec<LiveEvent>>,
    /// What the bus had for this watcher when it was first asked for an event; see [`EventReader::take_waiting`].
    waiting: Waiting,
    live_filter: LiveFilter,
    live_messages: Box<dyn Subscription>,
    driver: LocalDriver,
    /// Modes that the watcher wants; `None` for all. The states of others are not encoded.
    modes: Option<BTreeSet<StreamMode>>,
}

/// A thread, and what reads it.
#[derive(Clone)]
pub(crate) struct WatchedThread {
    pub(crate) driver: LocalDriver,
    pub(crate) graph: Arc<Definition>,
    pub(crate) thread: ThreadId,
}

/// Where a watcher is in the log of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPlace {
    /// Entry after which the log is read.
    pub(crate) after: Seq,
    /// Item up to which the watcher has seen everything; `None` if it has seen nothing behind `after`.
    pub(crate) seen: Option<EventId>,
}

impl LogPlace {
    pub(crate) fn after_entry(after: Seq) -> Self {
        Self { after, seen: None }
    }

    /// The entry of the item is read again, because others may follow in it, unless the id is behind all of them: what came before
    /// the entry may have been pruned.
    pub(crate) fn after_event(id: EventId) -> Self {
        let after = match id.index {
            u32::MAX => id.seq,
            _ => Seq(id.seq.0.saturating_sub(1)),
        };
        Self {
            after,
            seen: Some(id),
        }
    }
}

/// Messages that arrived before the first call of [`EventReader::next_batch`].
enum Waiting {
    /// That call has yet to come.
    Unread,
    /// Live events, to show when the log before the entry is read, and the entry that was stored after them.
    Held(Vec<LiveEvent>, Seq),
    Shown,
}

/// Number of entries read at once.
const BATCH: u32 = 64;
/// Longest time for which an entry of another process may go unnoticed if the bus does not announce those.
const POLL: Duration = Duration::from_millis(250);
/// The same if the bus does announce them: announcements may be lost.
const POLL_RARELY: Duration = Duration::from_secs(2);

impl EventReader {
    pub(crate) fn new(watched: &WatchedThread, place: LogPlace) -> Self {
        let WatchedThread {
            driver,
            graph,
            thread,
        } = watched.clone();
        let live_messages = driver.live_bus().subscribe(&thread);
        Self {
            driver,
            graph,
            thread,
            after: place.after,
            seen: place.seen,
            upto: None,
            watch: None,
            ready: VecDeque::new(),
            before: None,
            waiting: Waiting::Unread,
            live_filter: LiveFilter::default(),
            live_messages,
            modes: None,
        }
    }

    /// Leaves out the states that only other modes show.
    pub(crate) fn restrict(&mut self, modes: &BTreeSet<StreamMode>) {
        self.modes = Some(modes.clone());
        self.watch = self.watch.take().map(|watch| watch.with_states_of(modes));
    }

    fn store(&self) -> &RetryingCheckpointer {
        self.driver.store()
    }

    /// Returns the next events, at least one, waiting for them if necessary.
    pub(crate) async fn next_batch(&mut self) -> Result<VecDeque<Event>, DriveError> {
        if matches!(self.waiting, Waiting::Unread) {
            self.take_waiting();
        }
        loop {
            if !self.ready.is_empty() {
                return Ok(std::mem::take(&mut self.ready));
            }
            match self.read_between_live().await {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) if self.ready.is_empty() => return Err(error),
                // What was read before the error comes first. The next read fails again.
                Err(_) => continue,
            }
            if let Waiting::Held(events, seq) = std::mem::replace(&mut self.waiting, Waiting::Shown)
            {
                events.into_iter().for_each(|event| self.show(event));
                self.upto = Some(seq);
                continue;
            }
            if self.before.is_some() {
                self.catch_up().await?;
                continue;
            }
            let poll = match self.live_messages.hears_all() {
                true => POLL_RARELY,
                false => POLL,
            };
            match tokio::time::timeout(poll, self.live_messages.next()).await {
                Ok(LiveDelivery::Now(LiveMessage::Live(event))) => self.show(event),
                // Up to this entry and not further: what nodes showed live comes before what was stored after it.
                Ok(LiveDelivery::Now(LiveMessage::Entry(seq))) => self.upto = Some(seq),
                // The log decides which of them still count.
                Ok(LiveDelivery::Before(events)) => {
                    self.before = Some(events);
                    self.upto = None;
                }
                // The bus lost messages, or was silent for a while: the store has everything.
                Ok(LiveDelivery::Missed) | Err(_) => self.upto = None,
            }
        }
    }

    /// Takes what the bus already has, up to the first entry that it announces.
    ///
    /// A node that never waits may have ended before the watcher is first polled. Reading the log to its end would then void
    /// what the node showed, so the log is read up to the entry before the announced one, then comes what was shown.
    fn take_waiting(&mut self) {
        self.waiting = Waiting::Shown;
        let mut shown = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            // Unconstrained: a task's budget would make the poll pending while messages are there.
            let mut next = std::pin::pin!(tokio::task::unconstrained(self.live_messages.next()));
            let Poll::Ready(delivery) = next.as_mut().poll(&mut cx) else {
                break;
            };
            match delivery {
                LiveDelivery::Now(LiveMessage::Live(event)) => shown.push(event),
                LiveDelivery::Now(LiveMessage::Entry(seq)) => {
                    self.upto = Some(Seq(seq.0.saturating_sub(1)));
                    self.waiting = Waiting::Held(shown, seq);
                    return;
                }
                LiveDelivery::Before(mut events) => {
                    events.append(&mut shown);
                    self.before = Some(events);
                    return;
                }
                LiveDelivery::Missed => break,
            }
        }
        if !shown.is_empty() {
            // Nothing was stored since: the log decides whether their tasks still run.
            self.before = Some(shown);
        }
    }

    fn show(&mut self, event: LiveEvent) {
        match self.live_filter.see(&event) {
            LiveVerdict::No => return,
            LiveVerdict::Anew => self.ready.push_back(Event::Replaced { task: event.task }),
            LiveVerdict::Yes => {}
        }
        self.ready.push_back(Event::Live(event));
    }

    /// Once the log is read, shows what tasks that still run showed before this watcher subscribed.
    async fn catch_up(&mut self) -> Result<(), DriveError> {
        if self.watch.is_none() {
            self.watch = Some(self.begin().await?);
        }
        let under_way = self.watch.as_ref().map(LogFollower::under_way);
        let under_way = under_way.unwrap_or_default();
        for event in self.before.take().unwrap_or_default() {
            if under_way.contains(&event.task) {
                self.show(event);
            }
        }
        Ok(())
    }

    /// Returns the log items stored so far, without waiting for further ones.
    pub(crate) async fn stored(mut self) -> Result<VecDeque<Event>, DriveError> {
        while self.read().await? {}
        Ok(self.ready)
    }

    /// Reads the next batch of entries, up to `upto`. Returns false if there was none.
    async fn read(&mut self) -> Result<bool, DriveError> {
        let entries = self.entries().await?;
        self.take_all(&entries).await
    }

    /// Does what [`read`](Self::read) does. If there is no limit, the bus says where it is: what was stored while the log was read
    /// comes after what its nodes showed.
    async fn read_between_live(&mut self) -> Result<bool, DriveError> {
        let is_limited = self.upto.is_some();
        let mut entries = self.entries().await?;
        if !is_limited && self.before.is_none() && matches!(self.waiting, Waiting::Shown) {
            self.take_waiting();
            if let Some(upto) = self.upto {
                entries.retain(|stored| stored.seq <= upto);
            }
        }
        self.take_all(&entries).await
    }

    /// Returns the next batch of entries, up to `upto`.
    async fn entries(&self) -> Result<Vec<StoredBody>, DriveError> {
        let wanted = match self.upto {
            Some(upto) => upto.0.saturating_sub(self.after.0).min(u64::from(BATCH)),
            None => u64::from(BATCH),
        };
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let limit = u32::try_from(wanted).unwrap_or(BATCH);
        let entries = self.store().entries(&self.thread, self.after, limit);
        Ok(entries.await?)
    }

    async fn take_all(&mut self, entries: &[StoredBody]) -> Result<bool, DriveError> {
        for stored in entries {
            self.take(stored).await?;
        }
        if entries.is_empty() {
            // The end of the log is reached; the bus announces further entries.
            self.upto = Some(self.after);
        }
        Ok(!entries.is_empty())
    }

    async fn take(&mut self, stored: &StoredBody) -> Result<(), DriveError> {
        let entry = Entry::read(stored, &self.thread)
            .map_err(superstep_core::error::CheckpointError::from)?;
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => self.begin().await?,
        };
        let seen = watch.see(stored.seq, &entry)?;
        for seen in seen {
            if let Some(task) = self.live_filter.told(&seen.what) {
                self.ready.push_back(Event::Replaced { task });
            }
            let event = Event::Logged(seen);
            if event.id() > self.seen {
                self.ready.push_back(event);
            }
        }
        self.after = stored.seq;
        // A fork names the entry from which the thread continues, not the state there: the next read starts from a snapshot.
        let forked = entry
            .changes
            .iter()
            .any(|change| matches!(change, Change::Forked(_)));
        self.watch = (!forked).then_some(watch);
        Ok(())
    }

    async fn begin(&self) -> Result<LogFollower, DriveError> {
        let follower = follower_at(self.store(), &self.graph, &self.thread, self.after).await?;
        Ok(match &self.modes {
            Some(modes) => follower.with_states_of(modes),
            None => follower,
        })
    }
}

/// Starts to follow the log of a thread after an entry.
pub(crate) async fn follower_at(
    store: &RetryingCheckpointer,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    seq: Seq,
) -> Result<LogFollower, DriveError> {
    let history = store.load_at(thread, seq).await?;
    Ok(LogFollower::after(graph, thread, &history)?)
}
