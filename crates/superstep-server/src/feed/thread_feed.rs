//! The feed of one thread: a ring of events, what fills it, and those who wait for more.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use superstep::__private::lock;
use superstep::graph::Definition;
use superstep::{RunId, ThreadId};
use tokio::sync::watch;

use crate::feed::FeedId;
use crate::feed::event::{FeedBody, FeedEvent, RunStop};
use crate::feed::log_source::EntryReader;
use crate::feed::reader::ReaderPlace;
use crate::feed::ring::EventRing;

/// The feed of one thread. One reader fills it, however many clients read it.
#[derive(Debug)]
pub(super) struct ThreadFeed {
    pub(super) thread: ThreadId,
    state: Mutex<FeedState>,
    /// Changes whenever the ring or the state of the reader does.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct FeedState {
    ring: EventRing,
    /// Graph of the thread; `None` until a run begins on it.
    graph: Option<Arc<Definition>>,
    reading: Reading,
    /// Number of times that something was requested of the thread.
    requests: u64,
    /// The last run of the log, if the reader started after it.
    run_before: Option<RunId>,
    /// When something last happened.
    touched: Instant,
}

/// What reads a thread.
#[derive(Debug)]
enum Reading {
    /// Nothing has read it yet.
    Unread,
    /// A task reads it.
    Active,
    /// Nothing reads it, because no run is active; a reader would continue here.
    Resting(Box<ReaderPlace>),
}

/// How to start the reader of a thread.
pub(super) struct ReaderStart {
    pub(super) graph: Arc<Definition>,
    /// Which thread of this name the reader is for, see [`ThreadFeed::is_current`].
    pub(super) generation: u64,
    /// A reader that has subscribed to what comes, and its place, if one was at work before; `None` if nothing is known of the
    /// thread.
    pub(super) place: Option<(EntryReader, ReaderPlace)>,
}

/// Where a run is, as far as the ring shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunProgress {
    /// It began and has not stopped.
    Running,
    /// It waits for answers, or at a breakpoint.
    Paused,
    /// It stopped at this time.
    Ended(superstep::Timestamp),
}

impl ThreadFeed {
    pub(super) fn new(thread: &ThreadId) -> Self {
        Self {
            thread: thread.clone(),
            state: Mutex::new(FeedState {
                ring: EventRing::default(),
                graph: None,
                reading: Reading::Unread,
                requests: 0,
                run_before: None,
                touched: Instant::now(),
            }),
            changed: watch::Sender::new(0),
        }
    }

    /// Returns how to start a reader, unless one is at work or the thread has no graph. The caller must start it.
    ///
    /// `subscribe` is called before this returns, so what happens from now on is read.
    pub(super) fn start(
        &self,
        graph: Option<&Arc<Definition>>,
        subscribe: impl FnOnce(&Arc<Definition>, &ReaderPlace) -> EntryReader,
    ) -> Option<ReaderStart> {
        let mut state = lock(&self.state);
        state.requests += 1;
        state.touched = Instant::now();
        if let Some(graph) = graph {
            state.graph = Some(graph.clone());
        }
        let graph = state.graph.clone()?;
        let place = match std::mem::replace(&mut state.reading, Reading::Active) {
            Reading::Active => return None,
            Reading::Unread => None,
            Reading::Resting(place) => Some((subscribe(&graph, &place), *place)),
        };
        Some(ReaderStart {
            graph,
            generation: state.ring.generation(),
            place,
        })
    }

    /// Whether the thread was not deleted since a reader of this generation started. If it was, the reader must stop: another
    /// one may already read a new thread of the same name.
    pub(super) fn is_current(&self, generation: u64) -> bool {
        lock(&self.state).ring.generation() == generation
    }

    /// Takes in where a reader that knew nothing starts, and the last run before that, if there is one.
    pub(super) fn started(&self, generation: u64, floor: FeedId, run_before: Option<RunId>) {
        let mut state = lock(&self.state);
        if state.ring.generation() != generation {
            return;
        }
        state.ring.start_after(floor);
        state.run_before = run_before;
        drop(state);
        self.notify();
    }

    /// Lets the reader stop, and returns nothing. If something was requested of the thread since `requests` was read, the
    /// reader must continue, and gets its place back.
    pub(super) fn rest(
        &self,
        generation: u64,
        place: ReaderPlace,
        requests: u64,
    ) -> Option<ReaderPlace> {
        let mut state = lock(&self.state);
        if state.ring.generation() != generation {
            return None;
        }
        if state.requests != requests {
            return Some(place);
        }
        state.reading = Reading::Resting(Box::new(place));
        state.touched = Instant::now();
        None
    }

    /// Returns the number of times that something was requested of the thread.
    pub(super) fn requests(&self) -> u64 {
        lock(&self.state).requests
    }

    /// Adds events, and wakes those who wait for them.
    pub(super) fn push(&self, generation: u64, events: Vec<Arc<FeedEvent>>) {
        if events.is_empty() {
            return;
        }
        let mut state = lock(&self.state);
        if state.ring.generation() != generation {
            return;
        }
        for event in events {
            state.ring.push(event);
        }
        state.touched = Instant::now();
        drop(state);
        self.notify();
    }

    fn notify(&self) {
        self.changed
            .send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// Drops everything that is known: the thread was deleted. A reader that is at work stops by itself.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.state);
        state.ring.begin_anew();
        state.graph = None;
        state.run_before = None;
        state.reading = Reading::Unread;
    }

    /// Drops the events of a thread on which nothing has happened for a while. Returns whether it did.
    pub(super) fn sweep(&self, age: Duration) -> bool {
        let mut state = lock(&self.state);
        if matches!(state.reading, Reading::Active) || state.touched.elapsed() < age {
            return false;
        }
        state.ring.reset();
        state.run_before = None;
        // The place holds the state of the thread. A reader that starts again reads it from the store.
        state.reading = Reading::Unread;
        true
    }

    /// Returns when something last happened.
    pub(super) fn touched(&self) -> Instant {
        lock(&self.state).touched
    }

    /// Returns about how many bytes the feed takes.
    pub(super) fn bytes(&self) -> usize {
        FEED_BYTES + lock(&self.state).ring.bytes()
    }

    /// Calls a function with the ring.
    pub(super) fn with_ring<T>(&self, look: impl FnOnce(&EventRing) -> T) -> T {
        look(&lock(&self.state).ring)
    }

    /// Whether the reader has found its place in the thread: then the ring says from where on it is complete.
    pub(super) fn is_settled(&self) -> bool {
        lock(&self.state).ring.floor().is_some()
    }

    /// Returns the graph of the thread, if one is known.
    pub(super) fn graph(&self) -> Option<Arc<Definition>> {
        lock(&self.state).graph.clone()
    }

    /// Returns the last run of the log, if it is not in the ring because the reader started after it.
    pub(super) fn run_before(&self) -> Option<RunId> {
        lock(&self.state).run_before
    }

    /// Subscribes to changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// About what a feed takes without events: the place of its reader has the state of the thread.
const FEED_BYTES: usize = 4_096;

/// Returns where the run of these events is.
pub(super) fn progress<'a>(events: impl Iterator<Item = &'a Arc<FeedEvent>>) -> RunProgress {
    let mut progress = RunProgress::Running;
    for event in events {
        match &event.body {
            FeedBody::RunBegan => progress = RunProgress::Running,
            FeedBody::Stopped(RunStop::Paused) => progress = RunProgress::Paused,
            FeedBody::Stopped(_) => progress = RunProgress::Ended(event.at),
            _ => {}
        }
    }
    progress
}
