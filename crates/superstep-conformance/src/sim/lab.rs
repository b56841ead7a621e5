//! Everything of a trial that outlives its processes: the store, the clock, the dice, the ledger, the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use superstep_core::checkpoint::format::{Body, Entry, EntryKind, Stop};
use superstep_core::checkpoint::{
    Answer, CheckpointResult, Commit, History, Loaded, RESULT_KEY, RecordWrite, ReleasedRecords,
    Saved, Status, StoredBody,
};
use superstep_core::error::CheckpointError;
use superstep_core::graph::Definition;
use superstep_core::run::{Seen, Sight, Watch};
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp, Value};

use super::check::{Check, Violation};
use super::counts::Counts;
use super::dice::Dice;
use super::ledger::{Actor, ExecId, Ledger};
use super::mutant::Mutant;
use super::store::Kept;
use super::trace::Trace;

/// A simulated process.
pub(super) type ProcId = u32;

/// Handed to nodes and doors, which must be `Send`; there is one thread all the same.
pub(super) struct Lab(Mutex<Inner>);

impl Lab {
    pub(super) fn new(inner: Inner) -> Arc<Self> {
        Arc::new(Self(Mutex::new(inner)))
    }

    pub(super) fn get(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets others go first, a random number of times.
    pub(super) async fn dawdle(&self) {
        let times = self.get().yields();
        for _ in 0..times {
            yield_once().await;
        }
    }
}

/// Is pending once, and wants to be polled again.
pub(super) async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How hostile the world is. Chances are per thousand.
#[derive(Debug, Clone, Default)]
pub(super) struct Weather {
    /// After so many faults of any kind the world is friendly.
    pub(super) faults_max: u64,
    pub(super) fail_before: u32,
    pub(super) fail_after: u32,
    pub(super) die_in_call: u32,
    pub(super) die_in_step: u32,
    pub(super) replace: u32,
    pub(super) give_up: u32,
    pub(super) jump: u32,
    pub(super) time_out: u32,
    pub(super) cancel: u32,
    pub(super) drain: u32,
    pub(super) answer_early: u32,
    pub(super) race: u32,
    pub(super) packet: u32,
    /// Die at this point, exactly once.
    pub(super) kill: Option<Kill>,
    /// Random order of finishing.
    pub(super) disorder: bool,
}

/// One point of a sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kill {
    pub(super) point: u64,
    pub(super) how: KillHow,
}

/// What happens at a point of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillHow {
    /// The process dies and the call is not applied.
    Before,
    /// The process dies and the call is applied.
    After,
    /// The call is applied and an error is returned.
    Error,
}

/// What befalls one call of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    FailBefore,
    FailAfter,
    DieBefore { packet: bool },
    DieAfter,
}

/// What a process gets from a call.
#[derive(Debug)]
pub(super) enum Reply<T> {
    Answer(CheckpointResult<T>),
    Died,
}

/// Who is being polled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Current {
    pub(super) exec: ExecId,
    pub(super) epoch: Option<Epoch>,
    /// In which deed its process was made.
    pub(super) generation: u32,
    /// The driver has given this execution up.
    pub(super) orphan: bool,
}

/// A write that is still on its way although its process is dead.
pub(super) enum Packet {
    Commit(Box<Commit>),
    Record(RecordWrite),
}

/// The naive model of a thread that the store is held against.
#[derive(Default)]
pub(super) struct Model {
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    log: BTreeMap<Seq, (Epoch, Vec<u8>)>,
    records: BTreeMap<(TaskId, String), Vec<u8>>,
    attempts: BTreeMap<TaskId, u32>,
    /// Tasks whose superstep was committed.
    done: BTreeSet<TaskId>,
    /// Tasks whose own result was acknowledged.
    results: BTreeSet<TaskId>,
}

/// The inside of a lab.
pub(super) struct Inner {
    pub(super) thread: ThreadId,
    pub(super) kept: Kept,
    pub(super) dice: Dice,
    pub(super) weather: Weather,
    pub(super) calm: bool,
    pub(super) now: Timestamp,
    pub(super) trace: Trace,
    pub(super) ledger: Ledger,
    pub(super) counts: Counts,
    pub(super) violations: Vec<Violation>,
    pub(super) current: Option<Current>,
    pub(super) model: Model,
    /// What the machine said its state was, by entry.
    pub(super) live_values: BTreeMap<Seq, Value>,
    pub(super) sights: Vec<Seen>,
    watch: Option<Watch>,
    graph: Option<Arc<Definition>>,
    /// Answers that won, by what was asked.
    pub(super) winners: BTreeMap<String, i64>,
    pub(super) won: BTreeMap<InterruptId, u32>,
    /// How many deeds were begun: the same question in another life is another question.
    pub(super) generation: u32,
    pub(super) packets: Vec<Packet>,
    pub(super) point: u64,
    pub(super) faults_spent: u64,
    pub(super) cancel_wanted: bool,
    pub(super) drain_wanted: bool,
    /// How often each task was made to time out.
    pub(super) timed_out: BTreeMap<TaskId, u32>,
    died: BTreeSet<ProcId>,
    next_exec: ExecId,
}

impl Inner {
    pub(super) fn new(seed: u64, weather: Weather, mutant: Option<Mutant>, words: bool) -> Self {
        Self {
            thread: ThreadId::new("sim").expect("a thread name"),
            kept: Kept::new(mutant),
            dice: Dice::new(seed, 2),
            calm: !weather.disorder,
            weather,
            now: Timestamp(1_700_000_000_000),
            trace: Trace::new(words),
            ledger: Ledger::default(),
            counts: Counts::default(),
            violations: Vec::new(),
            current: None,
            model: Model::default(),
            live_values: BTreeMap::new(),
            sights: Vec::new(),
            watch: None,
            graph: None,
            winners: BTreeMap::new(),
            won: BTreeMap::new(),
            generation: 0,
            packets: Vec::new(),
            point: 0,
            faults_spent: 0,
            cancel_wanted: false,
            drain_wanted: false,
            timed_out: BTreeMap::new(),
            died: BTreeSet::new(),
            next_exec: 0,
        }
    }

    pub(super) fn set_graph(&mut self, graph: &Arc<Definition>) {
        let history = History::default();
        self.watch = Watch::after(graph, &self.thread, &history).ok();
        self.graph = Some(graph.clone());
    }

    /// The graph's nodes hold the lab; without this neither would ever be freed.
    pub(super) fn forget_graph(&mut self) {
        (self.watch, self.graph) = (None, None);
    }

    pub(super) fn graph(&self) -> Arc<Definition> {
        self.graph.clone().expect("set before anything runs")
    }

    pub(super) fn fail(&mut self, check: Check, what: String) {
        self.trace
            .add(format_args!("VIOLATION {}: {what}", check.name()));
        if self.violations.len() < 50 {
            self.violations.push(Violation::new(check, what));
        }
    }

    pub(super) fn exec_id(&mut self) -> ExecId {
        self.next_exec += 1;
        self.next_exec
    }

    pub(super) fn yields(&mut self) -> usize {
        if self.calm { 0 } else { self.dice.below(4) }
    }

    pub(super) fn hostile(&self) -> bool {
        !self.calm && self.faults_spent < self.weather.faults_max
    }

    /// Something hostile happens with this chance, while the world is hostile.
    pub(super) fn mishap(&mut self, per_mille: u32) -> bool {
        let happens = self.hostile() && self.dice.chance(per_mille);
        self.faults_spent += u64::from(happens);
        happens
    }

    /// Time goes on, and sometimes jumps.
    pub(super) fn tick(&mut self) {
        if self.calm {
            self.now.0 += 1;
            return;
        }
        self.now.0 += self.dice.below(40) as i64;
        if self.mishap(self.weather.jump) {
            let hour = 3_600_000;
            self.now.0 += self.dice.below(2 * hour) as i64 - hour as i64;
            self.counts.jumps += 1;
            self.trace.add(format_args!("clock {}", self.now.0));
        }
    }

    pub(super) fn died(&self, proc: ProcId) -> bool {
        self.died.contains(&proc)
    }

    /// Whether the process dies after this step of the machine.
    pub(super) fn dies_in_step(&mut self) -> bool {
        self.point += 1;
        let killed = self
            .weather
            .kill
            .is_some_and(|kill| kill.point == self.point && kill.how != KillHow::Error);
        killed || self.mishap(self.weather.die_in_step)
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
            if self.dice.chance(500) {
                return Fault::DieAfter;
            }
            let packet = is_write && self.dice.chance(self.weather.packet);
            return Fault::DieBefore { packet };
        }
        Fault::None
    }

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
        let reply = self.kept.save(commit);
        self.trace.add(format_args!("  {}", tag(&reply)));
        match (&reply, expected || before) {
            (Ok(saved), true) => {
                if !before {
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

    /// A commit is durable, or at least somebody was told so.
    fn committed(&mut self, commit: &Commit, values: Option<Value>) {
        if commit.is_claim() {
            self.ledger.taken_over();
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
                Sight::TaskEnded { task, .. } => {
                    self.model.done.insert(*task);
                }
                Sight::AttemptFailed(failed) => {
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
                Sight::Stopped(Stop::Failed(_)) => self.model.attempts.clear(),
                _ => {}
            }
        }
        self.sights.extend(seen);
        if entry.kind == EntryKind::Fork {
            let (graph, thread) = (self.graph(), self.thread.clone());
            let history = self.load_at(seq).unwrap_or_default();
            self.watch = Watch::after(&graph, &thread, &history).ok();
        }
    }

    /// A pause that is stored has only questions that are open.
    fn check_pause(&mut self, commit: &Commit, saved: &Saved) {
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
        let shuffle = self.dice.number();
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
        let at = self.dice.below(self.packets.len());
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

    pub(super) fn entries(&mut self) -> Vec<StoredBody> {
        self.kept.entries(&self.thread)
    }

    pub(super) fn load_at(&mut self, seq: Seq) -> Option<History> {
        self.kept.load_at(&self.thread, seq)
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
    pub(super) fn started(&mut self, task: TaskId, node: &str, epoch: Option<Epoch>) {
        self.counts.tasks += 1;
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
    }

    fn actor(&self) -> Actor {
        let current = self
            .current
            .expect("only nodes that are polled have effects");
        Actor {
            exec: current.exec,
            owns: !current.orphan && self.owns(current.epoch),
        }
    }

    /// A node has an effect. Gives the number of its execution.
    pub(super) fn effect(&mut self, task: TaskId, name: &str, key: String, stateless: bool) -> u64 {
        let (number, found) = self
            .ledger
            .execute(self.actor(), (task, name), key, stateless);
        self.trace.add(format_args!("effect {task} {name}"));
        self.counts.checks += 1;
        for violation in found {
            self.fail(violation.check, violation.what);
        }
        number
    }

    pub(super) fn effect_used(&mut self, task: TaskId, name: &str, number: u64, stateless: bool) {
        let actor = self.actor();
        if !actor.owns {
            return;
        }
        let found = self.ledger.used(actor, (task, name), number, stateless);
        if let Some(violation) = found {
            self.fail(violation.check, violation.what);
        }
    }

    pub(super) fn answer_seen(&mut self, asked: &str, value: i64) {
        self.counts.checks += 1;
        let won = self.winners.get(asked).copied();
        if won != Some(value) {
            let what = format!("`{asked}` was answered {won:?} and the node sees {value}");
            self.fail(Check::AnswerOnce, what);
        }
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
