//! Changes a thread from outside: state updates in the names of nodes, and forks.
//!
//! Each returns one fenced commit that claims the thread, so they exclude a run, and each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, Forked, FrameAdvanced, FrameOpened, GotoRecord,
    InterruptRecord, Next, RunRecord, TaskWrite,
};
use crate::checkpoint::{
    Commit, Head, History, Listing, Loaded, Released, ReleasedRecords, Status,
};
use crate::command::{self, Command};
use crate::error::{NodeError, OpenError, ValueError};
use crate::graph::{Definition, Live, Prepared};
use crate::ids::{FramePath, InterruptId, Moment, NodeName, RunId, Seq, TaskId, ThreadId};
use crate::run::open::has_work;
use crate::run::plan;
use crate::run::position::{Frame, Position, TaskUpdate, try_writes};
use crate::state::State;
use crate::value::Value;

/// A change of a thread's state from outside: several updates, in one commit.
///
/// ```
/// use superstep_core::driver::ThreadRequest;
/// use superstep_core::run::{Edit, EditNode, ThreadEdit};
/// use superstep_core::{FramePath, NodeName, Value};
///
/// let by_node = |node: &str, update: serde_json::Value| -> Result<Edit, Box<dyn std::error::Error>> {
///     Ok(Edit {
///         node: EditNode::Node(NodeName::new(node)?),
///         update: Value::plain(&update)?,
///         goto: Vec::new(),
///     })
/// };
/// let request = ThreadRequest::Edit(ThreadEdit {
///     at: None,
///     frame: FramePath::root(),
///     updates: vec![
///         by_node("plan", serde_json::json!({ "topic": "taxes" }))?,
///         by_node("write", serde_json::json!({ "parts": ["one"] }))?,
///     ],
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadEdit {
    /// Entry to continue from; `None` for the newest. An older one makes the edit a fork; 0 is the beginning, before anything
    /// happened.
    pub at: Option<Seq>,
    /// Path of the graph whose state changes: the root, or a subgraph that is open at the entry.
    pub frame: FramePath,
    /// Updates, in the order in which they are made.
    pub updates: Vec<Edit>,
}

/// One update of a graph's state from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    /// Node in whose name the state changes: it decides what runs next.
    pub node: EditNode,
    /// What to write: an encoded update.
    pub update: Value,
    /// Targets, for a node that routes by commands.
    pub goto: Vec<GotoRecord>,
}

impl Edit {
    /// Creates a change from a node's command.
    pub fn new<S: State>(node: EditNode, command: Command<S>) -> Result<Self, ValueError> {
        let goto = command::records(command.goto).map_err(|error| ValueError::Encode {
            source: error.to_string().into(),
        })?;
        Ok(Self {
            node,
            update: Value::encode(&command.update)?,
            goto,
        })
    }
}

/// In whose name a state is updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EditNode {
    /// The node that ran last. Refused unless exactly one did.
    Last,
    /// This node, as if it had just ended.
    Node(NodeName),
    /// The input, as if a run started with it.
    Input,
    /// The end: whatever was planned is dropped.
    End,
}

/// Returns the commit that updates the state of a thread's root graph. Refused while the thread is running.
pub fn update_state(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    loaded: Option<Loaded>,
    edit: &Edit,
    moment: Moment,
) -> Result<Commit, OpenError> {
    let loaded = loaded.unwrap_or_default();
    let mut editing = Editing::at_newest(graph, thread, loaded, FramePath::root(), moment)?;
    editing.apply(edit)?;
    editing.into_update()
}

/// Returns the commit that makes an edit. Refused while the thread is running. `None` if there is nothing to do: no updates,
/// and no older entry to go back to.
///
/// `older` is the history up to the entry that the edit continues from, if that is not the newest one. At the beginning it is
/// empty.
///
/// An edit inside a subgraph replaces what is planned in that subgraph. Tasks outside of it keep their ids, what they recorded
/// and their open interrupts: if those were closed, the same tasks could never ask them again.
pub fn edit_thread(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    loaded: Option<Loaded>,
    edit: &ThreadEdit,
    older: Option<&History>,
    moment: Moment,
) -> Result<Option<Commit>, OpenError> {
    let loaded = loaded.unwrap_or_default();
    let frame = edit.frame.clone();
    if let Some(history) = older {
        let from = ForkFrom {
            at: edit.at.unwrap_or(loaded.head.seq),
            history,
            copied_from: None,
            write: None,
            context: None,
        };
        let mut editing = Editing::at_older(graph, thread, loaded, &from, frame, moment)?;
        editing.apply_all(&edit.updates)?;
        let edits = u32::try_from(edit.updates.len()).unwrap_or(u32::MAX);
        editing.extensions = Extensions::of_edits(edits);
        return editing.into_fork(&from).map(Some);
    }
    if edit.updates.is_empty() {
        return Ok(None);
    }
    let mut editing = Editing::at_newest(graph, thread, loaded, frame, moment)?;
    editing.apply_all(&edit.updates)?;
    editing.into_update().map(Some)
}

/// The entry from which a fork continues.
#[derive(Debug)]
pub struct ForkFrom<'a> {
    /// Sequence number of the entry; 0 for the beginning, before anything happened.
    pub at: Seq,
    /// History up to the entry; empty at the beginning.
    pub history: &'a History,
    /// Thread that the history was copied from; `None` for a fork within one thread.
    pub copied_from: Option<&'a ThreadId>,
    /// Encoded update to write into the graph's state at the fork. It does not change what runs next. A subgraph with its own
    /// state that was already entered keeps that state.
    pub write: Option<&'a Value>,
    /// Context of the run from here on; `None` keeps the one it had.
    pub context: Option<&'a Value>,
}

/// Returns the commit that lets a thread continue from an older entry, or from another thread's history that was copied into
/// it. What follows is a new branch: every task has a new id, and every interrupt is raised again.
pub fn fork(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    loaded: Loaded,
    from: &ForkFrom<'_>,
    moment: Moment,
) -> Result<Commit, OpenError> {
    let mut editing = Editing::at_older(graph, thread, loaded, from, FramePath::root(), moment)?;
    if let Some(write) = from.write {
        editing.write(write)?;
    }
    if let Some(context) = from.context {
        editing.position.run.context = Some(context.clone());
    }
    // Clients see the fork as a step of its own. A copy continues the count of the thread that it was copied from.
    let is_step = from.copied_from.is_none() && editing.position.root().is_some();
    editing.position.restarts += u64::from(is_step);
    editing.into_fork(from)
}

struct Editing {
    loaded: Loaded,
    position: Position,
    moment: Moment,
    /// Path of the graph whose state changes.
    frame: FramePath,
    changes: Vec<Change>,
    extensions: Extensions,
    /// Number of updates prepared so far.
    prepared: u32,
}

impl Editing {
    /// Starts at the newest entry, or at the beginning of a new thread.
    fn at_newest(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        loaded: Loaded,
        frame: FramePath,
        moment: Moment,
    ) -> Result<Self, OpenError> {
        let found = Position::read(graph, thread, &loaded.history)?;
        let mut changes = Vec::new();
        let position = found.unwrap_or_else(|| {
            let run = RunRecord {
                run: RunId::derive(
                    thread,
                    loaded.head.seq.next(),
                    loaded.head.epoch.claimed(moment.entropy),
                ),
                graph: graph.name.clone(),
                context: None,
                step_limit: 0,
            };
            changes.push(Change::RunStarted(run.clone()));
            Position::empty(graph, thread, run)
        });
        let editing = Self {
            loaded,
            position,
            moment,
            frame,
            changes,
            extensions: Extensions::default(),
            prepared: 0,
        };
        editing.refuse_running()?;
        editing.refuse_closed()?;
        Ok(editing)
    }

    /// Starts at an older entry, on a new branch. `frame` is a path at that entry; on the branch it has other tasks in it.
    fn at_older(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        loaded: Loaded,
        from: &ForkFrom<'_>,
        frame: FramePath,
        moment: Moment,
    ) -> Result<Self, OpenError> {
        let nothing = || OpenError::NothingToRun {
            thread: thread.clone(),
        };
        let position = match (from.at, from.copied_from) {
            (Seq(0), None) => {
                let newest = Position::read(graph, thread, &loaded.history)?.ok_or_else(nothing)?;
                Position::empty(graph, thread, newest.run)
            }
            _ => Position::read(graph, thread, from.history)?.ok_or_else(nothing)?,
        };
        let mut editing = Self {
            loaded,
            position,
            moment,
            frame,
            changes: Vec::new(),
            extensions: Extensions::default(),
            prepared: 0,
        };
        editing.refuse_running()?;
        editing.refuse_closed()?;
        editing.position.check()?;
        let branch = editing.loaded.head.seq.next();
        let old_thread = from.copied_from.unwrap_or(thread);
        let renamed = editing.position.rebranch(old_thread, branch);
        editing.frame = editing.frame.renamed(&renamed);
        // On the new branch every task has a new id, so even a subgraph that was left for its error handler can be entered again.
        let frames = editing.position.frames.values_mut();
        frames.for_each(|frame| frame.failed.clear());
        Ok(editing)
    }

    fn refuse_running(&self) -> Result<(), OpenError> {
        if self.loaded.head.status == Status::Running {
            return Err(OpenError::Busy {
                thread: self.position.thread.clone(),
            });
        }
        Ok(())
    }

    /// Refuses a subgraph that the thread is not inside of.
    fn refuse_closed(&self) -> Result<(), OpenError> {
        let is_entered = |frame: &Frame| frame.entered_by.is_some();
        if self.frame.is_root() || self.edited().is_some_and(is_entered) {
            return Ok(());
        }
        Err(OpenError::NotInside {
            thread: self.position.thread.clone(),
            frame: self.frame.clone(),
        })
    }

    /// Returns the graph that is edited, with its state; `None` if it is the root of a thread that has none yet.
    fn edited(&self) -> Option<&Frame> {
        self.position.frames.get(&self.frame)
    }

    fn graph(&self) -> Arc<Definition> {
        let edited = self.edited();
        edited.map_or_else(|| self.position.graph.clone(), |frame| frame.graph.clone())
    }

    fn apply_all(&mut self, edits: &[Edit]) -> Result<(), OpenError> {
        edits.iter().try_for_each(|edit| self.apply(edit))
    }

    fn apply(&mut self, edit: &Edit) -> Result<(), OpenError> {
        match &edit.node {
            EditNode::Input => self.as_input(edit),
            EditNode::End => {
                self.as_end();
                Ok(())
            }
            EditNode::Node(node) => self.as_node(node, edit),
            EditNode::Last => {
                let node = self.last_node()?;
                self.as_node(&node, edit)
            }
        }
    }

    fn last_node(&self) -> Result<NodeName, OpenError> {
        let last = self.edited().map_or(&[][..], |frame| &frame.last);
        match last {
            [node] => Ok(node.clone()),
            [] => Err(OpenError::AmbiguousNode {
                nodes: "no node".to_owned(),
            }),
            nodes => {
                let names: Vec<_> = nodes.iter().map(|node| format!("`{node}`")).collect();
                Err(OpenError::AmbiguousNode {
                    nodes: names.join(", "),
                })
            }
        }
    }

    fn as_input(&mut self, edit: &Edit) -> Result<(), OpenError> {
        let graph = self.graph();
        // The log has no input of a subgraph that shares its parent's state, so a thread that is loaded would lose this one.
        if self.edited().is_some_and(|frame| frame.shared) {
            return Err(OpenError::SharedInput {
                frame: self.frame.clone(),
            });
        }
        let entered_by = self.edited().and_then(|frame| frame.entered_by);
        let state = self
            .edited()
            .map_or_else(|| graph.ops.initial(), |frame| frame.state.clone());
        let Prepared {
            stored,
            read_back: update,
            ..
        } = self.prepare(&graph, &state, &edit.update)?;
        // Nothing else may hold the state, or it would be copied before it is changed.
        drop(state);
        let restarts = self.position.restarts;
        let mut opened = FrameOpened {
            frame: self.frame.clone(),
            entered_by,
            version: graph.ops.version(),
            input: Some(stored),
            next: Next::default(),
        };
        self.position
            .open(&opened, graph.clone(), Some(update))
            .map_err(|error| bad_input(&graph, error))?;
        // As when the entry is read: an update is one step, not the restart of a run.
        self.position.restarts = restarts;
        let frame = self.position.frame_mut(&self.frame);
        opened.next = plan::first(&graph, &frame.state)
            .map_err(|error| bad_input(&graph, error.to_string()))?;
        frame.next = opened.next.clone();
        self.changes.push(Change::FrameOpened(opened));
        Ok(())
    }

    fn as_end(&mut self) {
        if self.edited().is_some() {
            self.advance(Vec::new(), Next::default());
        }
    }

    fn as_node(&mut self, node: &NodeName, edit: &Edit) -> Result<(), OpenError> {
        let graph = self.graph();
        let def = graph.nodes.get(node).ok_or_else(|| OpenError::NoSuchNode {
            node: node.to_string(),
        })?;
        if self.edited().is_none() {
            self.as_input(&Edit {
                node: EditNode::Input,
                update: Value::from_json_bytes(b"{}"),
                goto: Vec::new(),
            })?;
        }
        let undeclared = |error: NodeError| OpenError::UndeclaredTarget {
            node: node.to_string(),
            to: error.to_string(),
        };
        def.check_goto(&graph, node, &edit.goto, false)
            .map_err(undeclared)?;
        let state = self.position.frame(&self.frame).state.clone();
        let Prepared {
            stored,
            read_back: update,
            ..
        } = self.prepare(&graph, &state, &edit.update)?;
        drop(state);
        let frame = self.position.frame_mut(&self.frame);
        let mut updates = vec![TaskUpdate::only(update)];
        try_writes(&*graph.ops, &mut frame.state, &mut updates)
            .map_err(|error| bad_input(&graph, error))?;
        let goto = def
            .leaves_by_command(&edit.goto)
            .then_some(edit.goto.as_slice());
        let planned = plan::after(
            &graph,
            &frame.state,
            &frame.next,
            std::iter::once(plan::Ended { node, goto }),
            Vec::new(),
        );
        if let Some((_, error)) = planned.faults.into_iter().next() {
            return Err(undeclared(error));
        }
        let write = TaskWrite {
            node: node.clone(),
            index: 0,
            updates: vec![stored],
            events: Vec::new(),
            cached: false,
        };
        self.advance(vec![write], planned.next);
        Ok(())
    }

    /// Writes into the state of the root graph, and leaves what runs next as it is. The change is in the snapshot stored with
    /// the entry.
    fn write(&mut self, update: &Value) -> Result<(), OpenError> {
        let graph = self.position.graph.clone();
        let root = self
            .position
            .root()
            .ok_or_else(|| OpenError::NothingToRun {
                thread: self.position.thread.clone(),
            })?;
        let state = root.state.clone();
        let Prepared { read_back, .. } = self.prepare(&graph, &state, update)?;
        self.position
            .write(Some(read_back), None)
            .map_err(|error| bad_input(&graph, error))
    }

    fn prepare(
        &mut self,
        graph: &Definition,
        state: &Live,
        update: &Value,
    ) -> Result<Prepared, OpenError> {
        let writer = outside_writer(&self.position.thread, self.loaded.head, self.prepared);
        self.prepared += 1;
        prepare_update(graph, state, update, writer)
    }

    fn advance(&mut self, writes: Vec<TaskWrite>, next: Next) {
        let advanced = FrameAdvanced {
            frame: self.frame.clone(),
            writes,
            next,
        };
        self.position.advance(&advanced);
        self.changes.push(Change::FrameAdvanced(advanced));
    }

    /// Returns the commit of updates at the newest entry.
    fn into_update(self) -> Result<Commit, OpenError> {
        let (parent, with_snapshot) = (self.loaded.head.seq, self.position.is_outdated());
        let kept = self.tasks_outside();
        self.commit(EntryKind::Update, parent, with_snapshot, &kept)
    }

    /// Returns the commit of a fork. The snapshot holds what the updates changed, and replaces the changes: a history is never
    /// read across a fork.
    fn into_fork(mut self, from: &ForkFrom<'_>) -> Result<Commit, OpenError> {
        self.changes = vec![Change::Forked(Forked {
            thread: from.copied_from.map(ToString::to_string),
            seq: from.at,
        })];
        self.commit(EntryKind::Fork, from.at, true, &BTreeSet::new())
    }

    /// Returns the tasks that wait in graphs outside of the edited one.
    fn tasks_outside(&self) -> BTreeSet<TaskId> {
        let frames = self.position.frames.iter();
        let outside =
            frames.filter(|(path, _)| **path != self.frame && !path.is_below(&self.frame));
        let of_frame = |(path, frame): (&FramePath, &Frame)| -> Vec<TaskId> {
            let tasks = (0..).zip(&frame.next.tasks);
            tasks
                .map(|(index, task)| self.position.task_id(path, &task.node, index))
                .collect()
        };
        outside.flat_map(of_frame).collect()
    }

    /// Returns the interrupts of all tasks but these.
    fn interrupts_except(&self, kept: &BTreeSet<TaskId>) -> Result<Vec<InterruptId>, OpenError> {
        let mut closed = Vec::new();
        for row in &self.loaded.interrupts {
            let is_kept = !kept.is_empty()
                && kept.contains(&InterruptRecord::unseal(&row.body, &row.thread, row.seq)?.task);
            if !is_kept {
                closed.push(row.id);
            }
        }
        Ok(closed)
    }

    /// Returns the commit. Tasks other than `kept` are gone: their interrupts close, and what they recorded is released.
    fn commit(
        mut self,
        kind: EntryKind,
        parent: Seq,
        with_snapshot: bool,
        kept: &BTreeSet<TaskId>,
    ) -> Result<Commit, OpenError> {
        let was = self.loaded.head;
        let head = Head {
            epoch: was.epoch.claimed(self.moment.entropy),
            seq: was.seq.next(),
            status: match has_work(&self.position) {
                true => Status::Paused,
                false => Status::Idle,
            },
            recoveries: 0,
            answers: was.answers,
        };
        let closed = self.interrupts_except(kept)?;
        let entry = Entry {
            kind,
            parent,
            at: self.moment.now,
            changes: self.changes,
            stop: None,
            extensions: self.extensions,
        };
        let thread = self.position.thread.clone();
        let tasks: BTreeSet<_> = self.loaded.records.iter().map(|row| row.task).collect();
        let values = self.position.root().and(self.position.listed_values());
        Ok(Commit {
            expect: was,
            head,
            at: self.moment.now,
            entry: Some(entry.seal(&thread, head.seq)),
            snapshot: with_snapshot.then(|| self.position.snapshot().seal(&thread, head.seq)),
            asked: Vec::new(),
            closed,
            released: tasks
                .difference(kept)
                .map(|task| Released {
                    task: *task,
                    which: ReleasedRecords::All,
                })
                .collect(),
            listing: Some(Listing {
                graph: self.position.graph.name.clone(),
                metadata: None,
                values,
            }),
            lease: None,
            thread,
        })
    }
}

/// Returns the id that stands for the task of an update from outside: messages without an id get theirs from it. `index` counts
/// the updates of one commit.
pub(super) fn outside_writer(thread: &ThreadId, head: Head, index: u32) -> TaskId {
    let first = RunId::derive(thread, head.seq.next(), head.epoch).to_bytes();
    let first = TaskId::from_bytes(first);
    match index {
        0 => first,
        // A second update with the same id would replace the messages of the first.
        index => {
            let derived = InterruptId::derive(first, &format!("update {index}"));
            TaskId::from_bytes(derived.to_bytes())
        }
    }
}

/// Reads an update from outside, and checks it against the state that it changes.
pub(super) fn prepare_update(
    graph: &Definition,
    state: &Live,
    update: &Value,
    writer: TaskId,
) -> Result<Prepared, OpenError> {
    let update = graph
        .ops
        .decode_update(update, graph.ops.version())
        .map_err(|error| bad_input(graph, error))?;
    graph
        .ops
        .prepare(state, update, writer)
        .map_err(|error| bad_input(graph, error))
}

pub(super) fn bad_input(
    graph: &Definition,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::BadInput {
        graph: graph.name.clone(),
        source: error.into(),
    }
}
