//! Shares what the watchers of a thread read: in this process, an entry is decoded and followed once for all of them.
//!
//! Watchers that want the same states share a [`SharedLog`]: a follower after its newest entry, and the events of the newest
//! entries. Whoever comes to its end reads the store; the others find what was read. A watcher that falls behind the entries that
//! are kept leaves, and reads by itself until it meets the others again.
//!
//! # Why no watcher sees the history of another thread
//!
//! A deleted thread can be created again under its name, so the number of an entry does not identify it. A watcher reads its first
//! entries itself, and joins a shared log only if that has an entry with the same number and the same bytes as its own last one:
//! then both are in the same history.
//!
//! # Why no watcher waits for a slow one
//!
//! Nothing is awaited while the lock is held. A watcher that reads the store may not be polled for long; the others wait for it a
//! few milliseconds, and then read themselves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use superstep_core::__private::lock;
use superstep_core::checkpoint::StoredBody;
use superstep_core::checkpoint::format::{Change, Entry};
use superstep_core::error::CheckpointError;
use superstep_core::graph::Definition;
use superstep_core::run::{LogFollower, StreamEvent, StreamEventBody};
use superstep_core::{Seq, TaskId, ThreadId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::drive::DriveError;

/// The shared logs of all watched threads of this process.
#[derive(Default)]
pub(crate) struct SharedLogs {
    threads: Mutex<BTreeMap<ThreadId, Vec<Weak<SharedLog>>>>,
}

/// The newest part of a thread's log, as watchers see it.
pub(crate) struct SharedLog {
    graph: Arc<Definition>,
    thread: ThreadId,
    states: StatesWanted,
    state: Mutex<State>,
    /// Notified when a watcher has read the store.
    has_read: Notify,
}

/// Which states the events hold: they cost as much as the states are large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatesWanted {
    pub(crate) values: bool,
    pub(crate) checkpoints: bool,
}

struct State {
    /// The newest entries, oldest first, without a gap.
    recent: VecDeque<Arc<FollowedEntry>>,
    /// Size of the recent entries, in bytes.
    bytes: usize,
    /// After the newest of them; `None` after a fork, which continues from an older state, and after an error.
    follower: Option<LogFollower>,
    /// Since when a watcher reads the store.
    reading: Option<Instant>,
}

/// An entry with its events.
pub(crate) struct FollowedEntry {
    /// The entry before it in the log.
    before: Seq,
    pub(crate) seq: Seq,
    body: Vec<u8>,
    pub(crate) events: Vec<StreamEvent>,
    /// Whether the thread continues from an older state.
    pub(crate) forks: bool,
}

/// What a shared log has for a watcher.
pub(crate) enum Found {
    /// The entries after its place.
    Entries(Vec<Arc<FollowedEntry>>),
    /// Nothing yet: it is at the end.
    End,
    /// Nothing ever: it fell behind, or the log ended.
    Lost,
}

/// Number of entries to keep.
const ENTRIES_MAX: usize = 64;
/// Their largest size in bytes, unless the newest one is larger.
const BYTES_MAX: usize = 1024 * 1024;
/// How long a watcher waits for another one that reads the store.
const TURN_MAX: Duration = Duration::from_millis(10);

impl SharedLogs {
    /// Joins a log that has this entry. If there is none, and `creates` is set or there is no other log of the thread, makes one
    /// of the follower, which is after the entry.
    pub(crate) fn join(
        self: &Arc<Self>,
        of: (&Arc<Definition>, &ThreadId, StatesWanted),
        entry: &StoredBody,
        follower: &mut Option<LogFollower>,
        creates: bool,
    ) -> Option<Member> {
        let (graph, thread, states) = of;
        let mut threads = lock(&self.threads);
        let logs = threads.entry(thread.clone()).or_default();
        let alike = |log: &Arc<SharedLog>| Arc::ptr_eq(&log.graph, graph) && log.states == states;
        let mut has_others = false;
        for log in logs.iter().filter_map(Weak::upgrade).filter(alike) {
            if log.has(entry) {
                *follower = None;
                return Some(Member::new(self, log));
            }
            has_others = true;
        }
        if has_others && !creates {
            return None;
        }
        let log = Arc::new(SharedLog {
            graph: graph.clone(),
            thread: thread.clone(),
            states,
            state: Mutex::new(State::new(entry, follower.take()?)),
            has_read: Notify::new(),
        });
        logs.push(Arc::downgrade(&log));
        Some(Member::new(self, log))
    }
}

impl fmt::Debug for SharedLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLogs").finish_non_exhaustive()
    }
}

/// A watcher's share of a log.
pub(crate) struct Member {
    logs: Arc<SharedLogs>,
    /// `None` only while this is dropped.
    log: Option<Arc<SharedLog>>,
}

impl Member {
    fn new(logs: &Arc<SharedLogs>, log: Arc<SharedLog>) -> Self {
        Self {
            logs: logs.clone(),
            log: Some(log),
        }
    }

    pub(crate) fn log(&self) -> &Arc<SharedLog> {
        self.log.as_ref().expect("only a drop takes it")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let Some(log) = self.log.take() else { return };
        let thread = log.thread.clone();
        let mut threads = lock(&self.logs.threads);
        // Under the lock, so that of two members that leave at once the second one finds that it is the last.
        drop(log);
        if let Some(logs) = threads.get_mut(&thread) {
            logs.retain(|log| log.strong_count() > 0);
            if logs.is_empty() {
                threads.remove(&thread);
            }
        }
    }
}

impl SharedLog {
    pub(crate) fn states(&self) -> StatesWanted {
        self.states
    }

    fn has(&self, entry: &StoredBody) -> bool {
        let state = lock(&self.state);
        // An ended log has nothing further for whoever joins it.
        let is_there =
            |recent: &Arc<FollowedEntry>| recent.seq == entry.seq && recent.body == entry.body;
        state.follower.is_some() && state.recent.iter().rev().any(is_there)
    }

    /// Returns at most `limit` entries after a place.
    pub(crate) fn after(&self, place: Seq, limit: usize) -> Found {
        let state = lock(&self.state);
        if state.head() == Some(place) {
            return match state.follower {
                Some(_) => Found::End,
                None => Found::Lost,
            };
        }
        let first = state.recent.partition_point(|entry| entry.seq <= place);
        match state.recent.get(first) {
            Some(entry) if entry.before == place => {
                Found::Entries(state.recent.range(first..).take(limit).cloned().collect())
            }
            _ => Found::Lost,
        }
    }

    /// Returns the tasks that are under way after an entry, if it is the newest.
    pub(crate) fn under_way_at(&self, place: Seq) -> Option<BTreeSet<TaskId>> {
        let state = lock(&self.state);
        let is_here = state.head() == Some(place);
        let follower = state.follower.as_ref().filter(|_| is_here);
        follower.map(LogFollower::under_way)
    }

    /// Returns the right to read the store for all watchers; `None` after another one has read it.
    pub(crate) async fn turn(&self) -> Option<Turn<'_>> {
        let mut has_read = pin!(self.has_read.notified());
        has_read.as_mut().enable();
        {
            let mut state = lock(&self.state);
            let now = Instant::now();
            let is_taken = state.reading.is_some_and(|since| now - since < TURN_MAX);
            if !is_taken {
                state.reading = Some(now);
                return Some(Turn {
                    log: self,
                    since: now,
                });
            }
        }
        // If the time is over, the other watcher is not polled, and its turn is up.
        let _ = timeout(TURN_MAX, has_read).await;
        None
    }

    /// Follows what a watcher read after its place, and returns the entries with their events.
    pub(crate) fn follow(
        self: &Arc<Self>,
        place: Seq,
        read: Vec<StoredBody>,
    ) -> Result<Vec<Arc<FollowedEntry>>, DriveError> {
        // Nobody else needs more than the newest entry, by which others join.
        let is_alone = Arc::strong_count(self) == 1;
        let entries_max = if is_alone { 1 } else { ENTRIES_MAX };
        let mut state = lock(&self.state);
        let mut before = place;
        let mut followed = Vec::with_capacity(read.len());
        for stored in read {
            let seq = stored.seq;
            if state.head().is_some_and(|head| seq <= head) {
                // Another watcher was quicker.
                let known = state.recent.iter().find(|entry| entry.seq == seq);
                match known {
                    Some(entry) => followed.push(entry.clone()),
                    None => break,
                }
            } else {
                let Some(mut follower) = state.follower.take() else {
                    break;
                };
                match FollowedEntry::read(stored, before, &self.thread, &mut follower) {
                    Ok(entry) => {
                        let entry = Arc::new(entry);
                        state.follower = (!entry.forks).then_some(follower);
                        state.push(entry.clone(), entries_max);
                        followed.push(entry);
                    }
                    // Each watcher comes to the error by itself.
                    Err(error) if followed.is_empty() => return Err(error),
                    Err(_) => break,
                }
            }
            before = seq;
        }
        Ok(followed)
    }
}

impl State {
    fn new(newest: &StoredBody, follower: LogFollower) -> Self {
        let newest = FollowedEntry {
            // Its events are not known, so no watcher before it may find it.
            before: newest.seq,
            seq: newest.seq,
            body: newest.body.clone(),
            events: Vec::new(),
            forks: false,
        };
        Self {
            bytes: newest.bytes(),
            recent: VecDeque::from([Arc::new(newest)]),
            follower: Some(follower),
            reading: None,
        }
    }

    fn head(&self) -> Option<Seq> {
        self.recent.back().map(|entry| entry.seq)
    }

    fn push(&mut self, entry: Arc<FollowedEntry>, entries_max: usize) {
        self.bytes += entry.bytes();
        self.recent.push_back(entry);
        while self.recent.len() > entries_max || self.recent.len() > 1 && self.bytes > BYTES_MAX {
            let oldest = self.recent.pop_front();
            self.bytes -= oldest.map_or(0, |entry| entry.bytes());
        }
    }
}

impl FollowedEntry {
    /// Decodes an entry, and returns it with its events.
    pub(crate) fn read(
        stored: StoredBody,
        before: Seq,
        thread: &ThreadId,
        follower: &mut LogFollower,
    ) -> Result<Self, DriveError> {
        let entry = Entry::read(&stored, thread).map_err(CheckpointError::from)?;
        let events = follower.see(stored.seq, &entry)?;
        let is_fork = |change: &Change| matches!(change, Change::Forked(_));
        Ok(Self {
            before,
            seq: stored.seq,
            body: stored.body,
            events,
            forks: entry.changes.iter().any(is_fork),
        })
    }

    /// Returns the stored entry, without its events.
    pub(crate) fn into_stored(self) -> StoredBody {
        StoredBody {
            seq: self.seq,
            body: self.body,
        }
    }

    fn bytes(&self) -> usize {
        let states = self.events.iter().map(|event| match &event.what {
            StreamEventBody::Values(values) | StreamEventBody::Checkpoint { values, .. } => {
                values.as_bytes().len()
            }
            _ => 0,
        });
        self.body.len() + states.sum::<usize>()
    }
}

/// The right to read the store for all watchers of a log, until this is dropped.
pub(crate) struct Turn<'a> {
    log: &'a SharedLog,
    since: Instant,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.log.state);
        if state.reading == Some(self.since) {
            state.reading = None;
        }
        drop(state);
        self.log.has_read.notify_waiters();
    }
}
