//! One simulated process: drives a real [`Segment`] by hand, one small act at a time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use superstep_core::checkpoint::{Commit, RecordWrite};
use superstep_core::error::CheckpointError;
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::{Durability, Segment, SegmentLimits, Suspension};
use superstep_core::{Epoch, Outcome, Run, Step, TaskId, Timestamp, Value};

use super::check::Check;
use super::lab::{Lab, ProcId, Reply};
use super::limits;
use super::running::{Running, end_word};

/// A process that drives a thread.
pub(super) struct Proc {
    pub(super) id: ProcId,
    lab: Arc<Lab>,
    segment: Segment,
    limits: SegmentLimits,
    /// How often it started tasks.
    starts: u32,
    /// The tasks it started after it had dispatched some.
    started_beside: BTreeSet<TaskId>,
    /// The epoch it holds, once its claim was acknowledged.
    epoch: Option<Epoch>,
    tasks: Vec<Running>,
    /// Given up, and not yet noticed.
    orphans: Vec<Running>,
    saving: Option<(Box<Commit>, Value)>,
    /// Ends that are to be written down.
    telling: VecDeque<RecordWrite>,
    /// It resumed what was suspended on purpose.
    on_purpose: bool,
    /// Supersteps are stored at once.
    is_sync: bool,
    /// Nothing has happened since but that time passed.
    waited: bool,
    generation: u32,
}

/// What one act led to.
#[derive(Debug)]
pub(super) enum Act {
    Went,
    Stopped(Outcome),
    /// It suspended its run.
    Suspended(Suspension),
    /// It died.
    Died,
    /// Somebody else has the thread.
    Fenced,
    /// It waits for something that cannot come.
    Stuck,
}

impl Proc {
    pub(super) fn new(id: ProcId, lab: &Arc<Lab>, run: Run, durability: Durability) -> Self {
        let (segment, limits) = limits::segment(run, &mut lab.get());
        Self {
            id,
            lab: lab.clone(),
            segment,
            limits,
            starts: 0,
            started_beside: BTreeSet::new(),
            epoch: None,
            tasks: Vec::new(),
            orphans: Vec::new(),
            saving: None,
            telling: VecDeque::new(),
            on_purpose: false,
            is_sync: durability == Durability::Sync,
            waited: false,
            generation: 0,
        }
        .born()
    }

    fn born(mut self) -> Self {
        self.generation = self.lab.get().generation;
        self
    }

    /// It resumes what was suspended on purpose.
    pub(super) fn on_purpose(mut self) -> Self {
        self.on_purpose = true;
        self
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// Does one thing.
    pub(super) fn act(&mut self) -> Act {
        self.lab.get().tick();
        if self.saving.is_some() {
            let others_first = {
                let mut lab = self.lab.get();
                !lab.calm && lab.entropy.chance(300)
            };
            if others_first && self.poll_some() {
                return self.alive();
            }
            return self.save();
        }
        let asks_early = {
            let mut lab = self.lab.get();
            // A driver may ask for the next step while a record is on its way to the store.
            !lab.calm && lab.entropy.chance(300)
        };
        if !asks_early && let Some(write) = self.telling.pop_front() {
            return self.tell(write);
        }
        let step = self.segment.next_step();
        if std::mem::take(&mut self.waited) && self.is_sync && matches!(step, Step::Save(_)) {
            let what = "what happened before a wait is stored after it".to_owned();
            self.lab.get().fail(Check::Attempts, what);
        }
        if !matches!(step, Step::Wait { .. }) {
            let mut lab = self.lab.get();
            lab.trace.add(format_args!("p{} {}", self.id, word(&step)));
            if lab.dies_in_step() {
                return Act::Died;
            }
        }
        match step {
            Step::Start(tasks) => {
                self.check_limit();
                self.start(tasks);
            }
            Step::Drop(tasks) => self.drop_tasks(&tasks),
            Step::Save(commit) => {
                self.lab.get().kept.compare(&commit);
                self.saving = Some((commit, self.segment.run().values()));
            }
            Step::Record(write) => self.telling.push_back(*write),
            Step::Suspend(suspension) => return self.suspend(suspension),
            Step::Wait { until } => return self.wait(until),
            Step::Stop(outcome) => {
                self.stop();
                return Act::Stopped(outcome);
            }
        }
        Act::Went
    }

    fn alive(&self) -> Act {
        if self.lab.get().died(self.id) {
            Act::Died
        } else {
            Act::Went
        }
    }

    fn save(&mut self) -> Act {
        let Some((commit, values)) = self.saving.take() else {
            return Act::Went;
        };
        let mut lab = self.lab.get();
        if self.on_purpose && commit.is_claim() {
            lab.model.on_purpose.insert(commit.head.epoch);
        }
        let reply = lab.save(self.id, &commit, Some(values.clone()));
        drop(lab);
        match reply {
            Reply::Died => Act::Died,
            Reply::Answer(Ok(saved)) => {
                self.epoch = Some(commit.head.epoch);
                let now = self.lab.get().now;
                match self.segment.saved(saved, now) {
                    Ok(()) => Act::Went,
                    Err(error) => self.unexpected(error.to_string()),
                }
            }
            Reply::Answer(Err(error)) if error.is_transient() => {
                if self.lab.get().mishap(20) {
                    // Out of patience: the process gives up without knowing.
                    return Act::Died;
                }
                self.saving = Some((commit, values));
                Act::Went
            }
            Reply::Answer(Err(CheckpointError::Fenced { .. })) => {
                self.lab.get().counts.fenced += 1;
                Act::Fenced
            }
            Reply::Answer(Err(error)) => self.unexpected(error.to_string()),
        }
    }

    fn unexpected(&self, what: String) -> Act {
        self.lab.get().fail(Check::Unexpected, what);
        Act::Died
    }

    /// Writes down how a task ended.
    fn tell(&mut self, write: RecordWrite) -> Act {
        let reply = self.lab.get().record(self.id, &write);
        match reply {
            Reply::Died => Act::Died,
            Reply::Answer(Ok(_)) => {
                self.lab.get().counts.told_later += 1;
                match self.segment.recorded() {
                    Ok(()) => Act::Went,
                    Err(error) => self.unexpected(error.to_string()),
                }
            }
            Reply::Answer(Err(error)) if error.is_transient() => {
                self.telling.push_front(write);
                Act::Went
            }
            Reply::Answer(Err(CheckpointError::Fenced { .. })) => Act::Fenced,
            Reply::Answer(Err(error)) => self.unexpected(error.to_string()),
        }
    }

    /// A segment at its limit starts nothing, unless it cannot suspend.
    fn check_limit(&mut self) {
        let may_suspend = self.tasks.is_empty()
            && self.telling.is_empty()
            && !self.segment.has_dispatched()
            && self.segment.run().is_stored();
        if may_suspend && self.starts >= self.limits.supersteps {
            let what = format!("superstep {} is over the limit", self.starts + 1);
            self.lab.get().fail(Check::Segments, what);
        }
        self.starts += 1;
    }

    /// It leaves its run to the next process.
    fn suspend(&mut self, suspension: Suspension) -> Act {
        let mut lab = self.lab.get();
        if !self.telling.is_empty() {
            let what = "suspended before a record was durable".to_owned();
            lab.fail(Check::Segments, what);
        }
        if let Suspension::Dispatch { tasks, .. } = &suspension {
            lab.counts.handed_over += tasks.len() as u64;
            lab.trace.add(format_args!("  dispatch {}", tasks.len()));
            let twice = |task: &&TaskId| self.started_beside.contains(task);
            if let Some(task) = tasks.iter().find(twice) {
                let what = format!("{task} is dispatched and ran here");
                lab.fail(Check::Segments, what);
            }
        }
        Act::Suspended(suspension)
    }

    fn start(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            // An attempt that failed here before the task was dispatched is no second execution of it.
            if self.segment.has_dispatched() {
                self.started_beside.insert(task.id());
            }
            let running = Running::start(&self.lab, self.id, task, self.epoch);
            self.tasks.push(running);
        }
    }

    fn drop_tasks(&mut self, dropped: &[TaskId]) {
        let (gone, kept) = std::mem::take(&mut self.tasks)
            .into_iter()
            .partition(|running| dropped.contains(&running.task));
        self.tasks = kept;
        for running in gone {
            self.give_up(running);
        }
    }

    /// The driver no longer waits for it; sometimes it has not noticed yet.
    fn give_up(&mut self, running: Running) {
        let mut lab = self.lab.get();
        lab.ledger.dropped(running.exec);
        if lab.hostile() && lab.entropy.chance(600) {
            drop(lab);
            self.orphans.push(running);
        }
    }

    fn stop(&mut self) {
        let mut lab = self.lab.get();
        for running in self.tasks.drain(..).chain(self.orphans.drain(..)) {
            lab.ledger.dropped(running.exec);
        }
    }

    fn wait(&mut self, until: Option<Timestamp>) -> Act {
        self.wishes();
        if self.time_out() {
            return Act::Went;
        }
        if self.poll_some() {
            return self.alive();
        }
        let mut lab = self.lab.get();
        if self.tasks.is_empty()
            && self.telling.is_empty()
            && self.segment.has_dispatched()
            && !lab.cancel_wanted
        {
            let what = "tasks are dispatched, and the run cannot suspend";
            lab.fail(Check::Live, what.to_owned());
            return Act::Died;
        }
        // The record that is on its way comes next.
        if !self.telling.is_empty() {
            return Act::Went;
        }
        match until {
            Some(until) => {
                lab.now = lab.now.max(until);
                self.segment.time_passed(lab.now);
                self.waited = self.tasks.is_empty();
                Act::Went
            }
            // What was wished for may be the next step.
            None if lab.cancel_wanted => Act::Went,
            None => Act::Stuck,
        }
    }

    /// Somebody may want the run to stop.
    fn wishes(&mut self) {
        let mut lab = self.lab.get();
        let (cancel, drain) = (lab.weather.cancel, lab.weather.drain);
        if lab.mishap(cancel) {
            lab.counts.cancels += 1;
            lab.cancel_wanted = true;
            lab.trace.add(format_args!("p{} cancel", self.id));
            if lab.entropy.chance(500) {
                lab.kept.request_cancel(&lab.thread);
            } else {
                self.segment.cancel();
            }
        } else if lab.mishap(drain) {
            lab.counts.drains += 1;
            lab.drain_wanted = true;
            lab.trace.add(format_args!("p{} drain", self.id));
            self.segment.drain();
        }
    }

    /// A node that may not take long takes too long.
    fn time_out(&mut self) -> bool {
        let mut lab = self.lab.get();
        let chosen = self.tasks.iter().position(|running| running.may_time_out);
        let Some(at) = chosen else { return false };
        let (task, attempt) = (self.tasks[at].task, self.tasks[at].attempt);
        if !lab.times_out(self.id, task) {
            return false;
        }
        drop(lab);
        let running = self.tasks.remove(at);
        self.give_up(running);
        self.ended(task, attempt, TaskEnd::TimedOut);
        true
    }

    /// Reports the end of a task.
    fn ended(&mut self, task: TaskId, attempt: u32, end: TaskEnd) {
        let mut lab = self.lab.get();
        // The end of a task next to dispatched ones is persisted and applied by the process that resumes.
        let is_applied = !self.segment.has_dispatched() || is_stored_by_itself(&end);
        if is_applied && lab.owns(self.epoch) {
            lab.told(task, attempt, &end);
        }
        let now = lab.now;
        drop(lab);
        if let Err(error) = self.segment.task_ended(task, end, now) {
            self.lab.get().fail(Check::Unexpected, error.to_string());
        }
    }

    /// Polls one task that wants to be. False if none does.
    fn poll_some(&mut self) -> bool {
        let ripe = Running::is_ripe;
        let tasks: Vec<usize> = (0..self.tasks.len())
            .filter(|&n| ripe(&self.tasks[n]))
            .collect();
        let orphans: Vec<usize> = (0..self.orphans.len())
            .filter(|&n| ripe(&self.orphans[n]))
            .collect();
        let (chosen, orphan) = {
            let mut lab = self.lab.get();
            if tasks.is_empty() && orphans.is_empty() {
                return false;
            }
            if lab.calm {
                (tasks[0], false)
            } else {
                let n = lab.entropy.below(tasks.len() + orphans.len());
                match tasks.get(n) {
                    Some(&at) => (at, false),
                    None => (orphans[n - tasks.len()], true),
                }
            }
        };
        self.poll(chosen, orphan);
        true
    }

    fn poll(&mut self, at: usize, orphan: bool) {
        let list = if orphan {
            &mut self.orphans
        } else {
            &mut self.tasks
        };
        let Some(end) = list[at].poll(&self.lab, self.generation, orphan) else {
            return;
        };
        let running = list.remove(at);
        if orphan {
            return;
        }
        let mut lab = self.lab.get();
        lab.ledger.dropped(running.exec);
        lab.trace.add(format_args!(
            "p{} ended {} {}",
            self.id,
            running.task,
            end_word(&end)
        ));
        let by_arrival = lab.kept.hands_out_by_arrival();
        drop(lab);
        let task = match &end {
            TaskEnd::Done(_) if by_arrival => self.first_of_kind(&running),
            _ => running.task,
        };
        let attempt = running.attempt;
        drop(running);
        self.ended(task, attempt, end);
    }

    /// For a mutant: the first task of this kind that has not ended gets the result, regardless of who made it.
    fn first_of_kind(&mut self, done: &Running) -> TaskId {
        let first = self
            .tasks
            .iter_mut()
            .filter(|other| other.kind == done.kind)
            .min_by_key(|other| other.exec)
            .filter(|other| other.exec < done.exec);
        match first {
            Some(other) => std::mem::replace(&mut other.task, done.task),
            None => done.task,
        }
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Whether how a task ended is in the store already, as every result is.
fn is_stored_by_itself(end: &TaskEnd) -> bool {
    matches!(
        end,
        TaskEnd::Done(_) | TaskEnd::Stored(_) | TaskEnd::Cached(_)
    )
}

fn word(step: &Step) -> String {
    match step {
        Step::Start(tasks) => format!("start {}", tasks.len()),
        Step::Drop(tasks) => format!("drop {}", tasks.len()),
        Step::Save(commit) => format!("save {}", commit.head.seq),
        Step::Record(_) => "record".to_owned(),
        Step::Wait { .. } => "wait".to_owned(),
        Step::Suspend(_) => "suspend".to_owned(),
        Step::Stop(outcome) => format!("stop {}", outcome_word(outcome)),
    }
}

pub(super) fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Finished => "finished",
        Outcome::Paused(_) => "paused",
        Outcome::Breakpoint(_) => "breakpoint",
        Outcome::StepLimit => "step-limit",
        Outcome::Failed(_) => "failed",
        Outcome::Cancelled => "cancelled",
        Outcome::Drained => "drained",
    }
}
