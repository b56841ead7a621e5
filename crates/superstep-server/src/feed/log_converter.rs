//! Turns what a runtime reports about a thread into the events of its feed, in LangGraph's order.
//!
//! LangGraph streams, for each superstep of a graph: the starts of its tasks; then for each task what it showed, what it
//! wrote and its result; then the state, and the checkpoint. The log has an entry per superstep, whose items are in another
//! order: what tasks wrote, the state, what starts next. So an entry is converted as a whole. An entry that starts a run is
//! two checkpoints for clients: one before the input was applied, and one after.
//!
//! This is the one place where stored values become JSON for clients; everything behind it shares the result.

mod agent_events;
mod frames;
mod live_order;
mod stops;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;
use superstep::checkpoint::format::{EntryKind, Stop};
use superstep::driver::LiveEvent;
use superstep::graph::Definition;
use superstep::run::{OpenInterrupt, StreamEvent, StreamEventBody, ThreadState};
use superstep::trace::is_trace_record;
use superstep::{FramePath, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp, Value};

use crate::feed::FeedId;
use crate::feed::agent_payload::AgentPayload;
use crate::feed::event::{
    FeedBody, FeedEvent, MessageChange, Namespace, TaskOrigin, split_segment,
};
use crate::feed::log_converter::live_order::LiveOrder;
use crate::feed::message_parts::{OpenMessages, PlacedPart};
use crate::history::{self, Checkpoint, FORK};
use crate::wire::{self, CheckpointId};

/// Converts what happens on one thread.
#[derive(Debug)]
pub(super) struct LogConverter {
    thread: ThreadId,
    graph: Arc<Definition>,
    /// The current run, or the last one.
    run: RunId,
    /// Time of the entry that is converted, or of the live event.
    at: Timestamp,
    /// In boxes: most threads have one, and a map has room for many.
    frames: BTreeMap<Namespace, Box<FrameView>>,
    /// Subgraphs that the run has entered and not left.
    entered: BTreeSet<Namespace>,
    messages: OpenMessages,
    /// Ids of the messages that the run has shown, as far as is known completely. Others come as a whole with the log.
    shown_messages: BTreeSet<String>,
    /// Ids of the messages that models of the run wrote without streaming them.
    unstreamed_messages: BTreeSet<String>,
    /// Messages whose task ended before they did, with the length of the text that was shown: if it is not all, the end was lost.
    unended_messages: BTreeMap<String, usize>,
    /// What tasks that run have shown.
    live_order: BTreeMap<TaskId, LiveOrder>,
    /// Stored events that tasks have shown live. They come again with the log, and are left out there.
    shown_live: BTreeMap<TaskId, Vec<Value>>,
    places: PlaceCounter,
    /// How often the root graph was started again.
    restarts: u64,
    converted: Vec<Arc<FeedEvent>>,
}

/// What is known of a graph that was entered.
#[derive(Debug, Default)]
struct FrameView {
    graph: Option<Arc<Definition>>,
    /// Number of the next superstep, from 0.
    step: u64,
    values: Arc<Json>,
    planned: Vec<PlannedTask>,
    /// The newest checkpoint of the graph.
    checkpoint: Option<WrittenCheckpoint>,
    /// Whether a task of the superstep that ends has written something.
    has_written: bool,
}

/// A checkpoint, and what wrote it.
#[derive(Debug, Clone, Copy)]
struct WrittenCheckpoint {
    id: CheckpointId,
    parent: Option<CheckpointId>,
    source: &'static str,
    /// `None` for an edit, and for a fork from which no run has continued.
    run: Option<RunId>,
    /// The older checkpoint that an edit continued from.
    base: Option<CheckpointId>,
}

/// A task that is planned to run.
#[derive(Debug, Clone)]
struct PlannedTask {
    node: String,
    task: String,
    payload: Option<Arc<Json>>,
    interrupts: Vec<Json>,
    /// Why the task failed in the run before.
    error: Option<String>,
}

/// A graph whose superstep ended, or that was entered, while its items are read.
struct AdvancedFrame {
    frame: FramePath,
    namespace: Namespace,
    values: Value,
    is_opened: bool,
    /// Number of the item with the state.
    index: u32,
    planned: Vec<PlannedTask>,
}

/// What is known of an entry while its items are read.
struct EntryProgress<'a> {
    items: &'a [StreamEvent],
    /// Interrupts at which the run paused with the entry.
    asked: &'a [OpenInterrupt],
    /// How the run stopped with the entry.
    stop: Option<&'a Stop>,
    /// Graphs of which a task has ended, and the state is yet to come.
    ended: BTreeSet<Namespace>,
    /// The graph whose state was read last, until it is known what starts in it.
    advanced: Option<AdvancedFrame>,
}

/// Gives out the ids of events.
#[derive(Debug, Default)]
struct PlaceCounter {
    entry: u64,
    next: u64,
    live: u64,
    is_live: bool,
}

/// Number of places for each item of the log, so that ids do not depend on which of the item's events were shown before.
const PLACES_PER_ITEM: u64 = 32;

impl PlaceCounter {
    /// Continues with the items of an entry.
    fn enter(&mut self, entry: Seq) {
        if entry.0 != self.entry {
            (self.entry, self.next, self.live) = (entry.0, 0, 0);
        }
        self.is_live = false;
    }

    /// Continues with an item of the entry.
    fn item(&mut self, index: u32) {
        self.next = self.next.max(u64::from(index) * PLACES_PER_ITEM);
    }

    fn take(&mut self) -> FeedId {
        if self.is_live {
            self.live += 1;
            return FeedId::live(self.entry, self.live - 1);
        }
        self.next += 1;
        FeedId {
            entry: self.entry,
            place: (self.next - 1).min(FeedId::LIVE - 1),
        }
    }
}

impl LogConverter {
    /// Starts at the beginning of a thread.
    pub(super) fn new(graph: &Arc<Definition>, thread: &ThreadId) -> Self {
        Self {
            thread: thread.clone(),
            graph: graph.clone(),
            run: RunId::from_bytes([0; 16]),
            at: Timestamp::default(),
            frames: BTreeMap::new(),
            entered: BTreeSet::new(),
            messages: OpenMessages::default(),
            shown_messages: BTreeSet::new(),
            unstreamed_messages: BTreeSet::new(),
            unended_messages: BTreeMap::new(),
            live_order: BTreeMap::new(),
            shown_live: BTreeMap::new(),
            places: PlaceCounter::default(),
            restarts: 0,
            converted: Vec::new(),
        }
    }

    /// Continues from a state that was read, without the entries before it.
    pub(super) fn continue_from(&mut self, state: &ThreadState) {
        self.run = state.run.run;
        self.places.enter(state.seq);
        self.restarts = state.restarts;
        self.frames.clear();
        let is_fork = state.kind == EntryKind::Fork;
        let is_edited = state.edits.is_some_and(|edits| edits > 0);
        let parent = (state.parent > Seq(0)).then(|| CheckpointId::after(state.parent));
        if is_fork && !is_edited && parent.is_none() {
            // The thread went back to its beginning: what comes next is its first input.
            return;
        }
        let values = wire::values(&self.graph, &state.values);
        let source = match state.kind {
            EntryKind::Update => "update",
            EntryKind::Fork if is_edited => "update",
            EntryKind::Fork => FORK,
            _ => "loop",
        };
        let written_by_run = !is_fork && source == "loop";
        let checkpoint = match parent {
            // Clients do not see that the thread went back.
            Some(id) if history::went_back(state) => WrittenCheckpoint {
                id,
                parent: None,
                source: "loop",
                run: Some(state.run.run),
                base: None,
            },
            parent => WrittenCheckpoint {
                id: CheckpointId::after(state.seq),
                parent,
                source,
                run: written_by_run.then_some(state.run.run),
                base: parent.filter(|_| is_fork && is_edited),
            },
        };
        self.frames.insert(
            Namespace::default(),
            Box::new(FrameView {
                graph: Some(self.graph.clone()),
                step: state.step + state.restarts,
                values: Arc::new(values),
                checkpoint: Some(checkpoint),
                ..FrameView::default()
            }),
        );
        for next in &state.next {
            let namespace = Namespace::of(&next.frame);
            let planned = planned_task(next.task, &next.node, next.payload.as_ref());
            let frame = self.frames.entry(namespace).or_default();
            frame.planned.push(planned);
        }
        if let Some(Stop::Failed(failures)) = &state.stop {
            self.keep_errors(failures);
        }
    }

    /// Continues from the state of a subgraph that the thread is inside of there.
    pub(super) fn continue_inside(&mut self, path: &FramePath, found: &Checkpoint) {
        let Some(graph) = self.graph.at(path) else {
            return;
        };
        let values = wire::values(&graph, &found.state.values);
        let frame = self.frame_mut(&Namespace::of(path));
        frame.graph = Some(graph);
        frame.step = found.state.step;
        frame.values = Arc::new(values);
        frame.checkpoint = Some(written(found));
    }

    /// Continues from this checkpoint of the root graph.
    pub(super) fn continue_at(&mut self, found: &Checkpoint) {
        self.frame_mut(&Namespace::default()).checkpoint = Some(written(found));
    }

    /// Converts an entry. `asked` are the interrupts at which the run paused, if it did.
    pub(super) fn entry(
        &mut self,
        items: &[StreamEvent],
        asked: &[OpenInterrupt],
    ) -> Vec<Arc<FeedEvent>> {
        let Some(first) = items.first() else {
            return Vec::new();
        };
        (self.run, self.at) = (first.run, first.at);
        self.places.enter(first.seq);
        let mut progress = EntryProgress {
            items,
            asked,
            stop: items.iter().find_map(|item| match &item.what {
                StreamEventBody::Stopped(stop) => Some(stop),
                _ => None,
            }),
            ended: BTreeSet::new(),
            advanced: None,
        };
        for position in 0..items.len() {
            self.item(position, &mut progress);
        }
        if let (Some(advanced), Some(last)) = (progress.advanced, items.last()) {
            self.frame_advanced(advanced, last.seq, last.kind, progress.stop);
        }
        std::mem::take(&mut self.converted)
    }

    fn item(&mut self, position: usize, progress: &mut EntryProgress<'_>) {
        let item = &progress.items[position];
        // What starts next is the last that the log says about a graph.
        if !matches!(item.what, StreamEventBody::TaskStarts { .. })
            && let Some(advanced) = progress.advanced.take()
        {
            self.frame_advanced(advanced, item.seq, item.kind, progress.stop);
        }
        self.places.item(item.index);
        match &item.what {
            StreamEventBody::RunBegan { .. } => self.run_began(),
            StreamEventBody::Custom { node, payload } => {
                let task = next_ended(&progress.items[position..]);
                self.logged_custom(&item.frame, task, node, payload);
            }
            // The update, which comes next, has the rest that is shown of it.
            StreamEventBody::TaskEnded { task, .. } => {
                self.unended_messages.extend(self.messages.of_task(*task));
                self.live_order.remove(task);
                let ended = self.messages.end_task(*task, false);
                self.push_parts(ended);
            }
            StreamEventBody::Update {
                node,
                updates,
                cached,
            } => {
                progress.ended.insert(Namespace::of(&item.frame));
                let task = last_ended(&progress.items[..position]);
                self.task_ended(&item.frame, task, node, updates, *cached);
            }
            StreamEventBody::Values(values) => {
                let namespace = Namespace::of(&item.frame);
                let has_ended = progress.ended.remove(&namespace);
                progress.advanced = Some(AdvancedFrame {
                    frame: item.frame.clone(),
                    namespace,
                    values: values.clone(),
                    is_opened: !has_ended && item.kind != EntryKind::Update,
                    index: item.index,
                    planned: Vec::new(),
                });
            }
            StreamEventBody::TaskStarts {
                task,
                node,
                payload,
            } => {
                if let Some(advanced) = &mut progress.advanced {
                    let planned = planned_task(*task, node, payload.as_ref());
                    advanced.planned.push(planned);
                }
            }
            // A failed attempt that is tried again is not streamed by LangGraph either.
            StreamEventBody::AttemptFailed(_) => {}
            StreamEventBody::Checkpoint { kind, .. } => {
                if progress.stop.is_some() {
                    let ended = self.messages.end_all();
                    self.push_parts(ended);
                }
                self.entry_ends(*kind, item.seq);
            }
            StreamEventBody::Stopped(stop) => self.stopped(stop, progress.asked),
        }
    }

    /// Converts what a node shows while it runs.
    pub(super) fn live(&mut self, event: &LiveEvent, now: Timestamp) -> Vec<Arc<FeedEvent>> {
        self.places.is_live = true;
        self.at = now;
        self.note_gap(event);
        let namespace = Namespace::of(&event.frame);
        self.enter_subgraphs(&namespace);
        let task = wire::uuid(event.task.to_bytes());
        let restarts = match namespace.is_root() {
            true => self.restarts,
            false => 0,
        };
        let origin = Arc::new(TaskOrigin {
            node: event.node.to_string(),
            sent: self.sent_place(&namespace, &task),
            task,
            step: lang_step(event.step + restarts) + 1,
        });
        let payload: Json = event.payload.decode().unwrap_or_default();
        let of_agent = match event.stored {
            true => None,
            false => AgentPayload::read(&payload),
        };
        match of_agent {
            Some(agent) => self.agent_event(event.task, &namespace, &origin, agent),
            None => {
                if event.stored {
                    let shown = self.shown_live.entry(event.task).or_default();
                    shown.push(event.payload.clone());
                }
                if !is_trace_record(&event.payload) {
                    let bytes = event.payload.len();
                    let payload = Arc::new(payload);
                    self.push(&namespace, bytes, FeedBody::Custom { origin, payload });
                }
            }
        }
        std::mem::take(&mut self.converted)
    }

    /// Converts that everything that a task has shown is void. Clients of messages see that its messages end; the task writes
    /// them again under the same ids.
    pub(super) fn replaced(&mut self, task: TaskId, now: Timestamp) -> Vec<Arc<FeedEvent>> {
        self.places.is_live = true;
        self.at = now;
        self.shown_live.remove(&task);
        self.live_order.remove(&task);
        self.void_messages(task);
        std::mem::take(&mut self.converted)
    }

    fn run_began(&mut self) {
        self.entered.clear();
        self.shown_messages.clear();
        self.unstreamed_messages.clear();
        self.unended_messages.clear();
        self.live_order.clear();
        self.shown_live.clear();
        self.messages = OpenMessages::default();
        self.push(&Namespace::default(), 0, FeedBody::RunBegan);
    }

    /// Announces the subgraphs on the way to this namespace that the run has not been in.
    fn enter_subgraphs(&mut self, namespace: &Namespace) {
        for path in namespace.path() {
            let is_new = self.entered.insert(path.clone());
            if is_new {
                let graph = self.graph_name(&path);
                self.push(&path, 0, FeedBody::SubgraphBegan { graph });
            } else if !self.places.is_live {
                // It may have been announced live, so its place stays free: the ids of what follows must not depend on that.
                self.places.take();
            }
        }
    }

    /// Returns the name of a subgraph.
    fn graph_name(&self, namespace: &Namespace) -> String {
        let nodes = namespace.segments().iter();
        let nodes = nodes.map(|segment| split_segment(segment).0);
        let found = wire::frame_of(nodes).and_then(|frame| self.graph.at(&frame));
        found.map_or_else(String::new, |graph| graph.name().to_owned())
    }

    /// Returns the place of a task among those of its superstep that were sent a payload; `None` if it was not.
    fn sent_place(&self, namespace: &Namespace, task: &str) -> Option<u32> {
        let planned = self.frames.get(namespace)?.planned.iter();
        let mut sent = planned.filter(|planned| planned.payload.is_some());
        let place = sent.position(|planned| planned.task == task)?;
        u32::try_from(place).ok()
    }

    fn origin(
        &self,
        namespace: &Namespace,
        task: Option<TaskId>,
        node: &NodeName,
    ) -> Arc<TaskOrigin> {
        let step = self.frames.get(namespace).map_or(0, |frame| frame.step);
        let task = task.map(|task| wire::uuid(task.to_bytes()));
        let task = task.unwrap_or_default();
        Arc::new(TaskOrigin {
            node: node.to_string(),
            sent: self.sent_place(namespace, &task),
            task,
            step: lang_step(step) + 1,
        })
    }

    fn graph_of(&mut self, frame: &FramePath, namespace: &Namespace) -> Option<Arc<Definition>> {
        let view = self.frames.entry(namespace.clone()).or_default();
        if view.graph.is_none() {
            view.graph = self.graph.at(frame);
        }
        view.graph.clone()
    }

    fn frame_mut(&mut self, namespace: &Namespace) -> &mut FrameView {
        self.frames.entry(namespace.clone()).or_default()
    }

    fn push(&mut self, namespace: &Namespace, bytes: usize, body: FeedBody) {
        let event = FeedEvent {
            id: self.places.take(),
            run: self.run,
            namespace: namespace.clone(),
            at: self.at,
            bytes: bytes + EVENT_BYTES,
            body,
        };
        self.converted.push(Arc::new(event));
    }

    fn push_parts(&mut self, parts: Vec<PlacedPart>) {
        for (namespace, part) in parts {
            let bytes = match &part.change {
                MessageChange::Delta { text, .. } => text.len(),
                _ => 0,
            };
            self.push(&namespace, bytes, FeedBody::Message(part));
        }
    }
}

fn written(found: &Checkpoint) -> WrittenCheckpoint {
    let is_edit = found.source == "update";
    let is_of_fork = is_edit && found.state.kind == EntryKind::Fork;
    WrittenCheckpoint {
        id: found.id,
        parent: found.parent,
        source: found.source,
        run: (!is_edit).then_some(found.state.run.run),
        base: found.parent.filter(|_| is_of_fork),
    }
}

/// Size of an event without its content.
const EVENT_BYTES: usize = 256;

fn planned_task(task: TaskId, node: &NodeName, payload: Option<&Value>) -> PlannedTask {
    PlannedTask {
        node: node.to_string(),
        task: wire::uuid(task.to_bytes()),
        payload: payload.map(|payload| Arc::new(payload.decode().unwrap_or_default())),
        interrupts: Vec::new(),
        error: None,
    }
}

/// Returns the task to which these items belong: the events that a task showed come before its end.
fn next_ended(items: &[StreamEvent]) -> Option<TaskId> {
    items.iter().find_map(ended_task)
}

fn last_ended(items: &[StreamEvent]) -> Option<TaskId> {
    items.iter().rev().find_map(ended_task)
}

fn ended_task(item: &StreamEvent) -> Option<TaskId> {
    match &item.what {
        StreamEventBody::TaskEnded { task, .. } => Some(*task),
        _ => None,
    }
}

fn lang_step(step: u64) -> i64 {
    i64::try_from(step).unwrap_or(i64::MAX - 1)
}
