//! Watching: every stream mode is a view of the one log.
//!
//! A [`Watch`] stands at an entry and is told the entries after it, stored or just made; it gives what
//! there is to see in each. A client that rejoins at any point sees what one that never left saw.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::checkpoint::History;
use crate::checkpoint::format::{
    AttemptFailed, Change, Entry, EntryKind, FrameAdvanced, Next, Stop,
};
use crate::error::OpenError;
use crate::graph::Definition;
use crate::ids::{FramePath, NodeName, Seq, TaskId, ThreadId};
use crate::run::position::{Frame, Position};
use crate::value::Value;

/// What one can ask to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamMode {
    /// The whole state after each superstep.
    Values,
    /// What each task wrote.
    Updates,
    /// What nodes emitted.
    Custom,
    /// Tasks as they begin and end.
    Tasks,
    /// Each entry, with the state and what runs next.
    Checkpoints,
}

/// One thing to see. Its number in the log is the entry's, and its place among what the entry shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The entry.
    pub seq: Seq,
    /// Its place in the entry, from 0, whatever is filtered out.
    pub index: u32,
    /// The graph, empty for the root.
    pub frame: FramePath,
    /// What.
    pub what: Sight,
}

/// What there is to see.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight {
    /// The state after a superstep.
    Values(Value),
    /// What a task wrote.
    Update {
        /// Its node.
        node: NodeName,
        /// Its updates, in order.
        updates: Vec<Value>,
        /// Whether the result came from the node cache.
        cached: bool,
    },
    /// What a node emitted.
    Custom {
        /// The node.
        node: NodeName,
        /// What.
        payload: Value,
    },
    /// A task is about to run.
    TaskStarts {
        /// Its id.
        task: TaskId,
        /// Its node.
        node: NodeName,
        /// What was sent to it.
        payload: Option<Value>,
    },
    /// A task has ended.
    TaskEnded {
        /// Its id.
        task: TaskId,
        /// Its node.
        node: NodeName,
    },
    /// An attempt of a task failed.
    AttemptFailed(AttemptFailed),
    /// An entry.
    Checkpoint {
        /// What made it.
        kind: EntryKind,
        /// The entry it follows.
        parent: Seq,
        /// The state of the root graph.
        values: Value,
        /// The nodes of the root graph that run next.
        next: Vec<NodeName>,
    },
    /// The run stopped.
    Stopped(Stop),
}

impl Sight {
    /// The mode that shows it; none for what every mode shows.
    pub fn mode(&self) -> Option<StreamMode> {
        match self {
            Sight::Values(_) => Some(StreamMode::Values),
            Sight::Update { .. } => Some(StreamMode::Updates),
            Sight::Custom { .. } => Some(StreamMode::Custom),
            Sight::TaskStarts { .. } | Sight::TaskEnded { .. } | Sight::AttemptFailed(_) => {
                Some(StreamMode::Tasks)
            }
            Sight::Checkpoint { .. } => Some(StreamMode::Checkpoints),
            Sight::Stopped(_) => None,
        }
    }
}

/// Follows the log of one thread.
pub struct Watch {
    graph: Arc<Definition>,
    thread: ThreadId,
    position: Option<Position>,
}

impl Watch {
    /// Begins where a stretch of history ends; an empty one is the beginning of the thread.
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
        })
    }

    /// What there is to see in the next entry.
    ///
    /// A fork says where the thread goes on from, not how it looks there: begin a new watch after it.
    pub fn see(&mut self, seq: Seq, entry: &Entry) -> Result<Vec<Seen>, OpenError> {
        let mut sights = Vec::new();
        for change in &entry.changes {
            self.look(change, &mut sights)?;
            if matches!(change, Change::Forked(_)) {
                continue;
            }
            let position = Position::replay(
                self.position.take(),
                &self.graph,
                &self.thread,
                change.clone(),
            )?;
            self.position = Some(position);
            self.look_again(change, &mut sights);
        }
        if let Some(checkpoint) = self.checkpoint(entry) {
            sights.push((FramePath::root(), checkpoint));
        }
        if let Some(stop) = &entry.stop {
            sights.push((FramePath::root(), Sight::Stopped(stop.clone())));
        }
        Ok((0..)
            .zip(sights)
            .map(|(index, (frame, what))| Seen {
                seq,
                index,
                frame,
                what,
            })
            .collect())
    }

    /// The tasks whose superstep has begun and not ended, as far as the log tells.
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

    /// What can only be seen before a change: which tasks it ends.
    fn look(&self, change: &Change, sights: &mut Vec<(FramePath, Sight)>) -> Result<(), OpenError> {
        match (change, &self.position) {
            (Change::FrameAdvanced(advanced), Some(position)) => {
                ended_tasks(position, advanced, sights)
            }
            (Change::AttemptFailed(failed), _) => {
                sights.push((failed.frame.clone(), Sight::AttemptFailed(failed.clone())))
            }
            _ => {}
        }
        Ok(())
    }

    /// What can only be seen after it: the new state, and what runs next.
    fn look_again(&self, change: &Change, sights: &mut Vec<(FramePath, Sight)>) {
        let (path, next) = match change {
            Change::FrameAdvanced(advanced) => (&advanced.frame, &advanced.next),
            Change::FrameOpened(opened) => (&opened.frame, &opened.next),
            Change::RunStarted(_)
            | Change::RunResumed(_)
            | Change::AttemptFailed(_)
            | Change::Forked(_) => return,
        };
        let Some(position) = &self.position else {
            return;
        };
        let Some(frame) = position.frames.get(path) else {
            return;
        };
        if let Ok(values) = frame.graph.ops.encode_state(&frame.state) {
            sights.push((path.clone(), Sight::Values(values)));
        }
        starting_tasks(position, path, next, sights);
    }

    fn checkpoint(&self, entry: &Entry) -> Option<Sight> {
        let root = self.position.as_ref()?.root()?;
        let next = root
            .next
            .tasks
            .iter()
            .map(|task| task.node.clone())
            .collect();
        let values = root.graph.ops.encode_state(&root.state).ok()?;
        Some(Sight::Checkpoint {
            kind: entry.kind,
            parent: entry.parent,
            values,
            next,
        })
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

fn ended_tasks(
    position: &Position,
    advanced: &FrameAdvanced,
    sights: &mut Vec<(FramePath, Sight)>,
) {
    if !position.frames.contains_key(&advanced.frame) {
        return;
    }
    for write in &advanced.writes {
        let path = || advanced.frame.clone();
        let task = position.task_id(&advanced.frame, &write.node, write.index);
        for payload in &write.events {
            sights.push((
                path(),
                Sight::Custom {
                    node: write.node.clone(),
                    payload: payload.clone(),
                },
            ));
        }
        sights.push((
            path(),
            Sight::TaskEnded {
                task,
                node: write.node.clone(),
            },
        ));
        let update = Sight::Update {
            node: write.node.clone(),
            updates: write.updates.clone(),
            cached: write.cached,
        };
        sights.push((path(), update));
    }
}

fn starting_tasks(
    position: &Position,
    path: &FramePath,
    next: &Next,
    sights: &mut Vec<(FramePath, Sight)>,
) {
    for (index, task) in (0..).zip(&next.tasks) {
        let id = position.task_id(path, &task.node, index);
        let starts = Sight::TaskStarts {
            task: id,
            node: task.node.clone(),
            payload: task.payload.clone(),
        };
        sights.push((path.clone(), starts));
    }
}
