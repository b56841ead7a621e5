//! The stretch of a run that one process makes, by the rules of a driver that spreads runs over processes.
//!
//! The same rules as in `superstep::segment`, with dice in the place of limits: what holds here for every throw holds
//! there for every limit.

use std::collections::BTreeMap;

use superstep_core::checkpoint::RecordWrite;
use superstep_core::node::{Receipt, Task, TaskEnd};
use superstep_core::run::{Carried, Durability};
use superstep_core::{Run, TaskId, Timestamp};

use super::lab::Inner;

/// Where a process put its run down.
#[derive(Debug)]
pub(super) enum Boundary {
    /// Another one goes on.
    GoOn(Carried),
    /// Nothing is to be done before this time.
    Sleep { until: Timestamp, carried: Carried },
    /// These are to be run first, by anybody.
    HandOver {
        tasks: Vec<TaskId>,
        carried: Carried,
    },
}

pub(super) struct Stretch {
    supersteps: u32,
    /// Whether tasks may be run elsewhere: then all that happens is stored at once.
    hands_over: bool,
    /// Tasks that others are to run.
    abroad: Vec<TaskId>,
    /// For those that are run here.
    receipts: BTreeMap<TaskId, Receipt>,
}

impl Stretch {
    pub(super) fn new(durability: Durability) -> Self {
        Self {
            supersteps: 0,
            hands_over: durability == Durability::Sync,
            abroad: Vec::new(),
            receipts: BTreeMap::new(),
        }
    }

    /// Whether the run is put down instead of starting these. Seldom before it got anywhere, or it never would.
    pub(super) fn is_over(&self, run: &Run, lab: &mut Inner) -> bool {
        let chance = match self.supersteps {
            0 => lab.weather.put_down / 8,
            _ => lab.weather.put_down,
        };
        lab.dice.chance(chance) && self.abroad.is_empty() && run.is_stored()
    }

    /// Takes out the tasks that others are to run. Gives those that are to be run here.
    pub(super) fn hand_over(
        &mut self,
        run: &mut Run,
        tasks: Vec<Task>,
        lab: &mut Inner,
    ) -> Vec<Task> {
        self.supersteps += 1;
        if !self.hands_over {
            return tasks;
        }
        let can_move = tasks.iter().filter(|task| task.can_move()).count();
        let are_many = can_move > 0 && can_move >= lab.weather.hand_over_from;
        let are_handed = are_many && lab.dice.chance(lab.weather.hand_over) && run.is_stored();
        let (abroad, here): (Vec<_>, Vec<_>) = match are_handed {
            true => tasks.into_iter().partition(Task::can_move),
            false => (Vec::new(), tasks),
        };
        if !abroad.is_empty() {
            lab.counts.handed_over += abroad.len() as u64;
            lab.trace.add(format_args!("  hand over {}", abroad.len()));
            self.abroad.extend(abroad.iter().map(Task::id));
            // Nothing else begins before they are back: what happens meanwhile would not be seen by them.
            run.drain();
        }
        let receipts = here.iter().map(|task| (task.id(), task.receipt()));
        self.receipts.extend(receipts);
        here
    }

    /// The record that tells of a task that ended here without a result, while others are abroad: the run is put down
    /// before it could take that in.
    pub(super) fn written(&mut self, task: TaskId, end: &TaskEnd) -> Option<RecordWrite> {
        let receipt = self.receipts.remove(&task)?;
        match self.abroad.is_empty() {
            true => None,
            false => receipt.record(end),
        }
    }

    /// Where the run is put down when nothing of it is under way here.
    pub(super) fn boundary(
        &self,
        run: &Run,
        until: Option<Timestamp>,
        lab: &mut Inner,
    ) -> Option<Boundary> {
        if !run.is_stored() {
            return None;
        }
        if !self.abroad.is_empty() {
            let tasks = self.abroad.clone();
            let carried = run.carried();
            return Some(Boundary::HandOver { tasks, carried });
        }
        let until = until?;
        let carried = run.carried();
        let chance = lab.weather.put_down;
        (lab.dice.chance(chance)).then_some(Boundary::Sleep { until, carried })
    }

    /// Whether tasks of the run are to be run by others.
    pub(super) fn is_abroad(&self) -> bool {
        !self.abroad.is_empty()
    }
}
