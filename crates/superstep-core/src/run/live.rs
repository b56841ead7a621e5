//! Supersteps that have begun: one slot per task.

use crate::checkpoint::format::{GotoRecord, ParentRecord, Question};
use crate::error::Failure;
use crate::graph::AnyUpdate;
use crate::ids::{NodeName, TaskId, Timestamp};
use crate::node::Output;
use crate::value::Value;

/// A superstep of one graph that has begun.
#[derive(Default)]
pub(super) struct LiveFrame {
    pub(super) slots: Vec<Slot>,
    /// How many slots have not ended.
    pub(super) open: usize,
}

/// One task of a superstep.
pub(super) struct Slot {
    pub(super) task: TaskId,
    pub(super) node: NodeName,
    /// Attempts that were started.
    pub(super) attempt: u32,
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
    /// It failed for good.
    Failed(Failure),
    /// It was dropped before it ended.
    Dropped,
}

/// The result of a task.
pub(super) struct Ending {
    /// Stored form and what a reader of it sees.
    pub(super) updates: Vec<(Value, AnyUpdate)>,
    pub(super) goto: Vec<GotoRecord>,
    /// Whether the places it goes to are its command's, instead of its node's edges.
    pub(super) by_command: bool,
    pub(super) parent: Option<ParentRecord>,
    pub(super) events: Vec<Value>,
    pub(super) cached: bool,
}

impl Ending {
    pub(super) fn of_output(output: Output, by_command: bool, cached: bool) -> Self {
        let Output { record, update } = output;
        Self {
            by_command: by_command || !record.goto.is_empty(),
            updates: vec![(record.update, update)],
            goto: record.goto,
            parent: record.parent,
            events: record.events,
            cached,
        }
    }
}

impl LiveFrame {
    /// Changes what a task is doing, and keeps count.
    pub(super) fn set(&mut self, index: u32, doing: Doing) {
        let slot = &mut self.slots[index as usize];
        let (was, is) = (slot.doing.has_ended(), doing.has_ended());
        slot.doing = doing;
        match (was, is) {
            (false, true) => self.open -= 1,
            (true, false) => self.open += 1,
            (true, true) | (false, false) => {}
        }
    }

    pub(super) fn push(&mut self, slot: Slot) {
        self.open += usize::from(!slot.doing.has_ended());
        self.slots.push(slot);
    }
}

impl Doing {
    fn has_ended(&self) -> bool {
        matches!(self, Doing::Ended(_))
    }

    /// Whether news of it will come by itself.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Doing::Running { .. } | Doing::Waiting { .. })
    }
}
