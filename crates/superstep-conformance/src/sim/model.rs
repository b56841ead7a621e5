//! The naive model of a thread that the store is held against, and what it must agree with.

use std::collections::{BTreeMap, BTreeSet};

use superstep_core::checkpoint::format::{Body, Change, Entry, EntryKind, Stop};
use superstep_core::checkpoint::{Commit, Head, RESULT_KEY, ReleasedRecords, Saved, Status};
use superstep_core::error::FailureKind;
use superstep_core::node::{Task, TaskEnd};
use superstep_core::run::{LogFollower, StreamEventBody};
use superstep_core::{Epoch, Seq, TaskId, Value};

use super::check::Check;
use super::lab::Inner;

/// The naive model of a thread that the store is held against.
#[derive(Default)]
pub(super) struct Model {
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    pub(super) log: BTreeMap<Seq, (Epoch, Vec<u8>)>,
    pub(super) records: BTreeMap<(TaskId, String), Vec<u8>>,
    attempts: BTreeMap<TaskId, u32>,
    /// Tasks whose superstep was committed.
    done: BTreeSet<TaskId>,
    /// Tasks whose own result was acknowledged.
    pub(super) results: BTreeSet<TaskId>,
    /// Attempts that ended without a result, as far as a machine was told that is not lost.
    told: BTreeMap<TaskId, u32>,
    /// How often a run may be resumed without getting anywhere.
    pub(super) recoveries_max: u32,
    /// Claims of processes that resumed what was suspended on purpose.
    pub(super) on_purpose: BTreeSet<Epoch>,
    /// Which order is being carried out; 0 is none.
    pub(super) order: u64,
    /// Orders that began a run, or went on with one.
    begun: BTreeSet<u64>,
}

impl Inner {
    /// A commit is durable, or at least somebody was told so.
    pub(super) fn committed(&mut self, commit: &Commit, values: Option<Value>) {
        if commit.is_claim() {
            self.ledger.taken_over();
            // A former owner that did not put its run down may have been told of something since it was replaced.
            if !self.model.on_purpose.contains(&commit.head.epoch) {
                self.lost();
            }
        }
        self.model.epoch = commit.head.epoch;
        self.model.seq = commit.head.seq;
        for released in &commit.released {
            let keys: Vec<_> = self
                .model
                .records
                .keys()
                .filter(|(task, key)| {
                    *task == released.task
                        && (released.which == ReleasedRecords::All || key == RESULT_KEY)
                })
                .cloned()
                .collect();
            for key in keys {
                self.model.records.remove(&key);
            }
            self.model.results.remove(&released.task);
        }
        let Some(body) = &commit.entry else { return };
        self.counts.entries += 1;
        let seq = commit.head.seq;
        self.model
            .log
            .insert(seq, (commit.head.epoch, body.clone()));
        if let Some(values) = values {
            self.live_values.insert(seq, values);
        }
        match Entry::unseal(body, &self.thread, seq) {
            Ok(entry) => self.look(seq, &entry),
            Err(error) => self.fail(Check::Replay, error.to_string()),
        }
    }

    /// The live watcher sees the entry.
    fn look(&mut self, seq: Seq, entry: &Entry) {
        let Some(watch) = &mut self.watch else { return };
        let seen = match watch.see(seq, entry) {
            Ok(seen) => seen,
            Err(error) => return self.fail(Check::Replay, format!("watching {seq}: {error}")),
        };
        for sight in &seen {
            match &sight.what {
                StreamEventBody::TaskEnded { task, .. } => {
                    self.model.done.insert(*task);
                }
                StreamEventBody::AttemptFailed(failed) => {
                    let Some(task) = failed.failure.task else {
                        continue;
                    };
                    let attempts = failed.failure.attempts;
                    self.counts.checks += 1;
                    let last = self.model.attempts.insert(task, attempts);
                    if last.is_some_and(|last| last >= attempts) {
                        let what =
                            format!("attempt {attempts} of {task} failed after attempt {last:?}");
                        self.fail(Check::Attempts, what);
                    }
                }
                StreamEventBody::Stopped(Stop::Failed(_)) => self.model.attempts.clear(),
                _ => {}
            }
        }
        if entry.stop.is_some() {
            self.model.told.clear();
        }
        self.check_order(entry);
        self.sights.extend(seen);
        if entry.kind == EntryKind::Fork {
            let (graph, thread) = (self.graph(), self.thread.clone());
            let history = self.load_at(seq).unwrap_or_default();
            self.watch = LogFollower::after(&graph, &thread, &history).ok();
        }
    }

    /// A pause that is stored has only questions that are open.
    pub(super) fn check_pause(&mut self, commit: &Commit, saved: &Saved) {
        self.counts.unseen += u64::from(saved.unseen.is_some());
        if commit.head.status != Status::Paused || saved.unseen.is_some() {
            return;
        }
        let stop = commit
            .entry
            .as_ref()
            .and_then(|body| Entry::unseal(body, &self.thread, commit.head.seq).ok())
            .and_then(|entry| entry.stop);
        let Some(Stop::Paused { asked }) = stop else {
            return;
        };
        if (self.model.epoch, self.model.seq) != (commit.head.epoch, commit.head.seq) {
            return;
        }
        let rows = self.kept.questions(&self.thread);
        for id in asked {
            self.counts.checks += 1;
            match rows.iter().find(|row| row.id == id) {
                None => self.fail(
                    Check::AnswerOnce,
                    format!("question {id} is asked and not open"),
                ),
                // Another writer's answer may have come since a commit that is tried again.
                Some(row) if row.answer.is_some() && !self.answered_late(commit) => self.fail(
                    Check::AnswerOnce,
                    format!("question {id} is asked again after it was answered"),
                ),
                Some(_) => {}
            }
        }
    }

    fn answered_late(&self, commit: &Commit) -> bool {
        self.kept.peek(&self.thread).is_some_and(|loaded| {
            loaded.head.status == Status::Paused && loaded.head.answers > commit.head.answers
        })
    }

    pub(super) fn written(&self) -> Vec<(Seq, Vec<u8>)> {
        let log = self.model.log.iter();
        log.map(|(seq, (_, body))| (*seq, body.clone())).collect()
    }

    pub(super) fn model_epochs(&self) -> Vec<Epoch> {
        self.model.log.values().map(|(epoch, _)| *epoch).collect()
    }

    pub(super) fn owns(&self, epoch: Option<Epoch>) -> bool {
        epoch == Some(self.model.epoch)
    }

    /// A process starts a task.
    pub(super) fn started(&mut self, task: &Task, epoch: Option<Epoch>) {
        self.counts.tasks += 1;
        let (node, attempt, task) = (task.node(), task.attempt(), task.id());
        if !self.owns(epoch) {
            return;
        }
        self.counts.checks += 1;
        if self.model.done.contains(&task) {
            let what = format!("task {task} of `{node}` was committed and starts again");
            self.fail(Check::TaskOnce, what);
        }
        if self.model.results.contains(&task) {
            let what = format!("task {task} of `{node}` has a recorded result and starts again");
            self.fail(Check::SiblingsKept, what);
        }
        if self.model.told.get(&task) == Some(&attempt) {
            let what = format!(
                "attempt {attempt} of {task} of `{node}` has ended and starts again, and nothing was lost"
            );
            self.fail(Check::TaskOnce, what);
        }
    }

    /// The machine that owns the thread was told how an attempt ended. One that asks may run again when it is answered.
    pub(super) fn told(&mut self, task: TaskId, attempt: u32, end: &TaskEnd) {
        if matches!(end, TaskEnd::Failed(_) | TaskEnd::TimedOut) {
            self.model.told.insert(task, attempt);
        }
    }

    /// A process is gone, with what only its machine knew.
    pub(super) fn lost(&mut self) {
        self.model.told.clear();
    }

    /// A run that was suspended is resumed as often as it likes; only the deaths of its owners count.
    pub(super) fn check_recoveries(&mut self, former: Option<Head>, commit: &Commit) {
        let Some(former) = former.filter(|_| commit.is_claim()) else {
            return;
        };
        if former.status != Status::Running {
            return;
        }
        self.counts.checks += 1;
        let on_purpose = self.model.on_purpose.contains(&commit.head.epoch);
        let wanted = former.recoveries + u32::from(!on_purpose);
        let told = (commit.entry.as_ref())
            .and_then(|body| Entry::unseal(body, &self.thread, commit.head.seq).ok())
            .and_then(|entry| entry.stop);
        let given_up = matches!(&told, Some(Stop::Failed(failures))
            if failures.iter().any(|failure| failure.kind == FailureKind::Poisoned));
        let is_right = match &commit.entry {
            None => commit.head.recoveries == wanted,
            Some(_) => !given_up || wanted > self.model.recoveries_max,
        };
        if !is_right {
            let what = format!(
                "after {} recoveries, suspended: {on_purpose}, the claim says {}, given up: {given_up}",
                former.recoveries, commit.head.recoveries
            );
            self.fail(Check::Recoveries, what);
        }
    }

    /// An order begins a run once, or continues one once.
    fn check_order(&mut self, entry: &Entry) {
        let begins =
            |change: &Change| matches!(change, Change::RunStarted(_) | Change::RunResumed(_));
        if self.model.order == 0 || !entry.changes.iter().any(begins) {
            return;
        }
        self.counts.checks += 1;
        if !self.model.begun.insert(self.model.order) {
            let what = format!("order {} was carried out twice", self.model.order);
            self.fail(Check::OrderOnce, what);
        }
    }
}
