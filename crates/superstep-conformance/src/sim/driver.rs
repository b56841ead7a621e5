//! One simulated process: drives a real [`Run`] by hand, one small act at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use superstep_core::checkpoint::{BoxFuture, CheckpointResult, Commit, RecordWrite};
use superstep_core::driver::{Door, LiveEvent};
use superstep_core::error::CheckpointError;
use superstep_core::node::{Execution, Task, TaskEnd};
use superstep_core::{Epoch, Outcome, Run, Step, TaskId, Timestamp, Value};

use super::check::Check;
use super::lab::{Current, Lab, ProcId, Reply, yield_once};
use super::ledger::ExecId;

/// A process that drives a thread.
pub(super) struct Proc {
    pub(super) id: ProcId,
    lab: Arc<Lab>,
    run: Run,
    /// The epoch it holds, once its claim was acknowledged.
    epoch: Option<Epoch>,
    tasks: Vec<Running>,
    /// Given up, and not yet noticed.
    orphans: Vec<Running>,
    saving: Option<(Box<Commit>, Value)>,
    generation: u32,
}

struct Running {
    exec: ExecId,
    task: TaskId,
    /// Tasks of the same node in the same superstep.
    kind: String,
    may_time_out: bool,
    future: Execution,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What one act led to.
#[derive(Debug)]
pub(super) enum Act {
    Went,
    Stopped(Outcome),
    /// It died.
    Died,
    /// Somebody else has the thread.
    Fenced,
    /// It waits for something that cannot come.
    Stuck,
}

impl Proc {
    pub(super) fn new(id: ProcId, lab: &Arc<Lab>, run: Run) -> Self {
        Self {
            id,
            lab: lab.clone(),
            run,
            epoch: None,
            tasks: Vec::new(),
            orphans: Vec::new(),
            saving: None,
            generation: 0,
        }
        .born()
    }

    fn born(mut self) -> Self {
        self.generation = self.lab.get().generation;
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
                !lab.calm && lab.dice.chance(300)
            };
            if others_first && self.poll_some() {
                return self.alive();
            }
            return self.save();
        }
        let step = self.run.next_step();
        if !matches!(step, Step::Wait { .. }) {
            let mut lab = self.lab.get();
            lab.trace.add(format_args!("p{} {}", self.id, word(&step)));
            if lab.dies_in_step() {
                return Act::Died;
            }
        }
        match step {
            Step::Start(tasks) => self.start(tasks),
            Step::Drop(tasks) => self.drop_tasks(&tasks),
            Step::Save(commit) => {
                self.lab.get().kept.compare(&commit);
                self.saving = Some((commit, self.run.values()));
            }
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
        let reply = self.lab.get().save(self.id, &commit, Some(values.clone()));
        match reply {
            Reply::Died => Act::Died,
            Reply::Answer(Ok(saved)) => {
                self.epoch = Some(commit.head.epoch);
                let now = self.lab.get().now;
                match self.run.saved(saved, now) {
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

    fn start(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            let mut lab = self.lab.get();
            lab.started(task.id(), task.node().as_str(), self.epoch);
            lab.trace.add(format_args!(
                "  start {} {} #{}",
                task.node(),
                task.id(),
                task.attempt()
            ));
            let exec = lab.exec_id();
            drop(lab);
            let door = SimDoor {
                lab: self.lab.clone(),
                proc: self.id,
            };
            self.tasks.push(Running {
                exec,
                task: task.id(),
                kind: format!("{}/{}/{}", task.frame(), task.step(), task.node()),
                may_time_out: task.timeout().run_ms.is_some(),
                future: task.execute(Arc::new(door)),
                woken: Arc::new(Flag(AtomicBool::new(true))),
            });
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
        if lab.hostile() && lab.dice.chance(600) {
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
        match until {
            Some(until) => {
                lab.now = lab.now.max(until);
                self.run.time_passed(lab.now);
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
            if lab.dice.chance(500) {
                lab.kept.request_cancel(&lab.thread);
            } else {
                self.run.cancel();
            }
        } else if lab.mishap(drain) {
            lab.counts.drains += 1;
            lab.drain_wanted = true;
            lab.trace.add(format_args!("p{} drain", self.id));
            self.run.drain();
        }
    }

    /// A node that may not take long takes too long.
    fn time_out(&mut self) -> bool {
        let mut lab = self.lab.get();
        let chosen = self.tasks.iter().position(|running| running.may_time_out);
        let Some(at) = chosen else { return false };
        let task = self.tasks[at].task;
        let chance = lab.weather.time_out;
        if lab.timed_out.get(&task).copied().unwrap_or(0) >= 2 || !lab.mishap(chance) {
            return false;
        }
        *lab.timed_out.entry(task).or_default() += 1;
        lab.counts.timeouts += 1;
        lab.trace.add(format_args!("p{} time out {task}", self.id));
        let now = lab.now;
        drop(lab);
        let running = self.tasks.remove(at);
        self.give_up(running);
        if let Err(error) = self.run.task_ended(task, TaskEnd::TimedOut, now) {
            self.lab.get().fail(Check::Unexpected, error.to_string());
        }
        true
    }

    /// Polls one task that wants to be. False if none does.
    fn poll_some(&mut self) -> bool {
        let ripe = |running: &Running| running.woken.0.load(Ordering::Relaxed);
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
                let n = lab.dice.below(tasks.len() + orphans.len());
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
        let running = &mut list[at];
        running.woken.0.store(false, Ordering::Relaxed);
        self.lab.get().current = Some(Current {
            exec: running.exec,
            epoch: self.epoch,
            generation: self.generation,
            orphan,
        });
        let waker = Waker::from(running.woken.clone());
        let polled = Pin::new(&mut running.future).poll(&mut Context::from_waker(&waker));
        self.lab.get().current = None;
        let Poll::Ready(end) = polled else { return };
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
        let (now, by_arrival) = (lab.now, lab.kept.hands_out_by_arrival());
        drop(lab);
        let task = match &end {
            TaskEnd::Done(_) if by_arrival => self.first_of_kind(&running),
            _ => running.task,
        };
        drop(running);
        if let Err(error) = self.run.task_ended(task, end, now) {
            self.lab.get().fail(Check::Unexpected, error.to_string());
        }
    }

    /// For a mutant: the first task of this kind that has not ended gets the result, whoever made it.
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

/// What a node of a simulated process reaches its driver through.
struct SimDoor {
    lab: Arc<Lab>,
    proc: ProcId,
}

impl Door for SimDoor {
    fn record(&self, write: RecordWrite) -> BoxFuture<'static, CheckpointResult<Vec<u8>>> {
        let (lab, proc) = (self.lab.clone(), self.proc);
        Box::pin(async move {
            lab.dawdle().await;
            loop {
                let reply = lab.get().record(proc, &write);
                match reply {
                    Reply::Died => std::future::pending::<()>().await,
                    Reply::Answer(Err(error)) if error.is_transient() => {
                        let mut inner = lab.get();
                        let give_up = inner.weather.give_up;
                        if inner.mishap(give_up) {
                            return Err(error);
                        }
                    }
                    Reply::Answer(answer) => return answer,
                }
                yield_once().await;
            }
        })
    }

    fn emit(&self, _event: LiveEvent) {}
}

fn word(step: &Step) -> String {
    match step {
        Step::Start(tasks) => format!("start {}", tasks.len()),
        Step::Drop(tasks) => format!("drop {}", tasks.len()),
        Step::Save(commit) => format!("save {}", commit.head.seq),
        Step::Wait { .. } => "wait".to_owned(),
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

fn end_word(end: &TaskEnd) -> String {
    match end {
        TaskEnd::Done(_) => "done".to_owned(),
        TaskEnd::Stored(_) => "stored".to_owned(),
        TaskEnd::Cached(_) => "cached".to_owned(),
        TaskEnd::Paused(drafts) => format!("asks {}", drafts.len()),
        TaskEnd::Failed(error) => format!("failed {error:?}"),
        TaskEnd::TimedOut => "timed out".to_owned(),
    }
}
