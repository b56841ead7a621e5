//! What processes and people ask of the store, with whatever befalls them on the way.

use superstep_core::checkpoint::{
    Answer, CheckpointResult, Commit, Glance, Loaded, RESULT_KEY, RecordWrite, Saved,
};
use superstep_core::error::CheckpointError;
use superstep_core::{TaskId, Value};

use super::check::Check;
use super::lab::{Fault, Inner, KillHow, Packet, ProcId, Reply};

impl Inner {
    /// A process makes a commit durable. `values` is what its machine says its state is with it.
    pub(super) fn save(
        &mut self,
        proc: ProcId,
        commit: &Commit,
        values: Option<Value>,
    ) -> Reply<Saved> {
        let fault = self.fault(proc, true);
        self.trace.add(format_args!(
            "p{proc} save {}.{} -> {}.{} {:?} {fault:?}",
            commit.expect.epoch.0,
            commit.expect.seq,
            commit.head.epoch.0,
            commit.head.seq,
            commit.head.status
        ));
        match fault {
            Fault::FailBefore => return Reply::Answer(Err(unreachable_store())),
            Fault::DieBefore { packet } => {
                if packet {
                    self.packets.push(Packet::Commit(Box::new(commit.clone())));
                }
                return Reply::Died;
            }
            Fault::None | Fault::FailAfter | Fault::DieAfter => {}
        }
        let reply = self.apply(commit, values);
        match fault {
            Fault::FailAfter => Reply::Answer(Err(unreachable_store())),
            Fault::DieAfter => {
                self.kept.process_died();
                Reply::Died
            }
            _ => Reply::Answer(reply),
        }
    }

    /// Applies a commit and holds the store's answer against the model.
    pub(super) fn apply(
        &mut self,
        commit: &Commit,
        values: Option<Value>,
    ) -> CheckpointResult<Saved> {
        self.counts.checks += 1;
        let expected =
            (commit.expect.epoch, commit.expect.seq) == (self.model.epoch, self.model.seq);
        let before = match &commit.entry {
            Some(body) => self
                .model
                .log
                .get(&commit.head.seq)
                .is_some_and(|(epoch, known)| *epoch == commit.head.epoch && known == body),
            None => (commit.head.epoch, commit.head.seq) == (self.model.epoch, self.model.seq),
        };
        let former = (commit.is_claim())
            .then(|| self.kept.peek(&self.thread))
            .flatten();
        let reply = self.kept.save(commit);
        self.trace.add(format_args!("  {}", tag(&reply)));
        match (&reply, expected || before) {
            (Ok(saved), true) => {
                if !before {
                    self.check_recoveries(former.map(|loaded| loaded.head), commit);
                    self.committed(commit, values);
                }
                self.check_pause(commit, saved);
            }
            (Ok(_), false) => {
                let what = format!(
                    "a commit at {}.{} was applied, the thread stands at {}.{}",
                    commit.expect.epoch.0, commit.expect.seq, self.model.epoch.0, self.model.seq
                );
                self.fail(Check::Fence, what);
                // What is broken already is followed all the same, for other checks may see it too.
                self.committed(commit, values);
            }
            (Err(CheckpointError::Fenced { .. }), true) => self.fail(
                Check::CommitOnce,
                format!(
                    "the commit of entry {} was refused to its owner",
                    commit.head.seq
                ),
            ),
            (Err(_), _) => {}
        }
        reply
    }

    /// A node's record. What is answered is held against the model.
    pub(super) fn record(&mut self, proc: ProcId, write: &RecordWrite) -> Reply<Vec<u8>> {
        let fault = self.fault(proc, true);
        self.trace.add(format_args!(
            "p{proc} record {} {} {fault:?}",
            write.task, write.key
        ));
        match fault {
            Fault::FailBefore => return Reply::Answer(Err(unreachable_store())),
            Fault::DieBefore { packet } => {
                if packet {
                    self.packets.push(Packet::Record(write.clone()));
                }
                return Reply::Died;
            }
            Fault::None | Fault::FailAfter | Fault::DieAfter => {}
        }
        let reply = self.apply_record(write, fault == Fault::None);
        match fault {
            Fault::FailAfter => Reply::Answer(Err(unreachable_store())),
            Fault::DieAfter => {
                self.kept.process_died();
                Reply::Died
            }
            _ => Reply::Answer(reply),
        }
    }

    pub(super) fn apply_record(
        &mut self,
        write: &RecordWrite,
        acked: bool,
    ) -> CheckpointResult<Vec<u8>> {
        self.counts.checks += 1;
        let owned = write.epoch == self.model.epoch;
        let shuffle = self.entropy.number();
        let reply = self.kept.record(write, shuffle);
        self.trace.add(format_args!("  {}", tag(&reply)));
        match (&reply, owned) {
            (Ok(stored), true) => {
                let key = (write.task, write.key.clone());
                let first = self
                    .model
                    .records
                    .entry(key)
                    .or_insert_with(|| write.body.clone());
                if first != stored {
                    let what = format!("record {} of {} was replaced", write.key, write.task);
                    self.fail(Check::FirstWrite, what);
                }
                let orphan = self.current.is_some_and(|current| current.orphan);
                if acked && !orphan && write.key == RESULT_KEY {
                    self.model.results.insert(write.task);
                }
            }
            (Ok(_), false) => {
                let what = format!("a record of epoch {} was taken", write.epoch.0);
                self.fail(Check::Fence, what);
            }
            (Err(CheckpointError::Fenced { .. }), true) => {
                self.fail(
                    Check::CommitOnce,
                    "a record was refused to its owner".to_owned(),
                );
            }
            (Err(CheckpointError::Fenced { .. }), false) => self.counts.fenced += 1,
            (Err(_), _) => {}
        }
        reply
    }

    /// A late write arrives.
    pub(super) fn deliver(&mut self) {
        if self.packets.is_empty() {
            return;
        }
        let at = self.entropy.below(self.packets.len());
        let packet = self.packets.swap_remove(at);
        self.counts.packets += 1;
        self.trace.add(format_args!("late write"));
        match packet {
            Packet::Commit(commit) => drop(self.apply(&commit, None)),
            Packet::Record(write) => drop(self.apply_record(&write, false)),
        }
    }

    pub(super) fn load(&mut self, proc: ProcId) -> Reply<Option<Loaded>> {
        match self.fault(proc, false) {
            Fault::FailBefore | Fault::FailAfter => Reply::Answer(Err(unreachable_store())),
            Fault::DieBefore { .. } | Fault::DieAfter => Reply::Died,
            Fault::None => {
                let loaded = self.kept.load(&self.thread);
                let seq = loaded.as_ref().map_or(0, |loaded| loaded.head.seq.0);
                self.trace.add(format_args!("p{proc} load {seq}"));
                Reply::Answer(Ok(loaded))
            }
        }
    }

    /// A process looks at one task of the thread.
    pub(super) fn glance(&mut self, proc: ProcId, task: TaskId) -> Reply<Option<Glance>> {
        match self.fault(proc, false) {
            Fault::FailBefore | Fault::FailAfter => Reply::Answer(Err(unreachable_store())),
            Fault::DieBefore { .. } | Fault::DieAfter => Reply::Died,
            Fault::None => {
                let glance = self.kept.glance(&self.thread, task);
                let records = glance.as_ref().map_or(0, |glance| glance.records.len());
                self.trace
                    .add(format_args!("p{proc} glance {task} {records}"));
                Reply::Answer(Ok(glance))
            }
        }
    }

    /// Somebody answers. Gives what they are told, and whether the answer counts.
    pub(super) fn answer(&mut self, answers: &[Answer]) -> (CheckpointResult<()>, bool) {
        if self.mishap(self.weather.fail_before) {
            self.counts.faults += 1;
            return (Err(unreachable_store()), false);
        }
        let reply = self.kept.answer(&self.thread, answers);
        self.trace
            .add(format_args!("answer {} {}", answers.len(), tag(&reply)));
        let counts = reply.is_ok();
        if self.mishap(self.weather.fail_after) {
            self.counts.faults += 1;
            return (Err(unreachable_store()), counts);
        }
        (reply, counts)
    }

    fn fault(&mut self, proc: ProcId, is_write: bool) -> Fault {
        self.point += 1;
        let fault = self.choose_fault(is_write);
        match fault {
            Fault::None => {}
            Fault::FailBefore | Fault::FailAfter => self.counts.faults += 1,
            Fault::DieBefore { .. } | Fault::DieAfter => {
                self.died.insert(proc);
            }
        }
        fault
    }

    fn choose_fault(&mut self, is_write: bool) -> Fault {
        if let Some(kill) = self.weather.kill.filter(|kill| kill.point == self.point) {
            return match kill.how {
                KillHow::Before => Fault::DieBefore { packet: false },
                KillHow::After => Fault::DieAfter,
                KillHow::Error => Fault::FailAfter,
            };
        }
        if self.mishap(self.weather.fail_before) {
            return Fault::FailBefore;
        }
        if self.mishap(self.weather.fail_after) {
            return Fault::FailAfter;
        }
        if self.mishap(self.weather.die_in_call) {
            if self.entropy.chance(500) {
                return Fault::DieAfter;
            }
            let packet = is_write && self.entropy.chance(self.weather.packet);
            return Fault::DieBefore { packet };
        }
        Fault::None
    }
}

fn unreachable_store() -> CheckpointError {
    CheckpointError::store("the store did not answer")
}

fn tag<T>(reply: &CheckpointResult<T>) -> &'static str {
    match reply {
        Ok(_) => "ok",
        Err(error) => error.code(),
    }
}
