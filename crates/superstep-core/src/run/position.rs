//! The position of a thread: the root graph and every open subgraph, with their states and what runs next.
//!
//! A position is what a [`Snapshot`] stores and what [`Change`]s change. At barriers, the state machine changes it with the
//! same functions that replay a log, so a thread that was loaded and one that never stopped cannot differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::channel::{Channel, ChannelKind, ChannelSet};
use crate::checkpoint::format::{
    AfterFailure, AttemptFailed, Body, Change, Entry, EntryKind, Extensions, FrameAdvanced,
    FrameOpened, FrameSnapshot, JoinSeen, Next, RunRecord, Snapshot, StateWritten, Stop,
};
use crate::checkpoint::{History, Listing};
use crate::error::{FailureKind, OpenError};
use crate::graph::{AnyUpdate, Definition, Live, ReadError, StateOps, SubgraphLife, guarded};
use crate::ids::{FramePath, NodeName, Seq, TaskId, TaskPlace, ThreadId};
use crate::run::frame_map::FrameMap;
use crate::value::Value;

/// The position of a thread in its graphs.
pub(crate) struct Position {
    pub(crate) thread: ThreadId,
    pub(crate) graph: Arc<Definition>,
    /// Entry where this branch began.
    pub(crate) branch: Seq,
    pub(crate) run: RunRecord,
    pub(crate) frames: FrameMap<Frame>,
    /// How often the root graph was started again.
    pub(crate) restarts: u64,
    /// Subgraphs that were entered and that the graph no longer has, with the missing node. Those that had ended are forgotten
    /// like any other; a thread in which one is still open cannot be resumed.
    gone: BTreeMap<FramePath, NodeName>,
}

/// A graph or subgraph that was entered.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) graph: Arc<Definition>,
    /// Version of the stored data that it was read from.
    pub(crate) version: u32,
    pub(crate) state: Live,
    /// Whether it works on its parent's state.
    pub(crate) shared: bool,
    /// Whether it is stored: false for a stateless subgraph and everything inside one.
    pub(crate) stored: bool,
    pub(crate) entered_by: Option<TaskId>,
    pub(crate) forwarded: Vec<Vec<Value>>,
    pub(crate) step: u64,
    pub(crate) last: Vec<NodeName>,
    pub(crate) next: Next,
    pub(crate) failed: BTreeMap<u32, AttemptFailed>,
}

impl Frame {
    /// Returns the target of a half-complete join, or a node with a failed route, that the graph no longer has.
    fn lost_plan(&self) -> Option<&NodeName> {
        let is_there = |seen: &&JoinSeen| {
            let mut joins = self.graph.joins.iter();
            joins.any(|join| join.target == seen.target && join.sources.iter().eq(&seen.sources))
        };
        let mut joins = self.next.joins.iter().filter(|seen| !is_there(seen));
        let mut routes = self.next.reroute.iter();
        joins
            .next()
            .map(|seen| &seen.target)
            .or_else(|| routes.find(|node| !self.graph.nodes.contains_key(node)))
    }
}

impl Next {
    pub(crate) fn is_done(&self) -> bool {
        self.tasks.is_empty() && self.deferred.is_empty() && self.reroute.is_empty()
    }
}

impl Position {
    /// Creates the position of a thread on which nothing has happened.
    pub(crate) fn empty(graph: &Arc<Definition>, thread: &ThreadId, run: RunRecord) -> Self {
        Self {
            thread: thread.clone(),
            graph: graph.clone(),
            branch: Seq(0),
            run,
            frames: FrameMap::new(),
            restarts: 0,
            gone: BTreeMap::new(),
        }
    }

    /// Reads the position from a history; `None` if it is empty.
    pub(crate) fn read(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        history: &History,
    ) -> Result<Option<Self>, OpenError> {
        // Migrations, reducers and serde are user code, and this may be another version of it.
        guarded("the code of its state", || {
            Self::read_through(graph, thread, history)
        })
        .unwrap_or_else(|panic| Err(unreadable(thread, graph, panic.to_string())))
    }

    fn read_through(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        history: &History,
    ) -> Result<Option<Self>, OpenError> {
        let mut position = match &history.snapshot {
            Some(stored) => Some(Self::of_snapshot(
                graph,
                thread,
                Snapshot::unseal(&stored.body, thread, stored.seq)?,
            )?),
            None => None,
        };
        for stored in &history.entries {
            let entry = Entry::unseal(&stored.body, thread, stored.seq)?;
            position = Self::after_entry(position, graph, thread, entry)?;
        }
        Ok(position)
    }

    /// Applies the next entry of a history. Fails at a fork, which continues from its own snapshot.
    pub(crate) fn replay_entry(
        position: Option<Self>,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        entry: Entry,
    ) -> Result<Option<Self>, OpenError> {
        guarded("the code of its state", || {
            Self::after_entry(position, graph, thread, entry)
        })
        .unwrap_or_else(|panic| Err(unreadable(thread, graph, panic.to_string())))
    }

    fn after_entry(
        mut position: Option<Self>,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        entry: Entry,
    ) -> Result<Option<Self>, OpenError> {
        let restarts = position.as_ref().map_or(0, |position| position.restarts);
        for change in entry.changes {
            position = Some(Self::replay(position, graph, thread, change)?);
        }
        if let (Some(position), EntryKind::Update) = (&mut position, entry.kind) {
            // An update in the name of the input is one step, not the restart of a run.
            position.restarts = restarts;
        }
        if let (Some(position), Some(Stop::Failed(_))) = (&mut position, entry.stop) {
            position.forget_attempts();
        }
        Ok(position)
    }

    /// Forgets failed attempts, because the run gave up: resuming it retries every task.
    ///
    /// A subgraph that was left for its error handler is not retried: its records were released with it, so entering it again
    /// would repeat its effects. Its handler is.
    pub(crate) fn forget_attempts(&mut self) {
        for frame in self.frames.values_mut() {
            let nodes = &frame.graph.nodes;
            let is_left = |failed: &AttemptFailed| {
                let node = nodes.get(&failed.failure.node);
                let is_subgraph = node.is_some_and(|node| node.subgraph().is_some());
                is_subgraph && failed.then == AfterFailure::Handle
            };
            frame.failed.retain(|_, failed| is_left(failed));
        }
    }

    /// Moves the thread to a new branch, where every task has a new id. Returns the new ids by the old ones.
    pub(crate) fn rebranch(
        &mut self,
        old_thread: &ThreadId,
        branch: Seq,
    ) -> BTreeMap<TaskId, TaskId> {
        let old_branch = std::mem::replace(&mut self.branch, branch);
        let mut renamed: BTreeMap<TaskId, TaskId> = BTreeMap::new();
        for (old_path, mut frame) in std::mem::take(&mut self.frames) {
            let path = old_path.renamed(&renamed);
            frame.entered_by = frame
                .entered_by
                .map(|task| renamed.get(&task).copied().unwrap_or(task));
            for (index, task) in (0..).zip(&frame.next.tasks) {
                let (step, node) = (frame.step, &task.node);
                let old = TaskPlace {
                    thread: old_thread,
                    branch: old_branch,
                    frame: &old_path,
                    step,
                    node,
                    index,
                };
                let new = TaskPlace {
                    thread: &self.thread,
                    branch,
                    frame: &path,
                    step,
                    node,
                    index,
                };
                renamed.insert(TaskId::derive(&old), TaskId::derive(&new));
            }
            self.frames.insert(path, frame);
        }
        renamed
    }

    pub(crate) fn replay(
        position: Option<Self>,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        change: Change,
    ) -> Result<Self, OpenError> {
        if let Change::RunStarted(run) = change {
            let mut position = position.unwrap_or_else(|| Self::empty(graph, thread, run.clone()));
            position.check_graph(&run)?;
            position.run = run;
            return Ok(position);
        }
        let mut position = position.ok_or_else(|| unreadable(thread, graph, Headless))?;
        match change {
            Change::RunStarted(_) => unreachable!("handled above"),
            Change::RunResumed(run) => position.run.run = run,
            Change::StateWritten(written) => position.replay_written(written)?,
            Change::Replanned(next) => {
                if let Some(root) = position.frames.get_mut(&FramePath::root()) {
                    root.next = next;
                }
            }
            Change::FrameOpened(opened) => position.replay_opened(opened)?,
            Change::FrameAdvanced(advanced) => position.replay_advanced(advanced)?,
            Change::AttemptFailed(failed) => {
                if let Some(frame) = position.frames.get_mut(&failed.frame) {
                    frame.failed.insert(failed.index, failed);
                }
            }
            // The snapshot stored with a fork holds everything; a history is never read across one.
            Change::Forked(_) => return Err(unreadable(thread, graph, Headless)),
        }
        Ok(position)
    }

    /// Applies a change to everything but the states of the graphs, which stay those of an earlier entry: what runs next, what
    /// ran last, and which subgraphs are open. For a watcher that shows no state, at a fraction of the cost.
    pub(crate) fn replay_without_states(
        position: Option<Self>,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        change: &Change,
    ) -> Result<Self, OpenError> {
        let Some(mut position) = position else {
            return Self::replay(None, graph, thread, change.clone());
        };
        match change {
            Change::FrameAdvanced(advanced) if position.gone.contains_key(&advanced.frame) => {}
            Change::FrameAdvanced(advanced) => {
                if !position.frames.contains_key(&advanced.frame) {
                    return Err(unreadable(thread, graph, Headless));
                }
                position.advance(advanced);
            }
            Change::FrameOpened(opened) => match position.graph.descend(&opened.frame) {
                Ok(subgraph) => position
                    .open(opened, subgraph.clone(), None)
                    .map_err(|error| unreadable(thread, &subgraph, error))?,
                Err(node) => {
                    position.gone.insert(opened.frame.clone(), node);
                }
            },
            Change::StateWritten(written) => {
                let context = written.context.clone();
                position.run.context = context.or(position.run.context.take());
            }
            Change::RunStarted(_)
            | Change::RunResumed(_)
            | Change::Replanned(_)
            | Change::AttemptFailed(_)
            | Change::Forked(_) => {
                return Self::replay(Some(position), graph, thread, change.clone());
            }
        }
        Ok(position)
    }

    fn check_graph(&self, run: &RunRecord) -> Result<(), OpenError> {
        if run.graph == self.graph.name {
            return Ok(());
        }
        Err(OpenError::OtherGraph {
            thread: self.thread.clone(),
            found: run.graph.clone(),
            wanted: self.graph.name.clone(),
        })
    }

    fn replay_opened(&mut self, opened: FrameOpened) -> Result<(), OpenError> {
        let graph = match self.graph.descend(&opened.frame) {
            Ok(graph) => graph,
            Err(node) => {
                self.gone.insert(opened.frame, node);
                return Ok(());
            }
        };
        let update = match &opened.input {
            Some(input) => Some(self.read_update(&graph, input, opened.version)?),
            None => None,
        };
        let opening = self.open(&opened, graph.clone(), update);
        opening.map_err(|error| unreadable(&self.thread, &graph, error))
    }

    fn replay_advanced(&mut self, advanced: FrameAdvanced) -> Result<(), OpenError> {
        if self.gone.contains_key(&advanced.frame) {
            return Ok(());
        }
        let missing = || unreadable(&self.thread, &self.graph, Headless);
        let frame = self.frames.get(&advanced.frame).ok_or_else(missing)?;
        let (graph, version) = (frame.graph.clone(), frame.version);
        let mut updates = Vec::with_capacity(advanced.writes.len());
        for write in &advanced.writes {
            for stored in &write.updates {
                updates.push(TaskUpdate {
                    task: write.index,
                    update: self.read_update(&graph, stored, version)?,
                });
            }
        }
        let frame = self.frame_mut(&advanced.frame);
        apply_writes(&*graph.ops, &mut frame.state, &mut updates);
        self.advance(&advanced);
        Ok(())
    }

    fn replay_written(&mut self, written: StateWritten) -> Result<(), OpenError> {
        let graph = self.graph.clone();
        let update = match (&written.update, self.root()) {
            (Some(update), Some(root)) => Some(self.read_update(&graph, update, root.version)?),
            (Some(_), None) => return Err(unreadable(&self.thread, &graph, Headless)),
            (None, _) => None,
        };
        self.write(update, written.context)
            .map_err(|error| unreadable(&self.thread, &graph, error))
    }

    /// Applies what the caller of a resume wrote: an update of the root graph's state, and the context. What runs next stays,
    /// and so do open subgraphs; those that share the root's state see the write.
    pub(crate) fn write(
        &mut self,
        update: Option<AnyUpdate>,
        context: Option<Value>,
    ) -> Result<(), BadWrite> {
        if let Some(update) = update {
            if let Some(root) = self.frames.get_mut(&FramePath::root()) {
                let ops = root.graph.ops.clone();
                try_write_beside(&*ops, &mut root.state, update)?;
            }
            self.refresh_shared()?;
        }
        if context.is_some() {
            self.run.context = context;
        }
        Ok(())
    }

    /// Computes the states again of subgraphs that share the state of the root graph, directly or through one another.
    fn refresh_shared(&mut self) -> Result<(), ReadError> {
        let shared = self.frames.iter().filter(|(_, frame)| frame.shared);
        let shared: Vec<_> = shared.map(|(path, _)| path.clone()).collect();
        let mut refreshed = BTreeSet::from([FramePath::root()]);
        // In the order of paths, so parents come first.
        for path in shared {
            let Some(parent) = path.parent().filter(|parent| refreshed.contains(parent)) else {
                continue;
            };
            let frame = self.frame(&path);
            let ops = frame.graph.ops.clone();
            let state = self.shared_state(&*ops, &parent, &frame.forwarded, frame.version)?;
            self.frame_mut(&path).state = state;
            refreshed.insert(path);
        }
        Ok(())
    }

    fn read_update(
        &self,
        graph: &Definition,
        update: &Value,
        version: u32,
    ) -> Result<AnyUpdate, OpenError> {
        graph
            .ops
            .decode_update(update, version)
            .map_err(|error| unreadable(&self.thread, graph, error))
    }

    /// Enters a graph: for the first time, or again with its previous state. If the input cannot be written, nothing changes.
    pub(crate) fn open(
        &mut self,
        opened: &FrameOpened,
        graph: Arc<Definition>,
        input: Option<AnyUpdate>,
    ) -> Result<(), BadFold> {
        let shared = !opened.frame.is_root() && opened.input.is_none();
        let around = opened.frame.parent().filter(|_| shared);
        let around = around.map(|parent| self.frame(&parent).state.clone());
        let kept = self.frames.remove(&opened.frame);
        let is_kept = kept.is_some();
        let mut frame = match kept {
            Some(mut frame) => {
                frame.state = around.unwrap_or(frame.state);
                frame
            }
            None => Frame {
                graph: graph.clone(),
                version: opened.version,
                state: around.unwrap_or_else(|| graph.ops.initial()),
                shared,
                stored: self.is_stored(&opened.frame),
                entered_by: None,
                forwarded: Vec::new(),
                step: 0,
                last: Vec::new(),
                next: Next::default(),
                failed: BTreeMap::new(),
            },
        };
        let written = match input {
            Some(input) => {
                let mut updates = vec![TaskUpdate::only(input)];
                try_writes(&*graph.ops, &mut frame.state, &mut updates)
            }
            None => Ok(()),
        };
        if written.is_ok() {
            // Tasks that were planned and dropped must not share their ids with those planned now.
            frame.step += u64::from(is_kept);
            self.restarts += u64::from(is_kept && opened.frame.is_root());
            frame.entered_by = opened.entered_by;
            frame.last.clear();
            frame.failed.clear();
            frame.next = opened.next.clone();
            self.close_children(&opened.frame);
        }
        if is_kept || written.is_ok() {
            self.frames.insert(opened.frame.clone(), frame);
        }
        written
    }

    /// Ends a superstep whose writes were applied.
    pub(crate) fn advance(&mut self, advanced: &FrameAdvanced) {
        self.close_children(&advanced.frame);
        let frame = self.frame_mut(&advanced.frame);
        if frame.shared {
            frame.forwarded.push(
                advanced
                    .writes
                    .iter()
                    .flat_map(|write| write.updates.iter().cloned())
                    .collect(),
            );
        }
        frame.last.clear();
        frame
            .last
            .extend(advanced.writes.iter().map(|write| write.node.clone()));
        frame.last.dedup();
        frame.step += 1;
        frame.failed.clear();
        frame.next.clone_from(&advanced.next);
    }

    /// Forgets the subgraphs of a superstep that is over. One that lives as long as the thread is put to rest.
    fn close_children(&mut self, path: &FramePath) {
        // Most graphs have no subgraph.
        let has_children = self.frames.has_below(path);
        if !has_children && self.gone.is_empty() {
            return;
        }
        self.frames
            .retain(|below, _| !below.is_below(path) || outlives_superstep(below, path));
        self.gone.retain(|below, _| !below.is_below(path));
        for (_, kept) in self
            .frames
            .iter_mut()
            .filter(|(below, _)| below.is_below(path))
        {
            kept.entered_by = None;
            kept.next = Next::default();
            kept.failed.clear();
            kept.forwarded.clear();
        }
    }

    /// Undoes the opening of a frame, which was `before` until then.
    pub(crate) fn undo_open(&mut self, path: &FramePath, before: Option<Frame>) {
        match before {
            Some(frame) => self.frames.insert(path.clone(), frame),
            None => self.frames.remove(path),
        };
    }

    pub(crate) fn frame(&self, path: &FramePath) -> &Frame {
        self.frames
            .get(path)
            .expect("only frames that were opened are asked for")
    }

    pub(crate) fn frame_mut(&mut self, path: &FramePath) -> &mut Frame {
        self.frames
            .get_mut(path)
            .expect("only frames that were opened are asked for")
    }

    pub(crate) fn root(&self) -> Option<&Frame> {
        self.frames.get(&FramePath::root())
    }

    /// Returns the state of the root graph for the list of threads, if it is short enough to be listed.
    pub(crate) fn listed_values(&self) -> Option<Value> {
        let Some(root) = self.root() else {
            return Some(Value::from_json_bytes(b"{}"));
        };
        let ops = &root.graph.ops;
        ops.encode_short_state(&root.state, Listing::VALUES_BYTES_MAX)
    }

    /// Whether a graph is stored: no subgraph on the path to it is stateless.
    fn is_stored(&self, path: &FramePath) -> bool {
        let mut graph = self.graph.clone();
        for segment in path.segments() {
            match graph
                .nodes
                .get(&segment.node)
                .and_then(|node| node.subgraph())
            {
                Some(subgraph) if subgraph.life == SubgraphLife::Stateless => return false,
                Some(subgraph) => graph = subgraph.graph.clone(),
                None => return true,
            }
        }
        true
    }

    /// Checks that everything that waits can still run.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if let Some((path, node)) = self.gone.first_key_value() {
            return Err(OpenError::NodeGone {
                thread: self.thread.clone(),
                frame: path.parent().unwrap_or_default(),
                node: node.clone(),
            });
        }
        for (path, frame) in self.frames.iter() {
            let waiting = frame
                .next
                .tasks
                .iter()
                .map(|task| (&task.node, task.payload.is_some()));
            let deferred = frame.next.deferred.iter().map(|node| (node, false));
            for (node, has_payload) in waiting.chain(deferred) {
                let fits = frame
                    .graph
                    .nodes
                    .get(node)
                    .is_some_and(|def| def.takes_payload == has_payload);
                if !fits {
                    let (thread, frame) = (self.thread.clone(), path.clone());
                    return Err(OpenError::NodeGone {
                        thread,
                        frame,
                        node: node.clone(),
                    });
                }
            }
            if let Some(node) = frame.lost_plan() {
                return Err(OpenError::NodeGone {
                    thread: self.thread.clone(),
                    frame: path.clone(),
                    node: node.clone(),
                });
            }
        }
        Ok(())
    }

    /// Whether some data was written by an older version of its state.
    pub(crate) fn is_outdated(&self) -> bool {
        self.frames
            .values()
            .any(|frame| frame.version != frame.graph.ops.version())
    }

    /// Returns the id of a task of the superstep that runs next.
    pub(crate) fn task_id(&self, path: &FramePath, node: &NodeName, index: u32) -> TaskId {
        let step = self.frame(path).step;
        TaskId::derive(&TaskPlace {
            thread: &self.thread,
            branch: self.branch,
            frame: path,
            step,
            node,
            index,
        })
    }

    /// Returns the snapshot to store. Data of older versions counts as the current one from here on.
    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let mut frames = Vec::with_capacity(self.frames.len());
        for (path, frame) in self.frames.iter_mut().filter(|(_, frame)| frame.stored) {
            frame.version = frame.graph.ops.version();
            let encoded = || {
                frame
                    .graph
                    .ops
                    .encode_state(&frame.state)
                    .expect("every value in it was read back when it was written")
            };
            frames.push(FrameSnapshot {
                path: path.clone(),
                version: frame.version,
                state: (!frame.shared).then(encoded),
                forwarded: frame.forwarded.clone(),
                entered_by: frame.entered_by,
                step: frame.step,
                last: frame.last.clone(),
                next: frame.next.clone(),
                failed: frame.failed.values().cloned().collect(),
            });
        }
        Snapshot {
            branch: self.branch,
            run: self.run.clone(),
            frames,
            extensions: Extensions::of_restarts(self.restarts),
        }
    }

    fn of_snapshot(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        snapshot: Snapshot,
    ) -> Result<Self, OpenError> {
        let mut position = Self::empty(graph, thread, snapshot.run);
        position.check_graph(&position.run)?;
        position.branch = snapshot.branch;
        position.restarts = snapshot.extensions.restarts();
        for stored in snapshot.frames {
            match position.graph.descend(&stored.path) {
                Ok(graph) => {
                    let frame = position.read_frame(graph, &stored)?;
                    position.frames.insert(stored.path, frame);
                }
                Err(node) if stored.entered_by.is_some() => {
                    position.gone.insert(stored.path, node);
                }
                // The subgraph is at rest: nothing waits in it.
                Err(_) => {}
            }
        }
        Ok(position)
    }

    fn read_frame(
        &self,
        graph: Arc<Definition>,
        stored: &FrameSnapshot,
    ) -> Result<Frame, OpenError> {
        let ops = &*graph.ops;
        let read = |error: ReadError| unreadable(&self.thread, &graph, error);
        let state = match (&stored.state, stored.path.parent()) {
            (Some(state), _) => ops.decode_state(state, stored.version).map_err(read)?,
            (None, Some(parent)) => self
                .shared_state(ops, &parent, &stored.forwarded, stored.version)
                .map_err(read)?,
            (None, None) => return Err(unreadable(&self.thread, &graph, Headless)),
        };
        Ok(Frame {
            version: stored.version,
            state,
            shared: stored.state.is_none(),
            stored: true,
            entered_by: stored.entered_by,
            forwarded: stored.forwarded.clone(),
            step: stored.step,
            last: stored.last.clone(),
            next: stored.next.clone(),
            failed: stored
                .failed
                .iter()
                .map(|failed| (failed.index, failed.clone()))
                .collect(),
            graph,
        })
    }

    /// Returns the state of a subgraph that works on its parent's: that state, and what the subgraph wrote so far.
    fn shared_state(
        &self,
        ops: &dyn StateOps,
        parent: &FramePath,
        forwarded: &[Vec<Value>],
        version: u32,
    ) -> Result<Live, ReadError> {
        let mut state = self.frame(parent).state.clone();
        for step in forwarded {
            ops.begin_step(&mut state);
            for update in step {
                let update = ops.decode_update(update, version)?;
                ops.apply(&mut state, update);
            }
        }
        Ok(state)
    }
}

/// Whether a subgraph below `path` keeps its state when the superstep of `path` ends: it and all between them live as long
/// as the thread.
pub(crate) fn outlives_superstep(below: &FramePath, path: &FramePath) -> bool {
    let mut between = below.segments()[path.segments().len()..].iter();
    between.all(|segment| segment.task.is_none())
}

/// The history has no beginning: an entry is missing.
#[derive(Debug, thiserror::Error)]
#[error("an earlier part of its history is missing")]
struct Headless;

fn unreadable(
    thread: &ThreadId,
    graph: &Definition,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::Unreadable {
        thread: thread.clone(),
        graph: graph.name.clone(),
        source: error.into(),
    }
}

/// One update that a task of a superstep made. Most tasks make one; those of a task are adjacent, in task order.
pub(crate) struct TaskUpdate {
    /// Index of the task in its superstep.
    pub(crate) task: u32,
    pub(crate) update: AnyUpdate,
}

impl TaskUpdate {
    /// Wraps the update of a task without siblings.
    pub(crate) fn only(update: AnyUpdate) -> Self {
        Self { task: 0, update }
    }

    fn is_of_same_task(&self, other: &Self) -> bool {
        self.task == other.task
    }
}

/// Applies what tasks wrote, and empties the list. If a reducer panics or produces a value that could not be read back, nothing is applied.
pub(crate) fn try_writes(
    ops: &dyn StateOps,
    state: &mut Live,
    updates: &mut Vec<TaskUpdate>,
) -> Result<(), BadFold> {
    try_fold(ops, state, written(ops, updates), |state| {
        apply_writes(ops, state, updates);
    })
}

/// Applies a write that is not part of a superstep: the superstep to come still sees everything that it would have seen.
pub(crate) fn try_write_beside(
    ops: &dyn StateOps,
    state: &mut Live,
    update: AnyUpdate,
) -> Result<(), BadFold> {
    try_fold(ops, state, ops.written(&update), |state| {
        ops.apply(state, update);
    })
}

fn try_fold(
    ops: &dyn StateOps,
    state: &mut Live,
    written: ChannelSet,
    write: impl FnOnce(&mut Live),
) -> Result<(), BadFold> {
    let reduced = reduced(ops, written);
    if reduced.is_empty() {
        write(state);
        return Ok(());
    }
    // A second handle forces a copy of the state, so that the old one can be restored.
    let before = state.clone();
    let folded = guarded("it", || write(state)).map_err(|panic| BadFold::Panicked {
        channels: names(ops, reduced),
        panic: panic.to_string(),
    });
    let risky = reduced.intersection(ops.risky_folds());
    let folded = folded.and_then(|()| match ops.unstorable_fold(state, risky) {
        Some(channel) => Err(BadFold::Unstorable { channel }),
        None => Ok(()),
    });
    folded.inspect_err(|_| *state = before)
}

/// Returns the channels among these that a reducer folds.
fn reduced(ops: &dyn StateOps, written: ChannelSet) -> ChannelSet {
    let is_reduced = |index: &u32| ops.channels()[*index as usize].kind == ChannelKind::Reduce;
    let reduced = written.iter().filter(is_reduced);
    reduced.fold(ChannelSet::EMPTY, |set, index| set.with(index, true))
}

fn names(ops: &dyn StateOps, channels: ChannelSet) -> String {
    let quoted = |index| format!("`{}`", ops.channels()[index as usize].name);
    let names: Vec<_> = channels.iter().map(quoted).collect();
    names.join(" or ")
}

/// A reducer did not produce a value that can be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadFold {
    #[error(
        "the reducer of `{channel}` gave a value that cannot be stored, such as a number that is not finite"
    )]
    Unstorable { channel: &'static str },
    /// Names several channels if it is unknown which reducer panicked.
    #[error("the reducer of {channels} failed: {panic}")]
    Panicked { channels: String, panic: String },
}

/// A write from outside that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadWrite {
    #[error(transparent)]
    Fold(#[from] BadFold),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl BadFold {
    /// Returns the kind of failure for the superstep.
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            BadFold::Unstorable { .. } => FailureKind::InvalidUpdate,
            BadFold::Panicked { .. } => FailureKind::Panicked,
        }
    }
}

/// Applies what the tasks of a superstep wrote, in task order, and empties the list. An overwrite replaces the whole channel.
pub(crate) fn apply_writes(ops: &dyn StateOps, state: &mut Live, updates: &mut Vec<TaskUpdate>) {
    ops.begin_step(state);
    let all = overwritten(ops, updates);
    if !all.is_empty() {
        for of_task in updates.chunk_by_mut(TaskUpdate::is_of_same_task) {
            let by_others = all.minus(overwritten(ops, of_task));
            for TaskUpdate { update, .. } in of_task {
                ops.discard(update, by_others);
            }
        }
    }
    for TaskUpdate { update, .. } in updates.drain(..) {
        ops.apply(state, update);
    }
}

fn written(ops: &dyn StateOps, updates: &[TaskUpdate]) -> ChannelSet {
    updates.iter().fold(ChannelSet::EMPTY, |set, made| {
        set.union(ops.written(&made.update))
    })
}

fn overwritten(ops: &dyn StateOps, updates: &[TaskUpdate]) -> ChannelSet {
    updates.iter().fold(ChannelSet::EMPTY, |set, made| {
        set.union(ops.overwritten(&made.update))
    })
}

/// Two tasks whose writes exclude each other.
pub(crate) struct Conflict {
    pub(crate) channel: &'static str,
    pub(crate) first: usize,
    pub(crate) second: usize,
}

/// Finds two tasks of a superstep that write a channel which takes one write, or that overwrite the same one.
pub(crate) fn conflict(ops: &dyn StateOps, updates: &[TaskUpdate]) -> Option<Conflict> {
    let (first, last) = (updates.first()?, updates.last()?);
    if first.is_of_same_task(last) {
        return None;
    }
    let channels = ops.channels();
    let mut writer: Vec<Option<u32>> = vec![None; channels.len()];
    let mut replacer = writer.clone();
    for of_task in updates.chunk_by(TaskUpdate::is_of_same_task) {
        let task = of_task[0].task;
        let excluded = |channel: &Channel, first: u32| Conflict {
            channel: channel.name,
            first: first as usize,
            second: task as usize,
        };
        for index in written(ops, of_task).iter() {
            let channel = &channels[index as usize];
            let first = writer[index as usize].replace(task);
            if let (Some(first), false) = (first, channel.kind.takes_many()) {
                return Some(excluded(channel, first));
            }
        }
        for index in overwritten(ops, of_task).iter() {
            if let Some(first) = replacer[index as usize].replace(task) {
                return Some(excluded(&channels[index as usize], first));
            }
        }
    }
    None
}
