//! Supersteps that have started: one slot per task.

use std::collections::BTreeMap;

use crate::checkpoint::format::{GotoRecord, InterruptRecord, ParentRecord};
use crate::error::Failure;
use crate::graph::{AnyUpdate, NodeDef};
use crate::ids::{FramePath, NodeName, TaskId, Timestamp};
use crate::node::{Output, TaskRecords};
use crate::value::Value;

/// The frame and index of each started task.
///
/// Most supersteps have one task, which needs no tree.
#[derive(Debug, Default)]
pub(super) struct TaskPlaces {
    first: Option<(TaskId, (FramePath, u32))>,
    others: BTreeMap<TaskId, (FramePath, u32)>,
}

impl TaskPlaces {
    pub(super) fn get(&self, task: TaskId) -> Option<&(FramePath, u32)> {
        match &self.first {
            Some((first, place)) if *first == task => Some(place),
            _ => self.others.get(&task),
        }
    }

    pub(super) fn insert(&mut self, task: TaskId, path: FramePath, index: u32) {
        let place = (path, index);
        match &mut self.first {
            Some((first, old)) if *first == task => *old = place,
            // A task has one place, so it must not be in both.
            None if !self.others.contains_key(&task) => self.first = Some((task, place)),
            _ => {
                self.others.insert(task, place);
            }
        }
    }

    pub(super) fn remove(&mut self, task: TaskId) {
        match &self.first {
            Some((first, _)) if *first == task => self.first = None,
            _ => {
                self.others.remove(&task);
            }
        }
    }
}

/// A superstep of one graph that has started.
pub(super) struct LiveFrame {
    pub(super) slots: Vec<Slot>,
    /// Maintained instead of recounted: a superstep may have ten thousand tasks and is examined after each.
    counts: Counts,
}

/// Number of tasks of a superstep by what they are doing.
#[derive(Default)]
struct Counts {
    ended: usize,
    under_way: usize,
    waiting: usize,
}

/// One task of a superstep.
pub(super) struct Slot {
    pub(super) task: TaskId,
    pub(super) node: NodeName,
    /// Number of attempts that were started.
    pub(super) attempt: u32,
    /// Steps that its attempts recorded, those before this run included.
    pub(super) records: TaskRecords,
    pub(super) doing: TaskActivity,
}

impl Slot {
    /// Returns the failure of a task that failed permanently.
    pub(super) fn failure(&self) -> Option<&Failure> {
        match &self.doing {
            TaskActivity::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

/// What a task is doing.
pub(super) enum TaskActivity {
    /// The node or its error handler runs.
    Running { handling: bool },
    /// The task is retried, or its handler runs, not before this time.
    Waiting {
        until: Timestamp,
        handle: Option<Failure>,
    },
    /// The task is a subgraph in progress.
    Inside,
    /// The task has a result.
    Ended(Ending),
    /// The task waits for answers to its interrupts.
    Asking(Vec<InterruptRecord>),
    /// The task failed permanently.
    Failed(Failure),
    /// The task was dropped before it ended.
    Dropped,
}

/// The result of a task.
pub(super) struct Ending {
    pub(super) updates: Updates,
    pub(super) goto: Vec<GotoRecord>,
    /// Whether its targets come from its command, instead of its node's edges.
    pub(super) by_command: bool,
    pub(super) parent: Option<ParentRecord>,
    pub(super) events: Vec<Value>,
    pub(super) cached: bool,
}

/// What a task wrote: the stored form of each update, and what a reader of it sees.
pub(super) enum Updates {
    One(Value, AnyUpdate),
    /// All updates that were made in a subgraph that shares its parent's state.
    Forwarded(Vec<(Value, AnyUpdate)>),
}

impl Ending {
    pub(super) fn of_output(output: Output, def: &NodeDef, cached: bool) -> Self {
        let Output { record, update } = output;
        Self {
            by_command: def.leaves_by_command(&record.goto),
            updates: Updates::One(record.update, update),
            goto: record.goto,
            parent: record.parent,
            events: record.events,
            cached,
        }
    }
}

impl LiveFrame {
    /// Creates a superstep with capacity for this many tasks, in an empty list that is used again.
    pub(super) fn with_room_for(tasks: usize, mut slots: Vec<Slot>) -> Self {
        slots.reserve_exact(tasks);
        Self {
            slots,
            counts: Counts::default(),
        }
    }

    pub(super) fn push(&mut self, slot: Slot) {
        self.counts.add(&slot.doing);
        self.slots.push(slot);
    }

    /// Changes what a task is doing, and updates the counts.
    pub(super) fn set(&mut self, index: u32, doing: TaskActivity) {
        let slot = &mut self.slots[index as usize];
        self.counts.remove(&slot.doing);
        self.counts.add(&doing);
        slot.doing = doing;
    }

    /// Drops every task in progress. Returns their ids.
    pub(super) fn drop_tasks(&mut self) -> Vec<TaskId> {
        let mut dropped = Vec::new();
        for slot in &mut self.slots {
            if slot.doing.is_under_way() {
                self.counts.remove(&slot.doing);
                slot.doing = TaskActivity::Dropped;
                dropped.push(slot.task);
            }
        }
        dropped
    }

    /// Whether every task has a result.
    pub(super) fn has_ended(&self) -> bool {
        self.counts.ended == self.slots.len()
    }

    /// Whether the driver will report something about a task: one runs, or waits for its time.
    pub(super) fn is_under_way(&self) -> bool {
        self.counts.under_way > 0
    }

    /// Returns the tasks that wait for their time, with their indexes.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, Timestamp, Option<&Failure>)> {
        let slots = if self.counts.waiting > 0 {
            &self.slots[..]
        } else {
            &[]
        };
        (0..)
            .zip(slots)
            .filter_map(|(index, slot)| match &slot.doing {
                TaskActivity::Waiting { until, handle } => Some((index, *until, handle.as_ref())),
                _ => None,
            })
    }
}

impl Counts {
    fn add(&mut self, doing: &TaskActivity) {
        self.ended += usize::from(matches!(doing, TaskActivity::Ended(_)));
        self.under_way += usize::from(doing.is_under_way());
        self.waiting += usize::from(matches!(doing, TaskActivity::Waiting { .. }));
    }

    fn remove(&mut self, doing: &TaskActivity) {
        self.ended -= usize::from(matches!(doing, TaskActivity::Ended(_)));
        self.under_way -= usize::from(doing.is_under_way());
        self.waiting -= usize::from(matches!(doing, TaskActivity::Waiting { .. }));
    }
}

impl TaskActivity {
    /// Whether the driver will report something about it.
    fn is_under_way(&self) -> bool {
        matches!(
            self,
            TaskActivity::Running { .. } | TaskActivity::Waiting { .. }
        )
    }
}
