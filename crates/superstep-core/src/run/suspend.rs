//! Suspends a run where nothing is in progress, resumes it elsewhere, and lets other workers execute its tasks.
//!
//! A driver that spreads one run over many processes needs three things that one process does not. A run suspends and resumes
//! elsewhere without that counting as a crash: what the store does not know travels in a [`ResumeToken`]. Any worker executes
//! the tasks of a wide superstep: each is identified by its id, and built again from the store ([`Run::tasks`]). And how such a
//! task ended is persisted, because its run is not in that process: a result is recorded anyway, and any other end by its
//! [`Receipt`](crate::node::Receipt). The rules of when to suspend are in [`segment`](super::segment).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, ChannelKind};
use crate::checkpoint::format::{
    AfterFailure, Breakpoint, EndRecord, EndedHow, Entry, InterruptRecord, Stop,
};
use crate::checkpoint::{Glance, Loaded, RESULT_KEY, Released, ReleasedRecords, Status};
use crate::error::{FormatError, OpenError};
use crate::graph::Definition;
use crate::ids::{Epoch, FramePath, Moment, TaskId, ThreadId, Timestamp};
use crate::node::Task;
use crate::run::live::TaskActivity;
use crate::run::phase::Phase;
use crate::run::position::{Frame, Position};
use crate::run::{Outcome, Run, RunOptions, Step, open_interrupts};

/// What a suspended run needs to resume besides the store. Holds no user data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeToken {
    /// Epoch of the run. If the thread is at another one on resume, another process resumed it since and crashed.
    pub epoch: Epoch,
    /// Number of supersteps that each graph has executed, for the step limit. Pairs, because a path cannot be a JSON key.
    pub(super) steps: Vec<(FramePath, u64)>,
    /// Graphs that went to their node for the step limit.
    pub(super) limited: BTreeSet<FramePath>,
    /// Graphs that have passed the breakpoints before their superstep, with its number: another process may have executed that
    /// superstep since.
    pub(super) passed: Vec<(FramePath, u64)>,
    /// Why the run must stop once nothing is in progress, if it must.
    pub(super) halting: Option<Halting>,
}

impl ResumeToken {
    /// Whether a dispatched task of the suspended run must still be executed, according to the store.
    pub fn awaits_task(&self, glance: &Glance) -> bool {
        let is_ended = glance.records.iter().any(|row| row.key == RESULT_KEY);
        self.is_current(glance) && !is_ended
    }

    /// Whether the suspended run still waits: no other process claimed the thread, and no cancel was requested.
    pub fn is_current(&self, glance: &Glance) -> bool {
        glance.epoch == self.epoch && glance.status == Status::Running && !glance.cancel
    }
}

/// Why a suspended run must stop. A failure is not part of it: the process that resumes the run finds it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Halting {
    Breakpoint(Breakpoint),
    StepLimit,
}

impl Halting {
    fn of(stop: &Stop) -> Option<Self> {
        match stop {
            Stop::Breakpoint(breakpoint) => Some(Halting::Breakpoint(breakpoint.clone())),
            Stop::StepLimit => Some(Halting::StepLimit),
            Stop::Finished
            | Stop::Paused { .. }
            | Stop::Failed(_)
            | Stop::Cancelled
            | Stop::Drained => None,
        }
    }

    fn stop(self) -> Stop {
        match self {
            Halting::Breakpoint(breakpoint) => Stop::Breakpoint(breakpoint),
            Halting::StepLimit => Stop::StepLimit,
        }
    }
}

impl Run {
    /// Whether everything that has happened is stored, so that the run can be dropped and resumed, here or elsewhere, without
    /// doing anything twice. Tasks in progress do not count. Always false for a run with untracked channels or inside a
    /// stateless subgraph: they exist in one process only. Also false while a task has failed permanently or is interrupted and
    /// others of its superstep continue, unless its [`Receipt`](crate::node::Receipt) recorded that.
    pub fn is_stored(&self) -> bool {
        let is_stored = |frame: &Frame| {
            let is_tracked = |channel: &Channel| channel.kind != ChannelKind::Untracked;
            frame.stored && frame.graph.ops.channels().iter().all(is_tracked)
        };
        self.saving.is_none()
            && self.pending.claim.is_none()
            && !self.pending.has_entry()
            && !self
                .recorded
                .unpersisted_ends
                .iter()
                .any(|task| self.is_down(*task))
            && self.position.frames.values().all(is_stored)
    }

    /// Returns what [`Run::resume_suspended`] needs once this run is dropped.
    pub fn resume_token(&self) -> ResumeToken {
        ResumeToken {
            epoch: self.head.epoch,
            steps: (self.progress.steps.iter())
                .map(|(path, steps)| (path.clone(), *steps))
                .collect(),
            limited: self.progress.limited.clone(),
            passed: (self.live.keys())
                .map(|path| (path.clone(), self.position.frame(path).step))
                .chain(
                    self.progress
                        .passed
                        .iter()
                        .map(|(path, step)| (path.clone(), *step)),
                )
                .collect(),
            halting: match &self.phase {
                Phase::Held(stop) | Phase::Halting(stop) => Halting::of(stop),
                _ => None,
            },
        }
    }

    pub(super) fn restore_token(&mut self, token: ResumeToken) {
        self.progress.steps = token.steps.into_iter().collect();
        self.progress.limited = token.limited;
        self.progress.passed = token.passed.into_iter().collect();
        if let (Phase::Running, Some(halting)) = (&self.phase, token.halting) {
            self.phase = Phase::Held(halting.stop());
        }
    }

    /// Builds the tasks that a suspended run would start, to be executed on its behalf: their records count until another
    /// process claims the thread. Claims nothing itself.
    pub fn tasks(
        graph: &Arc<Definition>,
        thread: &ThreadId,
        loaded: &Loaded,
        options: RunOptions,
        token: ResumeToken,
        moment: Moment,
    ) -> Result<Vec<Task>, OpenError> {
        let nothing = || OpenError::NothingToRun {
            thread: thread.clone(),
        };
        if loaded.head.status != Status::Running || loaded.head.epoch != token.epoch {
            return Err(nothing());
        }
        let position = Position::read(graph, thread, &loaded.history)?.ok_or_else(nothing)?;
        let mut run = Self::at(position, loaded, options, moment);
        run.restore_tasks(loaded, Reopened::Suspended)?;
        run.restore_token(token);
        run.pending.claim = None;
        // Starts nothing that had not started.
        if let Phase::Running = run.phase {
            run.phase = Phase::Held(Stop::Drained);
        }
        run.start_supersteps();
        // Retries were due by the clock of the process that dispatched them.
        run.now = Timestamp(i64::MAX);
        run.start_supersteps();
        let rows = loaded.records.iter().filter(|row| row.key == RESULT_KEY);
        let told: BTreeSet<TaskId> = rows.map(|row| row.task).collect();
        let started = run.queue.into_iter().map(|step| match step {
            Step::Start(tasks) => tasks,
            _ => Vec::new(),
        });
        let tasks = started.flatten();
        Ok(tasks.filter(|task| !told.contains(&task.id())).collect())
    }

    /// Processes the end without a result of a task that another worker executed.
    pub(super) fn ended_elsewhere(&mut self, path: &FramePath, index: u32, end: EndRecord) {
        let failed = self.position.frame(path).failed.get(&index);
        let handling = failed.is_some_and(|failed| failed.then == AfterFailure::Handle);
        let live = self.live_frame(path);
        let slot = &mut live.slots[index as usize];
        slot.attempt += 1;
        let task = slot.task;
        live.set(index, TaskActivity::Running { handling });
        let told = self.task_ended(task, end.how.into(), self.now);
        debug_assert!(told.is_ok(), "the task was just set to run");
        self.recorded.unpersisted_ends.remove(&task);
        // A retry is in the thread's history; any other end is found again until the run stops.
        match self.is_down(task) {
            true => drop(self.recorded.ends.insert(task)),
            false => self.take_back_result(task),
        }
    }

    /// Whether a task has failed permanently or is interrupted.
    pub(super) fn is_down(&self, task: TaskId) -> bool {
        let place = self.places.get(task);
        let slot = place.and_then(|(path, index)| self.live.get(path)?.slots.get(*index as usize));
        slot.filter(|slot| slot.task == task).is_some_and(|slot| {
            matches!(
                slot.doing,
                TaskActivity::Failed(_) | TaskActivity::Asking(_)
            )
        })
    }

    /// Whether a task ended with an interrupt that has been answered since.
    pub(super) fn is_answered(&self, task: TaskId, end: &EndRecord) -> bool {
        let (EndedHow::Paused(drafts), Some(answers)) =
            (&end.how, self.interrupts.answers.get(&task))
        else {
            return false;
        };
        drafts.iter().any(|draft| answers.contains_key(&draft.key))
    }

    /// Releases the recorded result of a task before the task runs again: otherwise the store would keep the old result and
    /// ignore the new one.
    pub(super) fn free_result(&mut self, task: TaskId) {
        self.take_back_result(task);
        self.pending.frees = true;
    }

    /// Forgets the recorded result of a task; its steps stay.
    pub(super) fn take_back_result(&mut self, task: TaskId) {
        self.recorded.results.remove(&task);
        self.recorded.ends.remove(&task);
        self.pending.released.push(Released {
            task,
            which: ReleasedRecords::Result,
        });
    }
}

/// How a run that did not stop came to be opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reopened {
    /// The run was suspended on purpose.
    Suspended,
    /// The owner crashed.
    AfterCrash,
}

/// Returns how a run stopped, from the entry that records it and the interrupts of its thread; `None` if it did not stop there.
pub fn read_outcome(entry: &Entry, loaded: &Loaded) -> Result<Option<Outcome>, FormatError> {
    let Some(stop) = &entry.stop else {
        return Ok(None);
    };
    Ok(Some(match stop {
        Stop::Paused { asked } => {
            let mut open: BTreeMap<_, InterruptRecord> =
                open_interrupts(loaded.interrupts.clone())?
                    .into_iter()
                    .map(|open| (open.interrupt.id, open.interrupt))
                    .collect();
            Outcome::Paused(asked.iter().filter_map(|id| open.remove(id)).collect())
        }
        stop => Outcome::of(stop),
    }))
}
