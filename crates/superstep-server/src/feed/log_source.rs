//! Reads a thread for its feed: whole entries, and what nodes show in between.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use superstep::checkpoint::format::{EntryKind, Stop};
use superstep::checkpoint::{InterruptQuery, Page};
use superstep::driver::LiveEvent;
use superstep::graph::Definition;
use superstep::registry::{Registry, RunQuery, RunStatus};
use superstep::run::{OpenInterrupt, StreamEvent, StreamEventBody, ThreadState};
use superstep::{DriveError, Event, EventId, Events, RunId, Runtime, Seq, TaskId, ThreadId};

use crate::feed::FeedId;
use crate::feed::event::FeedEvent;
use crate::feed::log_converter::LogConverter;
use crate::wire::{BEFORE_INPUT, CheckpointId};
use crate::{Shared, history, wire};

/// Where the events of a thread come from. It does not hold the server, which holds the tasks that use it.
pub(super) struct LogSource {
    pub(super) runtime: Runtime,
    registry: Arc<dyn Registry>,
    streamed_entries: Arc<AtomicU64>,
    pub(super) graph: Arc<Definition>,
    pub(super) thread: ThreadId,
}

impl LogSource {
    pub(super) fn new(app: &Shared, graph: &Arc<Definition>, thread: &ThreadId) -> Self {
        Self {
            runtime: app.runtime.clone(),
            registry: app.queue.registry().clone(),
            streamed_entries: app.counters.streamed_entries.clone(),
            graph: graph.clone(),
            thread: thread.clone(),
        }
    }

    /// Starts to read after an item of the log. What happens from now on is not missed.
    pub(super) fn read_after(&self, after: EventId) -> EntryReader {
        EntryReader {
            events: self.runtime.events_of(&self.graph, &self.thread, after),
            peeked: VecDeque::new(),
        }
    }

    /// Whether a run of the thread is pending or running.
    pub(super) async fn has_active_run(&self) -> Result<bool, DriveError> {
        let query = RunQuery {
            tenant: self.thread.tenant().to_owned(),
            thread: Some(self.thread.clone()),
            statuses: vec![RunStatus::Pending, RunStatus::Running],
            page: Page {
                limit: 1,
                offset: 0,
            },
            ..RunQuery::default()
        };
        Ok(!self.registry.runs(&query).await?.is_empty())
    }

    /// Whether a run is pending or running, or was a moment ago.
    pub(super) async fn is_recent(&self, run: RunId) -> Result<bool, DriveError> {
        let row = self.registry.run(self.thread.tenant(), run).await?;
        let now = self.runtime.now();
        let is_recent = |updated: i64| now.0.saturating_sub(updated) < RECENT_MS;
        Ok(row.is_some_and(|row| row.status.is_active() || is_recent(row.updated.0)))
    }

    /// Converts an entry, after reading what it refers to.
    pub(super) async fn convert(
        &self,
        converter: &mut LogConverter,
        items: &[StreamEvent],
    ) -> Result<Vec<Arc<FeedEvent>>, DriveError> {
        self.streamed_entries.fetch_add(1, Ordering::Relaxed);
        let forked = items.iter().find(|item| item.kind == EntryKind::Fork);
        if let Some(forked) = forked {
            // The log does not say what the state is there; the snapshot with the entry does.
            let state = self
                .runtime
                .state_of(&self.graph, &self.thread, Some(forked.seq));
            if let Some(state) = state.await? {
                self.continue_from(converter, &state).await?;
            }
        }
        let paused = items.iter().find_map(|item| match &item.what {
            StreamEventBody::Stopped(Stop::Paused { asked }) => Some(asked),
            _ => None,
        });
        let mut open = Vec::new();
        if let Some(asked) = paused {
            let is_asked = |open: &OpenInterrupt| asked.contains(&open.interrupt.id);
            open = self.interrupts(true).await?;
            open.retain(is_asked);
            if open.len() < asked.len() {
                // Some were answered since.
                open = self.interrupts(false).await?;
                open.retain(is_asked);
            }
            // In the order of their tasks.
            let place = |open: &OpenInterrupt| asked.iter().position(|id| *id == open.interrupt.id);
            open.sort_by_key(place);
            wire::first_of_each_task(&mut open);
        }
        Ok(converter.entry(items, &open))
    }

    /// Continues a conversion from a state that was read, and from those of the subgraphs that the thread is inside of there.
    pub(super) async fn continue_from(
        &self,
        converter: &mut LogConverter,
        state: &ThreadState,
    ) -> Result<(), DriveError> {
        converter.continue_from(state);
        let above = CheckpointId {
            seq: state.seq.next(),
            place: BEFORE_INPUT,
        };
        let (runtime, graph, thread) = (&self.runtime, &self.graph, &self.thread);
        if state.kind != EntryKind::Fork {
            // The entry may be one that changed a subgraph, or a stop: then an older one is the checkpoint.
            let page = history::read_from(runtime, graph, thread, Some(above), 1, |_| true);
            if let Some(found) = page.await?.checkpoints.first() {
                converter.continue_at(found);
            }
        }
        let frames = state.next.iter().map(|task| &task.frame);
        let inside: BTreeSet<_> = frames.filter(|frame| !frame.is_root()).collect();
        for frame in inside {
            let found = history::of_subgraph(runtime, graph, thread, frame, Some(above), 1).await?;
            if let Some(found) = found.first() {
                converter.continue_inside(frame, &found.checkpoint);
            }
        }
        Ok(())
    }

    async fn interrupts(&self, open_only: bool) -> Result<Vec<OpenInterrupt>, DriveError> {
        let query = InterruptQuery {
            tenant: self.thread.tenant().to_owned(),
            thread: Some(self.thread.clone()),
            open_only,
            page: Page {
                limit: INTERRUPTS_MAX,
                offset: 0,
            },
            ..InterruptQuery::default()
        };
        self.runtime.interrupts(&query).await
    }

    /// Returns the state at the entry before the first one of a run, which is the last run up to an entry; `None` if the thread
    /// begins with it.
    pub(super) async fn state_before(
        &self,
        run: RunId,
        upto: Seq,
    ) -> Result<Option<ThreadState>, DriveError> {
        let mut above = upto.next();
        loop {
            let states = self
                .runtime
                .states_of(&self.graph, &self.thread, Some(above), STATES_AT_ONCE)
                .await?;
            let is_all = states.len() < STATES_AT_ONCE as usize;
            let oldest = states.last().map(|state| state.seq);
            if let Some(before) = states.into_iter().find(|state| state.run.run != run) {
                return Ok(Some(before));
            }
            match oldest {
                Some(oldest) if !is_all => above = oldest,
                // The entries before were pruned, so the log cannot be read from its beginning.
                Some(oldest) if oldest > Seq(1) => {
                    let state = self
                        .runtime
                        .state_of(&self.graph, &self.thread, Some(oldest));
                    return state.await;
                }
                Some(_) | None => return Ok(None),
            }
        }
    }

    /// Reads the events after an id from the log, those of one run if wanted. What nodes showed live is not among them.
    ///
    /// The log is read in parts, so that a long one neither fills the memory nor holds up its reader, and only the wanted events
    /// are kept.
    pub(super) async fn replay(
        &self,
        after: FeedId,
        only: Option<RunId>,
    ) -> Result<ReplayedPart, DriveError> {
        let newest = self
            .runtime
            .state_of(&self.graph, &self.thread, None)
            .await?;
        let mut part = ReplayedPart {
            events: Vec::new(),
            through: after,
            has_more: false,
        };
        let Some(newest) = newest.filter(|newest| newest.seq.0 >= after.entry) else {
            return Ok(part);
        };
        let mut converter = LogConverter::new(&self.graph, &self.thread);
        let before = Seq(after.entry.saturating_sub(1));
        let mut start = EventId::START;
        if before > Seq(0) {
            let state = self
                .runtime
                .state_of(&self.graph, &self.thread, Some(before));
            if let Some(state) = state.await? {
                self.continue_from(&mut converter, &state).await?;
                start = end_of(before);
            }
        }
        let mut reader = self.read_after(start);
        let (mut entries, mut bytes) = (0, 0);
        loop {
            let next = tokio::time::timeout(REPLAY_STALL, reader.next()).await;
            // A thread that was deleted meanwhile never reaches its newest entry.
            let Ok(next) = next else {
                part.through = part.through.max(FeedId::end_of(newest.seq.0));
                return Ok(part);
            };
            let FeedInput::Entry { items, .. } = next? else {
                continue;
            };
            let is_wanted = |event: &Arc<FeedEvent>| {
                event.id > after && only.is_none_or(|run| event.run == run)
            };
            let events = self.convert(&mut converter, &items).await?;
            for event in events.into_iter().filter(is_wanted) {
                bytes += event.bytes;
                part.events.push(event);
            }
            let Some(read) = items.last().map(|item| item.seq) else {
                continue;
            };
            part.through = part.through.max(FeedId::end_of(read.0));
            entries += 1;
            part.has_more = read < newest.seq;
            if !part.has_more || entries >= REPLAY_ENTRIES || bytes >= REPLAY_BYTES {
                return Ok(part);
            }
        }
    }
}

/// A part of what the log has after an event.
#[derive(Debug)]
pub(super) struct ReplayedPart {
    pub(super) events: Vec<Arc<FeedEvent>>,
    /// The log was read up to here.
    pub(super) through: FeedId,
    /// Whether the log had more.
    pub(super) has_more: bool,
}

/// Returns the id after the last item of an entry.
pub(super) fn end_of(seq: Seq) -> EventId {
    EventId {
        seq,
        index: u32::MAX,
    }
}

/// What happens on a thread, by whole entries.
pub(super) struct EntryReader {
    events: Events,
    /// What was read ahead.
    peeked: VecDeque<Event>,
}

/// One thing that happened on a thread.
#[derive(Debug)]
pub(super) enum FeedInput {
    /// An entry was stored, with which the live events of these tasks became void.
    Entry {
        items: Vec<StreamEvent>,
        replaced: Vec<TaskId>,
    },
    Live(LiveEvent),
    Replaced(TaskId),
}

impl EntryReader {
    /// Returns what happens next, waiting for it if necessary. Cancel-safe. After an error, the next call tries again.
    pub(super) async fn next(&mut self) -> Result<FeedInput, DriveError> {
        let first = match self.peeked.pop_front() {
            Some(event) => event,
            None => self.events.next().await?,
        };
        match first {
            Event::Live(event) => Ok(FeedInput::Live(event)),
            // It may precede an item of the log that is the reason for it; the order of the two does not matter.
            Event::Replaced { task } => Ok(FeedInput::Replaced(task)),
            Event::Logged(item) => Ok(self.rest_of_entry(item)),
        }
    }

    /// Collects the other items of an entry. The items of an entry arrive together, so this does not wait.
    fn rest_of_entry(&mut self, first: StreamEvent) -> FeedInput {
        let seq = first.seq;
        let (mut items, mut replaced) = (vec![first], Vec::new());
        // Between the items of an entry there may be notices about tasks; after the last item, those belong to what follows.
        let mut notices: VecDeque<Event> = VecDeque::new();
        loop {
            let next = match self.peeked.pop_front() {
                Some(event) => Some(Ok(event)),
                None => self.events.next().now_or_never(),
            };
            match next {
                Some(Ok(Event::Logged(item))) if item.seq == seq => {
                    items.push(item);
                    replaced.extend(notices.drain(..).filter_map(|notice| match notice {
                        Event::Replaced { task } => Some(task),
                        Event::Logged(_) | Event::Live(_) => None,
                    }));
                }
                Some(Ok(notice @ Event::Replaced { .. })) => notices.push_back(notice),
                Some(Ok(other)) => {
                    notices.push_back(other);
                    break;
                }
                // The next call finds the error again.
                Some(Err(_)) | None => break,
            }
        }
        // What was peeked before and is left comes after the notices.
        notices.append(&mut self.peeked);
        self.peeked = notices;
        FeedInput::Entry { items, replaced }
    }
}

/// How old the end of a run may be for its events to be read as if it were running.
const RECENT_MS: i64 = 10_000;
/// Highest number of interrupts that are shown when a run pauses.
const INTERRUPTS_MAX: u32 = 1_000;
/// Highest number of entries, and about of bytes, that a replay reads in one part. The part must be read well within the time
/// between two heartbeats, which interrupt it.
const REPLAY_ENTRIES: usize = 256;
const REPLAY_BYTES: usize = 8 * 1024 * 1024;
/// Number of states that are read at once to find where a run begins.
const STATES_AT_ONCE: u32 = 32;
/// How long a replay waits for an entry that must be there.
const REPLAY_STALL: Duration = Duration::from_secs(10);
