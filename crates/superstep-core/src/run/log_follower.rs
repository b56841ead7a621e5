//! Follows the log of a thread for streaming: every stream mode is a view of the one log.
//!
//! A [`LogFollower`] starts at an entry and takes the entries after it, stored or new; it returns the items to show for each. A
//! client that rejoins at any point sees what one that never left saw.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::checkpoint::History;
use crate::checkpoint::format::{
    AttemptFailed, Change, Entry, EntryKind, FrameAdvanced, Next, StateWritten, Stop,
};
use crate::error::OpenError;
use crate::graph::Definition;
use crate::ids::{FramePath, NodeName, RunId, Seq, TaskId, ThreadId, Timestamp};
use crate::run::position::{Frame, Position};
use crate::value::Value;

/// What a watcher can ask to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamMode {
    /// The whole state after each superstep.
    Values,
    /// What each task wrote.
    Updates,
    /// Events that nodes emitted.
    Custom,
    /// Runs as they begin, and tasks as they start, fail and end.
    Tasks,
    /// Each entry, with the state and what runs next.
    Checkpoints,
}

/// One item of the log, numbered by its entry and its position among the items of that entry.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Sequence number of the entry.
    pub seq: Seq,
    /// Position within the entry, from 0. It does not depend on which modes are filtered out.
    pub index: u32,
    /// Path of the graph; empty for the root.
    pub frame: FramePath,
    /// What the item shows.
    pub what: StreamEventBody,
    /// Run that the entry belongs to. A change from outside belongs to the run before it.
    pub run: RunId,
    /// Time of the entry, by the driver's clock.
    pub at: Timestamp,
    /// What wrote the entry.
    pub kind: EntryKind,
}

/// What an item of the log shows.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEventBody {
    /// A run started, or a run with an id of its own resumed the thread. Comes before everything else of its entry. A state
    /// update that creates a thread starts no run.
    RunBegan {
        /// Whether the run resumed the thread, instead of starting with an input.
        is_resumed: bool,
    },
    /// The state after a superstep, as a JSON object.
    Values(Value),
    /// What a task wrote.
    Update {
        /// Name of the task's node.
        node: NodeName,
        /// Updates of the task, in order.
        updates: Vec<Value>,
        /// Whether the result came from the node cache.
        cached: bool,
    },
    /// An event that a node emitted.
    Custom {
        /// Name of the node.
        node: NodeName,
        /// The emitted event, as plain JSON.
        payload: Value,
    },
    /// A task is about to run.
    TaskStarts {
        /// Id of the task.
        task: TaskId,
        /// Name of the task's node.
        node: NodeName,
        /// Payload that was sent to the task; `None` for a node that reads the state.
        payload: Option<Value>,
    },
    /// A task has ended.
    TaskEnded {
        /// Id of the task.
        task: TaskId,
        /// Name of the task's node.
        node: NodeName,
    },
    /// An attempt of a task failed.
    AttemptFailed(AttemptFailed),
    /// An entry of the log.
    Checkpoint {
        /// What wrote the entry.
        kind: EntryKind,
        /// The entry that it follows.
        parent: Seq,
        /// State of the root graph, as a JSON object.
        values: Value,
        /// Nodes of the root graph that run next.
        next: Vec<NodeName>,
    },
    /// The run stopped. Every mode shows this.
    Stopped(Stop),
}

impl StreamEventBody {
    /// Returns the mode that shows this; `None` for what every mode shows.
    pub fn mode(&self) -> Option<StreamMode> {
        match self {
            StreamEventBody::Values(_) => Some(StreamMode::Values),
            StreamEventBody::Update { .. } => Some(StreamMode::Updates),
            StreamEventBody::Custom { .. } => Some(StreamMode::Custom),
            StreamEventBody::RunBegan { .. }
            | StreamEventBody::TaskStarts { .. }
            | StreamEventBody::TaskEnded { .. }
            | StreamEventBody::AttemptFailed(_) => Some(StreamMode::Tasks),
            StreamEventBody::Checkpoint { .. } => Some(StreamMode::Checkpoints),
            StreamEventBody::Stopped(_) => None,
        }
    }
}

/// Follows the log of one thread.
pub struct LogFollower {
    graph: Arc<Definition>,
    thread: ThreadId,
    position: Option<Position>,
    /// Which items with a whole state to return. Encoding a state costs as much as the state is large.
    states: StatesShown,
}

/// Which items with a whole state a follower returns.
#[derive(Clone, Copy)]
struct StatesShown {
    values: bool,
    checkpoints: bool,
}

impl StatesShown {
    fn are_shown(self) -> bool {
        self.values || self.checkpoints
    }
}

/// The items of one entry.
#[derive(Default)]
struct Items {
    found: Vec<(u32, FramePath, StreamEventBody)>,
    /// Index of the next item.
    next: u32,
}

impl Items {
    fn push(&mut self, frame: FramePath, body: StreamEventBody) {
        self.found.push((self.next, frame, body));
        self.skip();
    }

    /// Leaves an item out. It keeps its index, so that indexes are the same for every watcher.
    fn skip(&mut self) {
        self.next += 1;
    }
}

impl LogFollower {
    /// Starts at the end of a history; an empty one is the beginning of the thread.
    pub fn after(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        history: &History,
    ) -> Result<Self, OpenError> {
        let position = Position::read(graph, thread, history)?;
        Ok(Self {
            graph: graph.clone(),
            thread: thread.clone(),
            position,
            states: StatesShown {
                values: true,
                checkpoints: true,
            },
        })
    }

    /// Leaves out items with a whole state whose mode is not among these, without encoding the state; if none is left, without
    /// reading any state. What was left out before stays left out. Other items are always returned: they cost little, and
    /// [`LiveFilter`](crate::run::LiveFilter) needs some of them.
    #[must_use]
    pub fn with_states_of(mut self, modes: &BTreeSet<StreamMode>) -> Self {
        self.states.values &= modes.contains(&StreamMode::Values);
        self.states.checkpoints &= modes.contains(&StreamMode::Checkpoints);
        self
    }

    /// Returns the items of the next entry.
    ///
    /// A fork names the entry from which the thread continues, not the state there: start a new watch after it.
    pub fn see(&mut self, seq: Seq, entry: &Entry) -> Result<Vec<StreamEvent>, OpenError> {
        let mut items = Items::default();
        // State of the root graph after the last change, if an item shows it: the checkpoint shows the same.
        let mut root_values = None;
        if let Some(is_resumed) = begins_run(entry) {
            items.push(FramePath::root(), StreamEventBody::RunBegan { is_resumed });
        }
        for change in &entry.changes {
            self.look(change, &mut items);
            if matches!(change, Change::Forked(_)) {
                continue;
            }
            let (before, graph, thread) = (self.position.take(), &self.graph, &self.thread);
            let position = if self.states.are_shown() {
                Position::replay(before, graph, thread, change.clone())
            } else {
                Position::replay_without_states(before, graph, thread, change)
            };
            self.position = Some(position?);
            root_values = self.look_again(change, &mut items);
        }
        self.look_at_checkpoint(entry, root_values, &mut items);
        if let Some(stop) = &entry.stop {
            items.push(FramePath::root(), StreamEventBody::Stopped(stop.clone()));
        }
        // Only a log whose beginning is missing has an entry without a run.
        let run = self.position.as_ref().map(|position| position.run.run);
        let run = run.unwrap_or(RunId::from_bytes([0; 16]));
        let found = items.found.into_iter();
        Ok(found
            .map(|(index, frame, what)| StreamEvent {
                seq,
                index,
                frame,
                what,
                run,
                at: entry.at,
                kind: entry.kind,
            })
            .collect())
    }

    /// Returns the tasks whose superstep has started and not ended, according to the log.
    pub fn under_way(&self) -> BTreeSet<TaskId> {
        let Some(position) = &self.position else {
            return BTreeSet::new();
        };
        let of_frame = |(path, frame): (&FramePath, &Frame)| -> Vec<TaskId> {
            let tasks = (0..).zip(&frame.next.tasks);
            tasks
                .map(|(index, task)| position.task_id(path, &task.node, index))
                .collect()
        };
        position.frames.iter().flat_map(of_frame).collect()
    }

    /// Collects what is visible only before a change: the tasks that it ends.
    fn look(&self, change: &Change, items: &mut Items) {
        match (change, &self.position) {
            (Change::FrameAdvanced(advanced), Some(position)) => {
                ended_tasks(position, advanced, items)
            }
            (Change::AttemptFailed(failed), _) => items.push(
                failed.frame.clone(),
                StreamEventBody::AttemptFailed(failed.clone()),
            ),
            _ => {}
        }
    }

    /// Collects what is visible only after a change: the new state, and what runs next. Returns the state if it is that of the
    /// root graph and was encoded.
    fn look_again(&self, change: &Change, items: &mut Items) -> Option<Value> {
        let (root, nothing) = (FramePath::root(), Next::default());
        let (path, next) = match change {
            Change::FrameAdvanced(advanced) => (&advanced.frame, &advanced.next),
            Change::FrameOpened(opened) => (&opened.frame, &opened.next),
            // What runs next stays, and was shown before.
            Change::StateWritten(StateWritten {
                update: Some(_), ..
            }) => (&root, &nothing),
            Change::Replanned(next) => (&root, next),
            Change::StateWritten(_)
            | Change::RunStarted(_)
            | Change::RunResumed(_)
            | Change::AttemptFailed(_)
            | Change::Forked(_) => return None,
        };
        let position = self.position.as_ref()?;
        let frame = position.frames.get(path)?;
        let values = match self.states.values {
            true => encoded_state(frame),
            false => None,
        };
        match &values {
            Some(values) => items.push(path.clone(), StreamEventBody::Values(values.clone())),
            None => items.skip(),
        }
        starting_tasks(position, path, next, items);
        values.filter(|_| path.is_root())
    }

    fn look_at_checkpoint(&self, entry: &Entry, root_values: Option<Value>, items: &mut Items) {
        let Some(root) = self.position.as_ref().and_then(Position::root) else {
            return;
        };
        let values = match self.states.checkpoints {
            true => root_values.or_else(|| encoded_state(root)),
            false => None,
        };
        let Some(values) = values else {
            return items.skip();
        };
        let next = root.next.tasks.iter().map(|task| task.node.clone());
        let checkpoint = StreamEventBody::Checkpoint {
            kind: entry.kind,
            parent: entry.parent,
            values,
            next: next.collect(),
        };
        items.push(FramePath::root(), checkpoint);
    }
}

fn encoded_state(frame: &Frame) -> Option<Value> {
    frame.graph.ops.encode_state(&frame.state).ok()
}

impl std::fmt::Debug for LogFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFollower")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// Returns whether the run that begins with this entry resumed the thread; `None` if none begins.
fn begins_run(entry: &Entry) -> Option<bool> {
    if entry.kind == EntryKind::Update {
        return None;
    }
    entry.changes.iter().find_map(|change| match change {
        Change::RunStarted(_) => Some(false),
        Change::RunResumed(_) => Some(true),
        _ => None,
    })
}

fn ended_tasks(position: &Position, advanced: &FrameAdvanced, items: &mut Items) {
    if !position.frames.contains_key(&advanced.frame) {
        return;
    }
    for write in &advanced.writes {
        let path = || advanced.frame.clone();
        let task = position.task_id(&advanced.frame, &write.node, write.index);
        for payload in &write.events {
            items.push(
                path(),
                StreamEventBody::Custom {
                    node: write.node.clone(),
                    payload: payload.clone(),
                },
            );
        }
        items.push(
            path(),
            StreamEventBody::TaskEnded {
                task,
                node: write.node.clone(),
            },
        );
        let update = StreamEventBody::Update {
            node: write.node.clone(),
            updates: write.updates.clone(),
            cached: write.cached,
        };
        items.push(path(), update);
    }
}

fn starting_tasks(position: &Position, path: &FramePath, next: &Next, items: &mut Items) {
    for (index, task) in (0..).zip(&next.tasks) {
        let id = position.task_id(path, &task.node, index);
        let starts = StreamEventBody::TaskStarts {
            task: id,
            node: task.node.clone(),
            payload: task.payload.clone(),
        };
        items.push(path.clone(), starts);
    }
}
