//! Changes a thread from outside: a state update in the name of a node, and a fork.
//!
//! Both return one fenced commit that claims the thread, so they exclude a run, and each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkpoint::format::{
    Body, Change, Entry, EntryKind, Extensions, Forked, FrameAdvanced, FrameOpened, GotoRecord,
    Next, RunRecord, TaskWrite,
};
use crate::checkpoint::{
    Commit, Head, History, Listing, Loaded, Released, ReleasedRecords, Status,
};
use crate::command::{self, Command};
use crate::error::{NodeError, OpenError, ValueError};
use crate::graph::{Definition, Prepared};
use crate::ids::{FramePath, Moment, NodeName, RunId, Seq, TaskId, ThreadId};
use crate::run::plan;
use crate::run::position::{Position, TaskUpdate, try_write_beside, try_writes};
use crate::state::State;
use crate::value::Value;

/// A change of a thread's state from outside.
#[derive(Debug, Clone)]
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

/// Returns the commit that updates the state of a thread. Refused while the thread is running.
pub fn update_state(
    graph: &Arc<Definition>,
    thread: &ThreadId,
    loaded: Option<Loaded>,
    edit: &Edit,
    moment: Moment,
) -> Result<Commit, OpenError> {
    let loaded = loaded.unwrap_or_default();
    let run = || RunRecord {
        run: RunId::derive(
            thread,
            loaded.head.seq.next(),
            loaded.head.epoch.claimed(moment.entropy),
        ),
        graph: graph.name.clone(),
        context: None,
        step_limit: 0,
    };
    let found = Position::read(graph, thread, &loaded.history)?;
    let is_new = found.is_none();
    let position = found.unwrap_or_else(|| Position::empty(graph, thread, run()));
    let mut editing = Editing {
        loaded,
        position,
        moment,
        changes: Vec::new(),
    };
    editing.refuse_running()?;
    if is_new {
        editing
            .changes
            .push(Change::RunStarted(editing.position.run.clone()));
    }
    match &edit.node {
        EditNode::Input => editing.as_input(edit)?,
        EditNode::End => editing.as_end(),
        EditNode::Node(node) => editing.as_node(node, edit)?,
        EditNode::Last => {
            let node = editing.last_node()?;
            editing.as_node(&node, edit)?;
        }
    }
    let (parent, snapshot) = (editing.loaded.head.seq, editing.position.is_outdated());
    Ok(editing.commit(EntryKind::Update, parent, snapshot))
}

/// The entry from which a fork continues.
#[derive(Debug)]
pub struct ForkFrom<'a> {
    /// Sequence number of the entry.
    pub at: Seq,
    /// History up to the entry.
    pub history: &'a History,
    /// Thread that the history was copied from; `None` for a fork within one thread.
    pub copied_from: Option<&'a ThreadId>,
    /// Encoded update to write into the graph's state at the fork. It does not change what runs next. A subgraph with its own
    /// state that was already entered keeps that state.
    pub write: Option<&'a Value>,
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
    let nothing = || OpenError::NothingToRun {
        thread: thread.clone(),
    };
    let position = Position::read(graph, thread, from.history)?.ok_or_else(nothing)?;
    let mut editing = Editing {
        loaded,
        position,
        moment,
        changes: Vec::new(),
    };
    editing.refuse_running()?;
    editing.position.check()?;
    let branch = editing.loaded.head.seq.next();
    editing
        .position
        .rebranch(from.copied_from.unwrap_or(thread), branch);
    // On the new branch every task has a new id, so even a subgraph that was left for its error handler can be entered again.
    let frames = editing.position.frames.values_mut();
    frames.for_each(|frame| frame.failed.clear());
    if let Some(write) = from.write {
        editing.write(write)?;
    }
    editing.changes.push(Change::Forked(Forked {
        thread: from.copied_from.map(ToString::to_string),
        seq: from.at,
    }));
    Ok(editing.commit(EntryKind::Fork, from.at, true))
}

struct Editing {
    loaded: Loaded,
    position: Position,
    moment: Moment,
    changes: Vec<Change>,
}

impl Editing {
    fn refuse_running(&self) -> Result<(), OpenError> {
        if self.loaded.head.status == Status::Running {
            return Err(OpenError::Busy {
                thread: self.position.thread.clone(),
            });
        }
        Ok(())
    }

    fn last_node(&self) -> Result<NodeName, OpenError> {
        let last = self.position.root().map_or(&[][..], |root| &root.last);
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
        let graph = self.position.graph.clone();
        let state = self
            .position
            .root()
            .map_or_else(|| graph.ops.initial(), |root| root.state.clone());
        let Prepared {
            stored,
            read_back: update,
            ..
        } = self.prepare(&state, &edit.update)?;
        let mut opened = FrameOpened {
            frame: FramePath::root(),
            entered_by: None,
            version: graph.ops.version(),
            input: Some(stored),
            next: Next::default(),
        };
        self.position
            .open(&opened, graph.clone(), Some(update))
            .map_err(|error| bad_input(&graph, error))?;
        let root = self.position.frame_mut(&FramePath::root());
        opened.next = plan::first(&graph, &root.state)
            .map_err(|error| bad_input(&graph, error.to_string()))?;
        root.next = opened.next.clone();
        self.changes.push(Change::FrameOpened(opened));
        Ok(())
    }

    fn as_end(&mut self) {
        if self.position.root().is_some() {
            self.advance(Vec::new(), Next::default());
        }
    }

    fn as_node(&mut self, node: &NodeName, edit: &Edit) -> Result<(), OpenError> {
        let graph = self.position.graph.clone();
        let def = graph.nodes.get(node).ok_or_else(|| OpenError::NoSuchNode {
            node: node.to_string(),
        })?;
        if self.position.root().is_none() {
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
        let root = self.position.frame(&FramePath::root());
        let Prepared {
            stored,
            read_back: update,
            ..
        } = self.prepare(&root.state.clone(), &edit.update)?;
        let root = self.position.frame_mut(&FramePath::root());
        try_writes(&*graph.ops, &mut root.state, vec![TaskUpdate::only(update)])
            .map_err(|error| bad_input(&graph, error))?;
        let goto = def
            .leaves_by_command(&edit.goto)
            .then_some(edit.goto.as_slice());
        let planned = plan::after(
            &graph,
            &root.state,
            &root.next,
            std::iter::once(plan::Ended { node, goto }),
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

    /// Writes into the state, and leaves what runs next as it is. The change is in the snapshot stored with the entry.
    fn write(&mut self, update: &Value) -> Result<(), OpenError> {
        let graph = self.position.graph.clone();
        let root = self
            .position
            .root()
            .ok_or_else(|| OpenError::NothingToRun {
                thread: self.position.thread.clone(),
            })?;
        let Prepared { read_back, .. } = self.prepare(&root.state.clone(), update)?;
        let root = self.position.frame_mut(&FramePath::root());
        try_write_beside(&*graph.ops, &mut root.state, read_back)
            .map_err(|error| bad_input(&graph, error))
    }

    fn prepare(&self, state: &crate::graph::Live, update: &Value) -> Result<Prepared, OpenError> {
        let graph = &self.position.graph;
        let update = graph
            .ops
            .decode_update(update, graph.ops.version())
            .map_err(|error| bad_input(graph, error))?;
        let seq = self.loaded.head.seq.next();
        let task = TaskId::from_bytes(
            RunId::derive(&self.position.thread, seq, self.loaded.head.epoch).to_bytes(),
        );
        graph
            .ops
            .prepare(state, update, task)
            .map_err(|error| bad_input(graph, error))
    }

    fn advance(&mut self, writes: Vec<TaskWrite>, next: Next) {
        let advanced = FrameAdvanced {
            frame: FramePath::root(),
            writes,
            next,
        };
        self.position.advance(&advanced);
        self.changes.push(Change::FrameAdvanced(advanced));
    }

    fn commit(mut self, kind: EntryKind, parent: Seq, with_snapshot: bool) -> Commit {
        let was = self.loaded.head;
        let head = Head {
            epoch: was.epoch.claimed(self.moment.entropy),
            seq: was.seq.next(),
            status: Status::Idle,
            recoveries: 0,
            answers: was.answers,
        };
        let entry = Entry {
            kind,
            parent,
            at: self.moment.now,
            changes: self.changes,
            stop: None,
            extensions: Extensions::default(),
        };
        let thread = self.position.thread.clone();
        let tasks: BTreeSet<_> = self.loaded.records.iter().map(|row| row.task).collect();
        let values = self
            .position
            .root()
            .and_then(|root| root.graph.ops.encode_state(&root.state).ok());
        Commit {
            expect: was,
            head,
            at: self.moment.now,
            entry: Some(entry.seal(&thread, head.seq)),
            snapshot: with_snapshot.then(|| self.position.snapshot().seal(&thread, head.seq)),
            asked: Vec::new(),
            closed: self.loaded.interrupts.iter().map(|row| row.id).collect(),
            released: tasks
                .into_iter()
                .map(|task| Released {
                    task,
                    which: ReleasedRecords::All,
                })
                .collect(),
            listing: Some(Listing {
                graph: self.position.graph.name.clone(),
                metadata: None,
                values: values.filter(|values| values.len() <= Listing::VALUES_BYTES_MAX),
            }),
            lease: None,
            thread,
        }
    }
}

fn bad_input(
    graph: &Definition,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> OpenError {
    OpenError::BadInput {
        graph: graph.name.clone(),
        source: error.into(),
    }
}
