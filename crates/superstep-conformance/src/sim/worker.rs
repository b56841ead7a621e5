//! A simulated process that runs tasks which others dispatched, as `superstep::Runtime::run_task` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_core::checkpoint::{RecordRow, RecordWrite};
use superstep_core::error::{CheckpointError, OpenError};
use superstep_core::node::{Receipt, Task, TaskEnd};
use superstep_core::run::{ResumeToken, RunOptions};
use superstep_core::{Epoch, Moment, Run, TaskId};

use super::check::Check;
use super::lab::{Current, Lab, ProcId, Reply};
use super::running::{Running, end_word};

/// One call of a task.
pub(super) type CallId = u64;

/// A process that runs tasks for others.
pub(super) struct Worker {
    pub(super) id: ProcId,
    lab: Arc<Lab>,
    options: RunOptions,
    /// The tasks of a superstep, read once.
    desk: Option<(Epoch, BTreeMap<TaskId, Task>)>,
    errands: Vec<Errand>,
}

struct Errand {
    /// None if nobody waits for it any more, and it does not know.
    call: Option<CallId>,
    task: TaskId,
    token: ResumeToken,
    generation: u32,
    stage: Stage,
}

/// How far a call came.
enum Stage {
    Asked,
    Glanced(Vec<RecordRow>),
    Running(Box<Running>, Receipt),
    Telling(RecordWrite, Current),
    Over,
}

/// What one act led to.
pub(super) enum Did {
    Went,
    /// This call returned.
    Returned(Option<CallId>),
    Died,
}

/// A task that was dispatched.
enum Made {
    Task(Box<Task>),
    /// The run has no such task any more.
    Nothing,
    /// The store did not answer.
    Again,
    Died,
}

impl Worker {
    pub(super) fn new(id: ProcId, lab: &Arc<Lab>, options: RunOptions) -> Self {
        Self {
            id,
            lab: lab.clone(),
            options,
            desk: None,
            errands: Vec::new(),
        }
    }

    /// Asks it to run a task.
    pub(super) fn take(&mut self, call: CallId, task: TaskId, token: ResumeToken) {
        let mut lab = self.lab.get();
        lab.trace.add(format_args!("p{} is to run {task}", self.id));
        self.errands.push(Errand {
            call: Some(call),
            task,
            token,
            generation: lab.generation,
            stage: Stage::Asked,
        });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.errands.is_empty()
    }

    /// The calls that somebody waits for.
    pub(super) fn calls(&self) -> Vec<CallId> {
        self.errands
            .iter()
            .filter_map(|errand| errand.call)
            .collect()
    }

    /// Nobody waits for these calls any more; it goes on all the same.
    pub(super) fn forget(&mut self, of: impl Fn(CallId) -> bool) {
        let mut lab = self.lab.get();
        for errand in &mut self.errands {
            if errand.call.is_some_and(&of) {
                errand.call = None;
                if let Stage::Running(running, _) = &errand.stage {
                    lab.ledger.dropped(running.exec);
                }
            }
        }
    }

    /// Does one thing.
    pub(super) fn act(&mut self) -> Did {
        let mut lab = self.lab.get();
        lab.tick();
        let ripe: Vec<usize> = (0..self.errands.len())
            .filter(|&n| self.errands[n].is_ripe())
            .collect();
        if ripe.is_empty() {
            return Did::Went;
        }
        let at = ripe[lab.entropy.below(ripe.len())];
        drop(lab);
        let stage = std::mem::replace(&mut self.errands[at].stage, Stage::Over);
        let did = match stage {
            Stage::Asked => self.glance(at),
            Stage::Glanced(rows) => self.make(at, rows),
            Stage::Running(running, receipt) => self.run(at, running, receipt),
            Stage::Telling(write, current) => self.tell(at, write, current),
            Stage::Over => unreachable!("it is gone when it is over"),
        };
        match self.lab.get().died(self.id) {
            true => Did::Died,
            false => did,
        }
    }

    fn goes_on(&mut self, at: usize, stage: Stage) -> Did {
        self.errands[at].stage = stage;
        Did::Went
    }

    fn returns(&mut self, at: usize) -> Did {
        Did::Returned(self.errands.remove(at).call)
    }

    fn glance(&mut self, at: usize) -> Did {
        let errand = &self.errands[at];
        let reply = self.lab.get().glance(self.id, errand.task);
        let glance = match reply {
            Reply::Died => return Did::Died,
            Reply::Answer(Err(_)) => return self.goes_on(at, Stage::Asked),
            Reply::Answer(Ok(None)) => return self.returns(at),
            Reply::Answer(Ok(Some(glance))) => glance,
        };
        if !errand.token.awaits_task(&glance) {
            return self.returns(at);
        }
        self.goes_on(at, Stage::Glanced(glance.records))
    }

    fn make(&mut self, at: usize, rows: Vec<RecordRow>) -> Did {
        if self.lab.get().dies_in_step() {
            return Did::Died;
        }
        let errand = &self.errands[at];
        let (token, task, is_waited_for) =
            (errand.token.clone(), errand.task, errand.call.is_some());
        let task = match self.dispatched_task(&token, task) {
            Made::Task(task) => task,
            Made::Nothing => return self.returns(at),
            Made::Again => return self.goes_on(at, Stage::Glanced(rows)),
            Made::Died => return Did::Died,
        };
        // What it recorded before it was lost somewhere, after the others were read.
        let task = match task.with_records(&rows) {
            Ok(task) => task,
            Err(error) => {
                self.lab.get().fail(Check::Unexpected, error.to_string());
                return self.returns(at);
            }
        };
        let receipt = task.receipt();
        let epoch = is_waited_for.then_some(token.epoch);
        let running = Running::start(&self.lab, self.id, task, epoch);
        self.goes_on(at, Stage::Running(Box::new(running), receipt))
    }

    /// A task of a run that was suspended: one that was made with its siblings, or made again.
    fn dispatched_task(&mut self, token: &ResumeToken, task: TaskId) -> Made {
        let mut lab = self.lab.get();
        let forgets = lab.entropy.chance(150);
        if forgets || (self.desk.as_ref()).is_none_or(|(epoch, _)| *epoch != token.epoch) {
            self.desk = None;
        }
        if let Some(made) = (self.desk.as_mut()).and_then(|(_, tasks)| tasks.remove(&task)) {
            lab.counts.made_once += 1;
            return Made::Task(Box::new(made));
        }
        let loaded = match lab.load(self.id) {
            Reply::Died => return Made::Died,
            Reply::Answer(Err(_)) => return Made::Again,
            Reply::Answer(Ok(loaded)) => loaded.unwrap_or_default(),
        };
        let (graph, thread) = (lab.graph(), lab.thread.clone());
        let moment = Moment {
            now: lab.now,
            entropy: lab.entropy.number(),
        };
        drop(lab);
        let options = self.options.clone();
        let tasks = match Run::tasks(&graph, &thread, &loaded, options, token.clone(), moment) {
            Ok(tasks) => tasks,
            Err(OpenError::NothingToRun { .. }) => Vec::new(),
            Err(error) => {
                let what = format!("making tasks: {error}");
                self.lab.get().fail(Check::Unexpected, what);
                Vec::new()
            }
        };
        let mut tasks: BTreeMap<_, _> = tasks.into_iter().map(|task| (task.id(), task)).collect();
        let found = tasks.remove(&task);
        // One that was made before and taken is made for this call alone.
        self.desk.get_or_insert((token.epoch, tasks));
        found.map_or(Made::Nothing, |task| Made::Task(Box::new(task)))
    }

    fn run(&mut self, at: usize, mut running: Box<Running>, receipt: Receipt) -> Did {
        let errand = &self.errands[at];
        let orphan = errand.call.is_none();
        let takes_too_long =
            running.may_time_out && !orphan && self.lab.get().times_out(self.id, running.task);
        let ended = match takes_too_long {
            true => Some(TaskEnd::TimedOut),
            false => running.poll(&self.lab, errand.generation, orphan),
        };
        let Some(end) = ended else {
            return self.goes_on(at, Stage::Running(running, receipt));
        };
        let current = running.current(errand.generation, orphan);
        let mut lab = self.lab.get();
        lab.ledger.dropped(running.exec);
        lab.trace.add(format_args!(
            "p{} ended {} {}",
            self.id,
            running.task,
            end_word(&end)
        ));
        drop(lab);
        drop(running);
        match receipt.record(&end) {
            Some(write) => self.goes_on(at, Stage::Telling(write, current)),
            None => self.returns(at),
        }
    }

    fn tell(&mut self, at: usize, write: RecordWrite, current: Current) -> Did {
        let current = Current {
            orphan: self.errands[at].call.is_none(),
            ..current
        };
        let mut lab = self.lab.get();
        lab.current = Some(current);
        let reply = lab.record(self.id, &write);
        lab.current = None;
        match reply {
            Reply::Died => return Did::Died,
            Reply::Answer(Err(error)) if error.is_transient() => {
                drop(lab);
                return self.goes_on(at, Stage::Telling(write, current));
            }
            // Somebody has taken the thread up, and goes by what was there.
            Reply::Answer(Err(CheckpointError::Fenced { .. })) => lab.counts.helpers_fenced += 1,
            Reply::Answer(Err(error)) => lab.fail(Check::Unexpected, error.to_string()),
            Reply::Answer(Ok(_)) => lab.counts.receipts += 1,
        }
        drop(lab);
        self.returns(at)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut lab = self.lab.get();
        for errand in &self.errands {
            if let Stage::Running(running, _) = &errand.stage {
                lab.ledger.dropped(running.exec);
            }
        }
    }
}

impl Errand {
    fn is_ripe(&self) -> bool {
        match &self.stage {
            Stage::Running(running, _) => running.is_ripe(),
            _ => true,
        }
    }
}
