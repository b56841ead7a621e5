//! Watching a thread: the stored log from any point on, then what happens live.
//!
//! The log is the truth and live notices only wake the watcher, so nothing is lost, repeated or
//! reordered however often one leaves and comes back, from whatever process, and whatever becomes of the
//! [wire](crate::Wire) that carries the notices.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use superstep_core::checkpoint::format::{Change, Entry};
use superstep_core::checkpoint::{History, StoredBody};
use superstep_core::driver::LiveEvent;
use superstep_core::graph::Definition;
use superstep_core::run::{Counts, Seen, Showing, StreamMode, Watch};
use superstep_core::{Seq, TaskId, ThreadId};

use crate::drive::DriveError;
use crate::drive::LocalDriver;
use crate::patient::Patient;
use crate::wire::{Heard, Notice, Subscription};

/// Something that happened on a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// From the log. Numbered, and the same for everybody who ever looks.
    Seen(Seen),
    /// Shown by a running node just now. Not in the log (yet), and it may be lost: [`LiveEvent::index`] tells of gaps.
    ///
    /// It stands until the log tells that its task has ended, or until it is [replaced](Event::Replaced). Events that were
    /// replaced before they came here are not given at all.
    Live(LiveEvent),
    /// Whatever this task has shown live is void: it failed and is tried again, or runs again after a crash or an answer, and
    /// shows everything again.
    Replaced {
        /// The task.
        task: TaskId,
    },
}

/// The events of a thread. Never ends by itself: a [`Sight::Stopped`](superstep_core::run::Sight) says that a run did.
pub struct Events {
    graph: Arc<Definition>,
    thread: ThreadId,
    after: Seq,
    /// How far the log is wanted now; none for all there is.
    upto: Option<Seq>,
    watch: Option<Watch>,
    modes: Option<BTreeSet<StreamMode>>,
    ready: VecDeque<Event>,
    /// What was shown before this watcher came, until the log is read.
    before: Option<Vec<LiveEvent>>,
    showing: Showing,
    notices: Box<dyn Subscription>,
    driver: LocalDriver,
}

/// How many entries are read at once.
const BATCH: u32 = 64;
/// How long an entry that another process wrote may go unnoticed, if nobody tells of those.
const POLL: Duration = Duration::from_millis(250);
/// And how long if somebody does, for what is told may be lost.
const POLL_RARELY: Duration = Duration::from_secs(2);

impl Events {
    pub(crate) fn new(
        driver: LocalDriver,
        graph: Arc<Definition>,
        thread: ThreadId,
        after: Seq,
    ) -> Self {
        let notices = driver.wire().subscribe(&thread);
        Self {
            driver,
            graph,
            thread,
            after,
            upto: None,
            watch: None,
            modes: None,
            ready: VecDeque::new(),
            before: None,
            showing: Showing::default(),
            notices,
        }
    }

    fn store(&self) -> &Patient {
        self.driver.store()
    }

    /// Only these modes, and the stops of runs.
    #[must_use]
    pub fn only(mut self, modes: impl IntoIterator<Item = StreamMode>) -> Self {
        self.modes = Some(modes.into_iter().collect());
        self
    }

    /// The next event. Waits for it if need be.
    pub async fn next(&mut self) -> Result<Event, DriveError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if self.read().await? {
                continue;
            }
            if self.before.is_some() {
                self.catch_up().await?;
                continue;
            }
            let poll = match self.notices.hears_all() {
                true => POLL_RARELY,
                false => POLL,
            };
            match tokio::time::timeout(poll, self.notices.next()).await {
                Ok(Heard::Now(Notice::Live(event))) => self.show(event),
                // Up to this one and not further, so that what was shown live stays before what came after it.
                Ok(Heard::Now(Notice::Entry(seq))) => self.upto = Some(seq),
                // What of it counts, the log tells.
                Ok(Heard::Before(events)) => {
                    self.before = Some(events);
                    self.upto = None;
                }
                // Behind the live notices, or another process writes: the store has everything.
                Ok(Heard::Missed) | Err(_) => self.upto = None,
            }
        }
    }

    fn show(&mut self, event: LiveEvent) {
        match self.showing.see(&event) {
            Counts::No => return,
            Counts::Anew => self.ready.push_back(Event::Replaced { task: event.task }),
            Counts::Yes => {}
        }
        self.ready.push_back(Event::Live(event));
    }

    /// The log is read: shows what tasks that are still under way have shown before this watcher came.
    async fn catch_up(&mut self) -> Result<(), DriveError> {
        if self.watch.is_none() {
            self.watch = Some(self.begin().await?);
        }
        let under_way = self.watch.as_ref().map(Watch::under_way);
        let under_way = under_way.unwrap_or_default();
        for event in self.before.take().unwrap_or_default() {
            if under_way.contains(&event.task) {
                self.show(event);
            }
        }
        Ok(())
    }

    /// The events that are in the log now, up to its end.
    pub async fn stored(mut self) -> Result<Vec<Seen>, DriveError> {
        while self.read().await? {}
        let seen = |event| match event {
            Event::Seen(seen) => Some(seen),
            Event::Live(_) | Event::Replaced { .. } => None,
        };
        Ok(self.ready.into_iter().filter_map(seen).collect())
    }

    /// Reads a batch of entries, as far as they are wanted; false if there is none.
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
            // Everything is read: from here on, entries are announced.
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
        let wanted = |seen: &Seen| match (&self.modes, seen.what.mode()) {
            (Some(modes), Some(mode)) => modes.contains(&mode),
            _ => true,
        };
        for seen in seen {
            if let Some(task) = self.showing.told(&seen.what) {
                self.ready.push_back(Event::Replaced { task });
            }
            if wanted(&seen) {
                self.ready.push_back(Event::Seen(seen));
            }
        }
        self.after = stored.seq;
        // A fork says where the thread goes on from; how it looks there is read again.
        let forked = entry
            .changes
            .iter()
            .any(|change| matches!(change, Change::Forked(_)));
        self.watch = (!forked).then_some(watch);
        Ok(())
    }

    async fn begin(&self) -> Result<Watch, DriveError> {
        let history = match self.after {
            Seq(0) => History::default(),
            seq => self.store().load_at(&self.thread, seq).await?,
        };
        Ok(Watch::after(&self.graph, &self.thread, &history)?)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("thread", &self.thread)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}
