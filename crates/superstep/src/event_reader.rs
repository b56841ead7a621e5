//! Reads the events of a thread: the stored log, then live messages.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use superstep_core::checkpoint::StoredBody;
use superstep_core::driver::LiveEvent;
use superstep_core::graph::Definition;
use superstep_core::run::{
    LiveFilter, LiveVerdict, LogFollower, StreamEvent, StreamEventBody, StreamMode,
};
use superstep_core::{Seq, ThreadId};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::drive::{DriveError, LocalDriver};
use crate::events::{Event, EventId};
use crate::live_bus::{LiveDelivery, LiveMessage, Subscription};
use crate::retrying_checkpointer::RetryingCheckpointer;
use crate::shared_log::{FollowedEntry, Found, Member, StatesWanted};

/// Reads the log of a thread and listens to its live messages.
pub(crate) struct EventReader {
    graph: Arc<Definition>,
    thread: ThreadId,
    after: Seq,
    /// Item up to which the watcher has seen everything.
    seen: Option<EventId>,
    /// Entry up to which to read the log now; `None` to read to its end.
    upto: Option<Seq>,
    /// Follows the log while this reads by itself.
    watch: Option<LogFollower>,
    /// Share of the log that other watchers read too.
    shared: Option<Member>,
    /// The last entry that this read by itself. The shared log that has it is of the same history.
    last: Option<StoredBody>,
    /// How often there was a shared log to join, and this had read further, or not as far.
    missed: u32,
    ready: VecDeque<Event>,
    /// Whether entries were read since the last batch.
    has_read: bool,
    /// Live events from before this watcher subscribed, held back until the log is read.
    before: Option<Vec<LiveEvent>>,
    /// What the bus had for this watcher when it was first asked for an event; see [`EventReader::take_waiting`].
    waiting: Waiting,
    live_filter: LiveFilter,
    live_messages: Box<dyn Subscription>,
    driver: LocalDriver,
    /// Modes that the watcher wants; `None` for all. The states of others are not encoded.
    modes: Option<BTreeSet<StreamMode>>,
    /// When to look into the log if the bus is silent. Set again only when it fires, because setting a timer is expensive.
    next_poll: Option<Pin<Box<Sleep>>>,
    /// When the bus last delivered a message.
    heard: Instant,
}

/// What was read at once.
pub(crate) struct Batch {
    /// May be empty: entries can hold nothing that is wanted.
    pub(crate) events: VecDeque<Event>,
    /// Entry up to which the log was read.
    pub(crate) passed: Seq,
}

/// Entries that were read and not taken yet.
enum Fetched {
    /// By all watchers of the thread.
    Shared(Vec<Arc<FollowedEntry>>),
    Own(Vec<StoredBody>),
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
/// How often a watcher tries to meet others at one entry before it shares its own log.
const MISSED_MAX: u32 = 3;
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
            shared: None,
            last: None,
            missed: 0,
            ready: VecDeque::new(),
            has_read: false,
            before: None,
            waiting: Waiting::Unread,
            live_filter: LiveFilter::default(),
            live_messages,
            modes: None,
            next_poll: None,
            heard: Instant::now(),
        }
    }

    /// Leaves out the states that only other modes show.
    pub(crate) fn restrict(&mut self, modes: &BTreeSet<StreamMode>) {
        self.modes = Some(modes.clone());
        self.watch = self.watch.take().map(|watch| watch.with_states_of(modes));
        let states = self.states_wanted();
        self.shared
            .take_if(|shared| shared.log().states() != states);
    }

    fn states_wanted(&self) -> StatesWanted {
        let wants = |mode| {
            self.modes
                .as_ref()
                .is_none_or(|modes| modes.contains(&mode))
        };
        StatesWanted {
            values: wants(StreamMode::Values),
            checkpoints: wants(StreamMode::Checkpoints),
        }
    }

    fn store(&self) -> &RetryingCheckpointer {
        self.driver.store()
    }

    /// Returns the next events, waiting for entries or live events if necessary.
    pub(crate) async fn next_batch(&mut self) -> Result<Batch, DriveError> {
        if matches!(self.waiting, Waiting::Unread) {
            self.take_waiting();
        }
        loop {
            if std::mem::take(&mut self.has_read) || !self.ready.is_empty() {
                return Ok(Batch {
                    events: std::mem::take(&mut self.ready),
                    passed: self.after,
                });
            }
            match self.read_between_live().await {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) => return Err(error),
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
            match self.next_message().await {
                Some(LiveDelivery::Now(LiveMessage::Live(event))) => self.show(event),
                // Up to this entry and not further: what nodes showed live comes before what was stored after it.
                Some(LiveDelivery::Now(LiveMessage::Entry(seq))) => self.upto = Some(seq),
                // The log decides which of them still count.
                Some(LiveDelivery::Before(events)) => {
                    self.before = Some(events);
                    self.upto = None;
                }
                // The bus lost messages, or was silent for a while: the store has everything.
                Some(LiveDelivery::Missed) | None => self.upto = None,
            }
        }
    }

    /// Returns the next message of the bus; `None` if it was silent for so long that the log is to be read.
    async fn next_message(&mut self) -> Option<LiveDelivery> {
        let poll = match self.live_messages.hears_all() {
            true => POLL_RARELY,
            false => POLL,
        };
        let begun = Instant::now();
        let next_poll = self
            .next_poll
            .get_or_insert_with(|| Box::pin(sleep_until(begun + poll)));
        loop {
            tokio::select! {
                biased;
                delivery = self.live_messages.next() => {
                    self.heard = Instant::now();
                    return Some(delivery);
                }
                () = &mut *next_poll => {
                    let due = self.heard + poll;
                    let is_due = due <= Instant::now();
                    next_poll.as_mut().reset(if is_due { Instant::now() + poll } else { due });
                    if is_due {
                        return None;
                    }
                }
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
        let shared = self.shared.as_ref();
        let shared = shared.and_then(|shared| shared.log().under_way_at(self.after));
        let under_way = match (shared, &self.watch) {
            (Some(under_way), _) => under_way,
            (None, Some(watch)) => watch.under_way(),
            (None, None) => self.begin(self.after).await?.under_way(),
        };
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
        let entries = self.store_entries().await?;
        self.take_all(Fetched::Own(entries)).await
    }

    /// Does what [`read`](Self::read) does, together with the other watchers of the thread. If there is no limit, the bus says where
    /// it is: what was stored while the log was read comes after what its nodes showed.
    async fn read_between_live(&mut self) -> Result<bool, DriveError> {
        let is_limited = self.upto.is_some();
        self.join();
        let mut fetched = self.fetch().await?;
        if !is_limited && self.before.is_none() && matches!(self.waiting, Waiting::Shown) {
            self.take_waiting();
            if let Some(upto) = self.upto {
                match &mut fetched {
                    Fetched::Shared(entries) => entries.retain(|entry| entry.seq <= upto),
                    Fetched::Own(entries) => entries.retain(|stored| stored.seq <= upto),
                }
            }
        }
        self.take_all(fetched).await
    }

    /// Shares the log with other watchers, if this one is in the same history.
    fn join(&mut self) {
        let Some(last) = &self.last else { return };
        if self.shared.is_some() || self.watch.is_none() {
            return;
        }
        let of = (&self.graph, &self.thread, self.states_wanted());
        let creates = self.missed >= MISSED_MAX;
        let logs = self.driver.shared_logs();
        self.shared = logs.join(of, last, &mut self.watch, creates);
        match self.shared {
            Some(_) => (self.last, self.missed) = (None, 0),
            None => self.missed += 1,
        }
    }

    /// Returns the next batch of entries, up to `upto`.
    async fn fetch(&mut self) -> Result<Fetched, DriveError> {
        if let Some(shared) = &self.shared {
            let log = shared.log();
            loop {
                let wanted = self.wanted();
                if wanted == 0 {
                    return Ok(Fetched::Shared(Vec::new()));
                }
                match log.after(self.after, wanted as usize) {
                    Found::Entries(entries) => return Ok(Fetched::Shared(entries)),
                    Found::Lost => break,
                    Found::End => {}
                }
                if let Some(_turn) = log.turn().await {
                    let entries = self.store_entries().await?;
                    let is_end = entries.is_empty();
                    let followed = log.follow(self.after, entries)?;
                    if is_end || !followed.is_empty() {
                        return Ok(Fetched::Shared(followed));
                    }
                    // The shared log ended meanwhile, or went on without this watcher.
                    break;
                }
            }
            self.shared = None;
        }
        Ok(Fetched::Own(self.store_entries().await?))
    }

    /// Returns how many entries to read, up to `upto`.
    fn wanted(&self) -> u32 {
        let left = self.upto.map(|upto| upto.0.saturating_sub(self.after.0));
        left.map_or(BATCH, |left| {
            u32::try_from(left).unwrap_or(BATCH).min(BATCH)
        })
    }

    /// Reads the next batch of entries from the store, up to `upto`.
    async fn store_entries(&self) -> Result<Vec<StoredBody>, DriveError> {
        match self.wanted() {
            0 => Ok(Vec::new()),
            limit => Ok((self.store().entries(&self.thread, self.after, limit)).await?),
        }
    }

    /// Returns false if there was no entry.
    async fn take_all(&mut self, fetched: Fetched) -> Result<bool, DriveError> {
        let before = self.after;
        match fetched {
            Fetched::Shared(entries) => {
                for entry in entries {
                    for event in &entry.events {
                        if self.wants(event) {
                            self.ready.push_back(Event::Logged(event.clone()));
                        }
                    }
                    self.after = entry.seq;
                    // The next read starts from a snapshot.
                    self.shared.take_if(|_| entry.forks);
                }
            }
            Fetched::Own(entries) => {
                for stored in entries {
                    match self.take(stored).await {
                        // What was read before the error comes first. The next read fails again.
                        Err(_) if self.after > before => break,
                        taken => taken?,
                    }
                }
            }
        }
        let has_read = self.after > before;
        self.has_read |= has_read;
        if !has_read {
            // The end of the log is reached; the bus announces further entries.
            self.upto = Some(self.after);
        }
        Ok(has_read)
    }

    /// Follows an entry that this read by itself.
    async fn take(&mut self, stored: StoredBody) -> Result<(), DriveError> {
        let mut watch = match self.watch.take() {
            Some(watch) => watch,
            None => self.begin(self.after).await?,
        };
        let mut entry = FollowedEntry::read(stored, self.after, &self.thread, &mut watch)?;
        let mut events = std::mem::take(&mut entry.events);
        let fails = |event: &StreamEvent| matches!(event.what, StreamEventBody::AttemptFailed(_));
        if events.iter().any(fails) {
            // What a failure makes void comes right before it.
            for event in events {
                if self.wants(&event) {
                    self.ready.push_back(Event::Logged(event));
                }
            }
        } else {
            // Events are large, and this moves each once.
            events.retain(|event| self.wants(event));
            self.ready.extend(events.into_iter().map(Event::Logged));
        }
        self.after = entry.seq;
        // A fork names the entry from which the thread continues, not the state there: the next read starts from a snapshot.
        self.watch = (!entry.forks).then_some(watch);
        self.last = Some(entry.into_stored());
        Ok(())
    }

    /// Notes what an item of the log says about live events, and returns whether the watcher wants the item.
    fn wants(&mut self, event: &StreamEvent) -> bool {
        if let Some(task) = self.live_filter.told(&event.what) {
            self.ready.push_back(Event::Replaced { task });
        }
        let id = EventId {
            seq: event.seq,
            index: event.index,
        };
        let is_of_mode = |modes: &BTreeSet<StreamMode>| {
            let mode = event.what.mode();
            mode.is_none_or(|mode| modes.contains(&mode))
        };
        Some(id) > self.seen && self.modes.as_ref().is_none_or(is_of_mode)
    }

    async fn begin(&self, after: Seq) -> Result<LogFollower, DriveError> {
        let follower = follower_at(self.store(), &self.graph, &self.thread, after).await?;
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
