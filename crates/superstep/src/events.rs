//! Streaming a thread: the stored log from any point, then live events.
//!
//! The log is the source of truth, and live messages only wake the watcher. So a watcher that leaves and returns, in any
//! process, loses, repeats and reorders nothing, even if the [bus](crate::LiveBus) that carries the messages fails.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use superstep_core::checkpoint::format::{Change, Entry};
use superstep_core::checkpoint::{History, StoredBody};
use superstep_core::driver::LiveEvent;
use superstep_core::graph::Definition;
use superstep_core::run::{LiveFilter, LiveVerdict, LogFollower, StreamEvent, StreamMode};
use superstep_core::{Seq, TaskId, ThreadId};

use crate::drive::DriveError;
use crate::drive::LocalDriver;
use crate::live_bus::{LiveDelivery, LiveMessage, Subscription};
use crate::retrying_checkpointer::RetryingCheckpointer;

/// Something that happened on a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An item of the log. It is numbered, and the same for every watcher.
    Logged(StreamEvent),
    /// An event that a running node shows now. It is not in the log (yet) and may be lost; gaps in [`LiveEvent::index`] reveal
    /// losses.
    ///
    /// It is valid until the log reports that its task ended, or until it is [replaced](Event::Replaced). Events that were
    /// replaced before they arrived are not delivered.
    Live(LiveEvent),
    /// Everything that this task has shown live is void. The task failed and is retried, or runs again after a crash or an
    /// answer, and shows everything again.
    Replaced {
        /// Task whose live events are void.
        task: TaskId,
    },
}

/// The place of an item of the log: the entry, and the position in it. Written `12.3`, as the id of a server-sent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Sequence number of the entry.
    pub seq: Seq,
    /// Position within the entry, from 0.
    pub index: u32,
}

impl Event {
    /// Returns the place of a log item; `None` for live events, which have none.
    pub fn id(&self) -> Option<EventId> {
        match self {
            Event::Logged(StreamEvent { seq, index, .. }) => Some(EventId {
                seq: *seq,
                index: *index,
            }),
            Event::Live(_) | Event::Replaced { .. } => None,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.seq.0, self.index)
    }
}

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, EventIdError> {
        let (seq, index) = text.split_once('.').ok_or(EventIdError)?;
        Ok(Self {
            seq: Seq(seq.parse().map_err(|_| EventIdError)?),
            index: index.parse().map_err(|_| EventIdError)?,
        })
    }
}

/// A text that is not the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of an event; write two numbers, like `12.0`")]
pub struct EventIdError;

/// In the JSON form of `docs/streaming.md`.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Event::Logged(logged) => logged.serialize(serializer),
            Event::Live(live) => json!({
                "type": "live",
                "node": live.node,
                "task": live.task.to_string(),
                "attempt": live.attempt,
                "index": live.index,
                "payload": live.payload.decode::<Json>().unwrap_or_default(),
            })
            .serialize(serializer),
            Event::Replaced { task } => {
                json!({ "type": "replaced", "task": task.to_string() }).serialize(serializer)
            }
        }
    }
}

/// Stream of a thread's events. It never ends by itself: [`StreamEventBody::Stopped`](superstep_core::run::StreamEventBody) reports that a run
/// stopped.
pub struct Events {
    graph: Arc<Definition>,
    thread: ThreadId,
    after: Seq,
    /// Item up to which the watcher has seen everything.
    seen: Option<EventId>,
    /// Entry up to which to read the log now; `None` to read to its end.
    upto: Option<Seq>,
    watch: Option<LogFollower>,
    modes: Option<BTreeSet<StreamMode>>,
    ready: VecDeque<Event>,
    /// Live events from before this watcher subscribed, held back until the log is read.
    before: Option<Vec<LiveEvent>>,
    /// What the bus had for this watcher when it was first asked for an event; see [`Events::take_waiting`].
    waiting: Waiting,
    live_filter: LiveFilter,
    live_messages: Box<dyn Subscription>,
    driver: LocalDriver,
}

/// Messages that arrived before the first call of [`Events::next`].
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

impl Events {
    pub(crate) fn new(
        driver: LocalDriver,
        graph: Arc<Definition>,
        thread: ThreadId,
        after: Seq,
    ) -> Self {
        let live_messages = driver.live_bus().subscribe(&thread);
        Self {
            driver,
            graph,
            thread,
            after,
            seen: None,
            upto: None,
            watch: None,
            modes: None,
            ready: VecDeque::new(),
            before: None,
            waiting: Waiting::Unread,
            live_filter: LiveFilter::default(),
            live_messages,
        }
    }

    /// Skips the items up to this one.
    pub(crate) fn seen(mut self, id: EventId) -> Self {
        self.seen = Some(id);
        self
    }

    fn store(&self) -> &RetryingCheckpointer {
        self.driver.store()
    }

    /// Restricts log items to these modes. Stops of runs and live events are always delivered.
    #[must_use]
    pub fn only(mut self, modes: impl IntoIterator<Item = StreamMode>) -> Self {
        self.modes = Some(modes.into_iter().collect());
        self
    }

    /// Returns the next event, waiting for it if necessary.
    pub async fn next(&mut self) -> Result<Event, DriveError> {
        if matches!(self.waiting, Waiting::Unread) {
            self.take_waiting();
        }
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.read().await? {
                continue;
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
    pub async fn stored(mut self) -> Result<Vec<StreamEvent>, DriveError> {
        while self.read().await? {}
        let seen = |event| match event {
            Event::Logged(seen) => Some(seen),
            Event::Live(_) | Event::Replaced { .. } => None,
        };
        Ok(self.ready.into_iter().filter_map(seen).collect())
    }

    /// Reads the next batch of entries, up to `upto`. Returns false if there was none.
    async fn read(&mut self) -> Result<bool, DriveError> {
        let wanted = match self.upto {
            Some(upto) => upto.0.saturating_sub(self.after.0).min(u64::from(BATCH)),
            None => u64::from(BATCH),
        };
        if wanted == 0 {
            return Ok(false);
        }
        let limit = u32::try_from(wanted).unwrap_or(BATCH);
        let entries = self
            .store()
            .entries(&self.thread, self.after, limit)
            .await?;
        for stored in &entries {
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
        let wanted = |seen: &StreamEvent| match (&self.modes, seen.what.mode()) {
            (Some(modes), Some(mode)) => modes.contains(&mode),
            _ => true,
        };
        for seen in seen {
            if let Some(task) = self.live_filter.told(&seen.what) {
                self.ready.push_back(Event::Replaced { task });
            }
            let (is_wanted, event) = (wanted(&seen), Event::Logged(seen));
            if is_wanted && event.id() > self.seen {
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
        follower_at(self.store(), &self.graph, &self.thread, self.after).await
    }
}

/// Starts to follow the log of a thread after an entry.
pub(crate) async fn follower_at(
    store: &RetryingCheckpointer,
    graph: &Arc<Definition>,
    thread: &ThreadId,
    seq: Seq,
) -> Result<LogFollower, DriveError> {
    let history = match seq {
        Seq(0) => History::default(),
        seq => store.load_at(thread, seq).await?,
    };
    Ok(LogFollower::after(graph, thread, &history)?)
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("thread", &self.thread)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
