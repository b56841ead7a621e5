//! Everything of a trial that outlives its processes: the store, the clock, the dice, the ledger, the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use superstep_core::__private::lock;
use superstep_core::checkpoint::{CheckpointResult, Commit, History, RecordWrite, StoredBody};
use superstep_core::graph::Definition;
use superstep_core::run::{LogFollower, StreamEvent};
use superstep_core::{Epoch, InterruptId, Seq, TaskId, ThreadId, Timestamp, Value};

use super::check::{Check, Violation};
use super::counts::Counts;
use super::entropy::Entropy;
use super::ledger::{Actor, ExecId, Ledger};
use super::model::Model;
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
        lock(&self.0)
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
    /// A run is suspended at a boundary.
    pub(super) put_down: u32,
    /// Tasks of a superstep are dispatched, if there are so many that can be.
    pub(super) hand_over: u32,
    pub(super) hand_over_from: usize,
    /// A task that was dispatched is asked for a second time.
    pub(super) call_again: u32,
    /// What a process reported is not journaled.
    pub(super) unjournaled: u32,
    /// Starts and resumes have ids, and are tried again with them.
    pub(super) orders: bool,
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

/// The inside of a lab.
pub(super) struct Inner {
    pub(super) thread: ThreadId,
    pub(super) kept: Kept,
    pub(super) entropy: Entropy,
    pub(super) weather: Weather,
    pub(super) calm: bool,
    /// Somebody else drives the graph, so nothing that its nodes do is checked.
    pub(super) is_outside: bool,
    pub(super) now: Timestamp,
    pub(super) trace: Trace,
    pub(super) ledger: Ledger,
    pub(super) counts: Counts,
    pub(super) violations: Vec<Violation>,
    pub(super) current: Option<Current>,
    pub(super) model: Model,
    /// What the machine said its state was, by entry.
    pub(super) live_values: BTreeMap<Seq, Value>,
    pub(super) sights: Vec<StreamEvent>,
    pub(super) watch: Option<LogFollower>,
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
    timed_out: BTreeMap<TaskId, u32>,
    pub(super) died: BTreeSet<ProcId>,
    next_exec: ExecId,
}

impl Inner {
    pub(super) fn new(seed: u64, weather: Weather, mutant: Option<Mutant>, words: bool) -> Self {
        Self {
            thread: ThreadId::new("sim").expect("a thread name"),
            kept: Kept::new(mutant),
            entropy: Entropy::new(seed, 2),
            calm: !weather.disorder,
            is_outside: false,
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

    /// For a graph that runs on another driver than the simulated one.
    pub(super) fn outside(seed: u64) -> Self {
        Self {
            is_outside: true,
            ..Self::new(seed, Weather::default(), None, false)
        }
    }

    pub(super) fn set_graph(&mut self, graph: &Arc<Definition>) {
        let history = History::default();
        self.watch = LogFollower::after(graph, &self.thread, &history).ok();
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
        if self.calm { 0 } else { self.entropy.below(4) }
    }

    pub(super) fn hostile(&self) -> bool {
        !self.calm && self.faults_spent < self.weather.faults_max
    }

    /// Something hostile happens with this chance, while the world is hostile.
    pub(super) fn mishap(&mut self, per_mille: u32) -> bool {
        let happens = self.hostile() && self.entropy.chance(per_mille);
        self.faults_spent += u64::from(happens);
        happens
    }

    /// Time goes on, and sometimes jumps.
    pub(super) fn tick(&mut self) {
        if self.calm {
            self.now.0 += 1;
            return;
        }
        self.now.0 += self.entropy.below(40) as i64;
        if self.mishap(self.weather.jump) {
            let hour = 3_600_000;
            self.now.0 += self.entropy.below(2 * hour) as i64 - hour as i64;
            self.counts.jumps += 1;
            self.trace.add(format_args!("clock {}", self.now.0));
        }
    }

    pub(super) fn died(&self, proc: ProcId) -> bool {
        self.died.contains(&proc)
    }

    /// Whether this task, which may not take long, takes too long.
    pub(super) fn times_out(&mut self, proc: ProcId, task: TaskId) -> bool {
        let before = self.timed_out.get(&task).copied().unwrap_or(0);
        if before >= 2 || !self.mishap(self.weather.time_out) {
            return false;
        }
        self.timed_out.insert(task, before + 1);
        self.counts.timeouts += 1;
        self.trace.add(format_args!("p{proc} time out {task}"));
        true
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

    pub(super) fn entries(&mut self) -> Vec<StoredBody> {
        self.kept.entries(&self.thread)
    }

    pub(super) fn load_at(&mut self, seq: Seq) -> Option<History> {
        self.kept.load_at(&self.thread, seq)
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
        if self.is_outside {
            return 0;
        }
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
        if self.is_outside {
            return;
        }
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
        if self.is_outside {
            return;
        }
        self.counts.checks += 1;
        let won = self.winners.get(asked).copied();
        if won != Some(value) {
            let what = format!("`{asked}` was answered {won:?} and the node sees {value}");
            self.fail(Check::AnswerOnce, what);
        }
    }
}
