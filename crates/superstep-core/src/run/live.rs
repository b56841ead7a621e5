//! Supersteps that have begun: one slot per task.

use crate::checkpoint::format::{GotoRecord, ParentRecord, Question};
use crate::error::Failure;
use crate::graph::AnyUpdate;
use crate::ids::{NodeName, TaskId, Timestamp};
use crate::node::{Output, TaskRecords};
use crate::value::Value;

/// A superstep of one graph that has begun.
pub(super) struct LiveFrame {
    pub(super) slots: Vec<Slot>,
    /// Kept, not counted again: a superstep may have ten thousand tasks and is looked at after each.
    counts: Counts,
}

/// How many tasks of a superstep are doing what.
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
    /// Attempts that were started.
    pub(super) attempt: u32,
    /// What its attempts recorded in steps, those before this run included.
    pub(super) records: TaskRecords,
    pub(super) doing: Doing,
}

/// What a task is doing.
pub(super) enum Doing {
    /// The node or its error handler runs.
    Running { handling: bool },
    /// It is tried again, or its handler runs, not before this time.
    Waiting {
        until: Timestamp,
        handle: Option<Failure>,
    },
    /// It is a subgraph that is under way.
    Inside,
    /// It has a result.
    Ended(Ending),
    /// It asks.
    Asking(Vec<Question>),
    /// It failed permanently.
    Failed(Failure),
    /// It was dropped before it ended.
    Dropped,
}

/// The result of a task.
pub(super) struct Ending {
    pub(super) updates: Updates,
    pub(super) goto: Vec<GotoRecord>,
    /// Whether the places it goes to are its command's, instead of its node's edges.
    pub(super) by_command: bool,
    pub(super) parent: Option<ParentRecord>,
    pub(super) events: Vec<Value>,
    pub(super) cached: bool,
}

/// What a task wrote: the stored form of each update, and what a reader of it sees.
pub(super) enum Updates {
    One(Value, AnyUpdate),
    /// All that were made in a subgraph that shares its parent's state.
    Forwarded(Vec<(Value, AnyUpdate)>),
}

impl Ending {
    pub(super) fn of_output(output: Output, by_command: bool, cached: bool) -> Self {
        let Output { record, update } = output;
        Self {
            by_command: by_command || !record.goto.is_empty(),
            updates: Updates::One(record.update, update),
            goto: record.goto,
            parent: record.parent,
            events: record.events,
            cached,
        }
    }
}

impl LiveFrame {
    /// A superstep that will have so many tasks.
    pub(super) fn with_room_for(tasks: usize) -> Self {
        Self {
            slots: Vec::with_capacity(tasks),
            counts: Counts::default(),
        }
    }

    pub(super) fn push(&mut self, slot: Slot) {
        self.counts.add(&slot.doing);
        self.slots.push(slot);
    }

    /// Changes what a task is doing, and keeps count.
    pub(super) fn set(&mut self, index: u32, doing: Doing) {
        let slot = &mut self.slots[index as usize];
        self.counts.remove(&slot.doing);
        self.counts.add(&doing);
        slot.doing = doing;
    }

    /// Drops every task that is under way. Gives their ids.
    pub(super) fn drop_tasks(&mut self) -> Vec<TaskId> {
        let mut dropped = Vec::new();
        for slot in &mut self.slots {
            if slot.doing.is_under_way() {
                self.counts.remove(&slot.doing);
                slot.doing = Doing::Dropped;
                dropped.push(slot.task);
            }
        }
        dropped
    }

    /// Whether every task has a result.
    pub(super) fn has_ended(&self) -> bool {
        self.counts.ended == self.slots.len()
    }

    /// Whether news of some task will come by itself.
    pub(super) fn is_under_way(&self) -> bool {
        self.counts.under_way > 0
    }

    /// The tasks that wait for their time, with their places.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, Timestamp, Option<&Failure>)> {
        let slots = if self.counts.waiting > 0 {
            &self.slots[..]
        } else {
            &[]
        };
        (0..)
            .zip(slots)
            .filter_map(|(index, slot)| match &slot.doing {
                Doing::Waiting { until, handle } => Some((index, *until, handle.as_ref())),
                _ => None,
            })
    }
}

impl Counts {
    fn add(&mut self, doing: &Doing) {
        self.ended += usize::from(matches!(doing, Doing::Ended(_)));
        self.under_way += usize::from(doing.is_under_way());
        self.waiting += usize::from(matches!(doing, Doing::Waiting { .. }));
    }

    fn remove(&mut self, doing: &Doing) {
        self.ended -= usize::from(matches!(doing, Doing::Ended(_)));
        self.under_way -= usize::from(doing.is_under_way());
        self.waiting -= usize::from(matches!(doing, Doing::Waiting { .. }));
    }
}

impl Doing {
    /// Whether news of it will come by itself.
    fn is_under_way(&self) -> bool {
        matches!(self, Doing::Running { .. } | Doing::Waiting { .. })
    }
}
