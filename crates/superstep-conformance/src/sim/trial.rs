//! One trial: a program, a world with faults in it, and the thread's whole life.
//!
//! Whoever looks after the thread knows only what the store says. So nothing here depends on what a
//! process believed when it died.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use superstep_core::checkpoint::format::{Change, Entry, EntryKind, Stop};
use superstep_core::checkpoint::{Commit, Status};
use superstep_core::error::{CheckpointError, FailureKind, OpenError};
use superstep_core::graph::Definition;
use superstep_core::run::{Edit, EditNode, RunCommand, RunOptions, fork, read_state, update_state};
use superstep_core::{Command, Moment, NodeName, Outcome, Run, Seq, Value};

use super::check::{self, Check, Remains, Violation};
use super::counts::Counts;
use super::driver::{Act, Proc, outcome_word};
use super::lab::{Inner, Lab, ProcId, Reply, Weather};
use super::mutant::Mutant;
use super::nodes::{self, BY_DESIGN};
use super::people;
use super::program::{Deed, Program};
use super::world::{INPUTS, World, WorldUpdate};

/// How a trial went.
#[derive(Debug, Clone, Default)]
pub(super) struct Trial {
    pub(super) violations: Vec<Violation>,
    pub(super) counts: Counts,
    pub(super) hash: u64,
    pub(super) events: u64,
    /// Points at which a process could have died.
    pub(super) points: u64,
    pub(super) words: Vec<String>,
}

/// What a trial is made of.
pub(super) struct Setting<'a> {
    pub(super) seed: u64,
    pub(super) program: &'a Program,
    pub(super) weather: Weather,
    pub(super) mutant: Option<Mutant>,
    pub(super) words: bool,
}

impl Setting<'_> {
    /// Runs the program in its weather, then calmly with the same answers, and compares.
    pub(super) fn run(&self) -> Trial {
        let lab = Lab::new(Inner::new(
            self.seed,
            self.weather.clone(),
            self.mutant,
            self.words,
        ));
        let remains = guarded(&lab, self.program);
        let mut trial = Trial::default();
        let winners = {
            let mut inner = lab.get();
            inner.forget_graph();
            inner.counts.effects = inner.ledger.executions;
            inner.counts.repeated = inner.ledger.repeated;
            trial.violations = std::mem::take(&mut inner.violations);
            trial.counts = inner.counts;
            (trial.hash, trial.events) = (inner.trace.hash(), inner.trace.events());
            trial.points = inner.point;
            trial.words = std::mem::take(&mut inner.trace).into_words();
            std::mem::take(&mut inner.winners)
        };
        let is_broken = trial
            .violations
            .iter()
            .any(|found| matches!(found.check, Check::Live | Check::Unexpected));
        if let (Some(remains), false) = (remains, is_broken) {
            let calm = Lab::new(Inner::new(self.seed, Weather::default(), None, false));
            calm.get().winners = winners;
            let wanted = guarded(&calm, self.program);
            let mut calm = calm.get();
            calm.forget_graph();
            for violation in std::mem::take(&mut calm.violations) {
                trial.violations.push(Violation::new(
                    violation.check,
                    format!("in the calm run: {}", violation.what),
                ));
            }
            if let Some(wanted) = wanted {
                let exact = !self.program.fails_by_order();
                trial.counts.checks += 1;
                trial
                    .violations
                    .extend(check::compare(&remains, &wanted, exact));
            }
        }
        trial
    }
}

/// A panic of the machine is a violation, not the end of the simulation.
fn guarded(lab: &Arc<Lab>, program: &Program) -> Option<Remains> {
    let lived = catch_unwind(AssertUnwindSafe(|| live(lab, program)));
    match lived {
        Ok(remains) => Some(remains),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default();
            lab.get()
                .fail(Check::Unexpected, format!("panicked: {text}"));
            None
        }
    }
}

fn live(lab: &Arc<Lab>, program: &Program) -> Remains {
    let graph = match nodes::build(&program.root, lab) {
        Ok(graph) => graph.definition().clone(),
        Err(error) => {
            lab.get().fail(Check::Unexpected, error.to_string());
            return Remains::default();
        }
    };
    lab.get().set_graph(&graph);
    let mut life = Life {
        lab: lab.clone(),
        graph,
        program,
        current: None,
        zombies: Vec::new(),
        next_proc: 0,
        acts: 0,
        inputs: 0,
        edited: false,
        resumed: false,
        undisturbed: false,
        failed_at: None,
    };
    let mut remains = Remains::default();
    for deed in &program.script {
        {
            let mut lab = life.lab.get();
            lab.generation += 1;
            lab.trace.add(format_args!("deed {deed:?}"));
        }
        let Some(end) = life.deed(deed) else {
            return remains;
        };
        let values = life.values();
        let goes_on = end == "finished" || !program.fails_by_order();
        remains.ends.push(end);
        remains.values.push(values);
        if !goes_on {
            break;
        }
    }
    life.zombies.clear();
    let mut inner = lab.get();
    while !inner.packets.is_empty() {
        inner.deliver();
    }
    remains.writes = writes(&mut inner);
    check::log(&mut inner, &program.root);
    remains
}

/// What every frame wrote.
fn writes(lab: &mut Inner) -> std::collections::BTreeMap<String, Vec<String>> {
    let thread = lab.thread.clone();
    let mut by_frame: std::collections::BTreeMap<_, (String, String)> = Default::default();
    for stored in lab.entries() {
        let Ok(entry) = Entry::read(&stored, &thread) else {
            continue;
        };
        for change in entry.changes {
            if let Change::FrameAdvanced(advanced) = change {
                let (_, text) = by_frame
                    .entry(advanced.frame.clone())
                    .or_insert_with(|| (check::names(&advanced.frame), String::new()));
                for write in &advanced.writes {
                    *text += &format!(
                        "{}#{} {:?} {:?}; ",
                        write.node, write.index, write.updates, write.events
                    );
                }
                *text += "| ";
            }
        }
    }
    let mut by_name: std::collections::BTreeMap<String, Vec<String>> = Default::default();
    for (name, text) in by_frame.into_values() {
        by_name.entry(name).or_default().push(text);
    }
    // Frames of one name are told apart by ids that a fork makes anew.
    by_name.values_mut().for_each(|texts| texts.sort());
    by_name
}

/// Where a thread stands, as the store tells.
enum Standing {
    Finished,
    FailedByDesign(String),
    /// It is to be taken up with this.
    TakeUp(RunCommand),
    Asks,
}

struct Life<'a> {
    lab: Arc<Lab>,
    graph: Arc<Definition>,
    program: &'a Program,
    current: Option<Proc>,
    zombies: Vec<Proc>,
    next_proc: ProcId,
    acts: u64,
    /// Inputs that must be in the log.
    inputs: usize,
    edited: bool,
    /// The process that was in charge last went on from where the thread had stopped.
    resumed: bool,
    /// And it came to its end, with nobody in between.
    undisturbed: bool,
    /// How far the thread had come when it last failed.
    failed_at: Option<(usize, u64)>,
}

/// With the faults off, any program comes to rest in far fewer acts.
const ACTS_MAX: u64 = 60_000;

impl Life<'_> {
    /// Does a deed and everything that follows from it, until the thread is at rest. None if it never is.
    fn deed(&mut self, deed: &Deed) -> Option<String> {
        self.failed_at = None;
        match deed {
            Deed::Input(_) => self.inputs += 1,
            Deed::EditAs(_) | Deed::EditInput | Deed::EditEnd => self.edit(deed)?,
            Deed::Fork(step) => self.fork(*step)?,
        }
        loop {
            self.acts += 1;
            if self.acts > ACTS_MAX {
                let what = format!("not at rest after {ACTS_MAX} acts");
                self.lab.get().fail(Check::Live, what);
                return None;
            }
            if self.is_broken() {
                return None;
            }
            self.others();
            let Some(proc) = &mut self.current else {
                if let Some(end) = self.look_after(deed) {
                    return Some(end);
                }
                continue;
            };
            let act = proc.act();
            self.after(act);
        }
    }

    fn is_broken(&self) -> bool {
        self.lab.get().violations.len() >= 20
    }

    /// What happens beside the process in charge.
    fn others(&mut self) {
        if !self.zombies.is_empty() && self.lab.get().dice.chance(400) {
            let at = self.lab.get().dice.below(self.zombies.len());
            match self.zombies[at].act() {
                Act::Went => {}
                Act::Stopped(_) | Act::Died | Act::Fenced | Act::Stuck => {
                    self.zombies.swap_remove(at);
                }
            }
        }
        let mut lab = self.lab.get();
        if !lab.packets.is_empty() && lab.dice.chance(100) {
            lab.deliver();
        }
        let chance = lab.weather.answer_early;
        if !lab.calm && chance > 0 && self.current.is_some() && lab.dice.chance(chance) {
            people::answer_one(&mut lab);
        }
        let replace = lab.weather.replace;
        if self.current.is_some() && self.zombies.len() < 3 && lab.mishap(replace) {
            lab.counts.zombies += 1;
            lab.trace.add(format_args!("replaced"));
            self.zombies.extend(self.current.take());
        }
    }

    fn after(&mut self, act: Act) {
        match act {
            Act::Went => {}
            Act::Died => {
                let proc = self.current.take();
                let mut lab = self.lab.get();
                lab.counts.crashes += 1;
                lab.kept.process_died();
                lab.trace.add(format_args!("died"));
                drop(lab);
                drop(proc);
            }
            Act::Fenced => drop(self.current.take()),
            Act::Stuck => {
                self.current = None;
                self.lab
                    .get()
                    .fail(Check::Live, "the machine waits for nothing".to_owned());
            }
            Act::Stopped(outcome) => {
                let proc = self.current.take();
                let owns = proc.is_some_and(|proc| self.lab.get().owns(proc.epoch()));
                self.undisturbed = owns && self.resumed;
                if owns {
                    self.check_outcome(&outcome);
                }
            }
        }
    }

    /// What the process believes is what the store says.
    fn check_outcome(&mut self, outcome: &Outcome) {
        let mut lab = self.lab.get();
        lab.counts.checks += 1;
        let thread = lab.thread.clone();
        let status = lab.kept.peek(&thread).map(|loaded| loaded.head.status);
        let wanted = match outcome {
            Outcome::Finished => Status::Idle,
            Outcome::Paused(_) | Outcome::Breakpoint(_) => Status::Paused,
            Outcome::StepLimit => Status::StepLimit,
            Outcome::Failed(_) => Status::Failed,
            Outcome::Cancelled => Status::Cancelled,
            Outcome::Drained => Status::Running,
        };
        if status != Some(wanted) {
            let what = format!(
                "a run ended {}, its thread is {status:?}",
                outcome_word(outcome)
            );
            lab.fail(Check::AnswerOnce, what);
        }
    }

    /// No process is in charge: looks at the store and does what it takes.
    fn look_after(&mut self, deed: &Deed) -> Option<String> {
        let standing = self.standing(deed);
        match standing {
            Standing::Finished => Some("finished".to_owned()),
            Standing::FailedByDesign(why) => Some(why),
            Standing::TakeUp(command) => self.open(command),
            Standing::Asks => {
                let mut lab = self.lab.get();
                people::answer_some(&mut lab);
                drop(lab);
                self.open(RunCommand::Resume)
            }
        }
    }

    fn open(&mut self, command: RunCommand) -> Option<String> {
        // Whatever comes of it, the run before was not the last that was wanted.
        self.undisturbed = false;
        self.next_proc += 1;
        let id = self.next_proc;
        let mut lab = self.lab.get();
        let (thread, dice, now) = (lab.thread.clone(), lab.dice.number(), lab.now);
        let loaded = match lab.load(id) {
            Reply::Answer(Ok(loaded)) => loaded,
            Reply::Answer(Err(_)) => return None,
            Reply::Died => {
                lab.counts.crashes += 1;
                return None;
            }
        };
        drop(lab);
        let mut options = RunOptions::default();
        options.durability = self.program.durability;
        options.step_limit = self.program.step_limit;
        options.recoveries_max = self.program.recoveries_max;
        let resumes = matches!(command, RunCommand::Resume);
        let moment = Moment { now, dice };
        match Run::open(&self.graph, &thread, loaded, command, options, moment) {
            Ok(run) => {
                let mut lab = self.lab.get();
                (lab.cancel_wanted, lab.drain_wanted) = (false, false);
                lab.trace.add(format_args!("p{id} opens"));
                drop(lab);
                (self.resumed, self.undisturbed) = (resumes, false);
                self.current = Some(Proc::new(id, &self.lab, run));
                None
            }
            // A zombie may have gone on with it since it was looked at.
            Err(OpenError::Busy { .. }) => None,
            Err(OpenError::NothingToRun { .. }) if resumes => {
                (self.edited).then(|| "finished".to_owned())
            }
            Err(error) => {
                self.lab.get().fail(
                    Check::Unexpected,
                    format!("opening: {error} {:?}", source(&error)),
                );
                Some("unopened".to_owned())
            }
        }
    }

    fn standing(&mut self, deed: &Deed) -> Standing {
        let mut lab = self.lab.get();
        let thread = lab.thread.clone();
        let Some(loaded) = lab.kept.peek(&thread) else {
            return Standing::TakeUp(self.input(deed));
        };
        if loaded.head.status == Status::Running {
            return Standing::TakeUp(RunCommand::Recover);
        }
        let entries = truth(&lab);
        let inputs = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Input)
            .count();
        if inputs < self.inputs {
            drop(lab);
            return Standing::TakeUp(self.input(deed));
        }
        let stop = entries.last().and_then(|entry| entry.stop.clone());
        match (loaded.head.status, stop) {
            (Status::Idle, Some(_)) => Standing::Finished,
            // Changed from outside: goes on from there.
            (Status::Idle, None) => Standing::TakeUp(RunCommand::Resume),
            (Status::Paused, Some(Stop::Paused { .. })) => {
                if people::open_count(&lab) == 0 && loaded.interrupts.is_empty() {
                    lab.fail(Check::AnswerOnce, "paused, and nobody is asked".to_owned());
                }
                Standing::Asks
            }
            (Status::Failed, Some(Stop::Failed(failures))) => {
                let designed =
                    |failure: &superstep_core::error::Failure| failure.message.contains(BY_DESIGN);
                let injected = |failure: &superstep_core::error::Failure| {
                    matches!(
                        failure.kind,
                        FailureKind::TimedOut | FailureKind::RecordFailed | FailureKind::Poisoned
                    )
                };
                if failures.iter().all(designed) {
                    let mark = (advances(&entries), loaded.head.answers);
                    let seen_before = self.failed_at.replace(mark) == Some(mark);
                    if people::open_count(&lab) > 0 {
                        return Standing::Asks;
                    }
                    // Others of its superstep may have been held back: by a breakpoint, a drain, an answer to come.
                    // It is at rest when a whole run from here changes nothing.
                    if !seen_before || !self.undisturbed || lab.drain_wanted {
                        return Standing::TakeUp(RunCommand::Resume);
                    }
                    let mut nodes: Vec<_> = failures.iter().map(|f| f.message.clone()).collect();
                    nodes.sort();
                    if self.program.fails_by_order() {
                        return Standing::FailedByDesign("failed".to_owned());
                    }
                    return Standing::FailedByDesign(format!("failed {nodes:?}"));
                }
                let strange = failures.iter().find(|f| !designed(f) && !injected(f));
                if let Some(failure) = strange {
                    let what = failure.to_string();
                    lab.fail(Check::Unexpected, what);
                    return Standing::FailedByDesign("failed strangely".to_owned());
                }
                Standing::TakeUp(RunCommand::Resume)
            }
            (Status::Paused | Status::StepLimit | Status::Cancelled, _) => {
                Standing::TakeUp(RunCommand::Resume)
            }
            (status, stop) => {
                lab.fail(Check::Unexpected, format!("{status:?} after {stop:?}"));
                Standing::Finished
            }
        }
    }

    fn input(&self, deed: &Deed) -> RunCommand {
        let number = match deed {
            Deed::Input(number) => *number,
            _ => 0,
        };
        let update = WorldUpdate::default()
            .log(format!("input {number}"))
            .total(i64::from(number))
            .turns(std::collections::BTreeMap::from([(INPUTS.to_owned(), 1)]));
        RunCommand::Start {
            input: Value::encode(&update).expect("plain data"),
            context: None,
            metadata: None,
        }
    }

    /// Changes the state from outside, again and again until it is known to be done.
    fn edit(&mut self, deed: &Deed) -> Option<()> {
        self.edited = true;
        self.lab.get().counts.edits += 1;
        let node = match deed {
            Deed::EditAs(node) => {
                EditNode::Node(NodeName::new(self.program.root.nodes[*node].name).ok()?)
            }
            Deed::EditInput => EditNode::Input,
            _ => EditNode::End,
        };
        let update = WorldUpdate::default().log("edited");
        let edit = Edit::new::<World>(node, Command::update(update)).ok()?;
        self.change(EntryKind::Update, |graph, lab, moment| {
            let thread = lab.thread.clone();
            let loaded = lab.kept.peek(&thread);
            update_state(graph, &thread, loaded, &edit, moment)
        })
    }

    fn fork(&mut self, step: u64) -> Option<()> {
        self.edited = true;
        self.lab.get().counts.forks += 1;
        self.change(EntryKind::Fork, |graph, lab, moment| {
            let thread = lab.thread.clone();
            let loaded = lab.kept.peek(&thread).unwrap_or_default();
            let mut at = Seq(1);
            for seq in 1..=loaded.head.seq.0 {
                let history = lab.load_at(Seq(seq)).unwrap_or_default();
                let state = read_state(graph, &thread, &history)?;
                if state.is_some_and(|state| state.step <= step) {
                    let state_step = read_state(graph, &thread, &history)?.map_or(0, |s| s.step);
                    let best = lab.load_at(at).unwrap_or_default();
                    let best = read_state(graph, &thread, &best)?.map_or(0, |s| s.step);
                    if state_step > best {
                        at = Seq(seq);
                    }
                }
            }
            let history = lab.load_at(at).unwrap_or_default();
            fork(graph, &thread, loaded, at, &history, None, moment)
        })
    }

    /// Makes one commit from outside, whatever the store does meanwhile.
    fn change(
        &mut self,
        kind: EntryKind,
        mut make: impl FnMut(&Arc<Definition>, &mut Inner, Moment) -> Result<Commit, OpenError>,
    ) -> Option<()> {
        let graph = self.graph.clone();
        let mut lab = self.lab.get();
        let before = count(&lab, kind);
        for _ in 0..1000 {
            if count(&lab, kind) > before {
                return Some(());
            }
            let moment = Moment {
                now: lab.now,
                dice: lab.dice.number(),
            };
            let commit = match make(&graph, &mut lab, moment) {
                Ok(commit) => commit,
                Err(error) => {
                    lab.fail(
                        Check::Unexpected,
                        format!("changing: {error} {:?}", source(&error)),
                    );
                    return None;
                }
            };
            self.next_proc += 1;
            loop {
                match lab.save(self.next_proc, &commit, None) {
                    Reply::Answer(Ok(_)) => return Some(()),
                    Reply::Answer(Err(error)) if error.is_transient() => {}
                    Reply::Answer(Err(CheckpointError::Fenced { .. })) | Reply::Died => break,
                    Reply::Answer(Err(error)) => {
                        lab.fail(Check::Unexpected, error.to_string());
                        return None;
                    }
                }
            }
        }
        lab.fail(
            Check::Live,
            "a change from outside never came through".to_owned(),
        );
        None
    }

    fn values(&mut self) -> String {
        let lab = self.lab.get();
        let thread = lab.thread.clone();
        let Some(loaded) = lab.kept.peek(&thread) else {
            return String::new();
        };
        match read_state(&self.graph, &thread, &loaded.history) {
            Ok(Some(state)) => format!("{:?} after {}", state.values, state.step),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

fn source(error: &OpenError) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}

/// The log as it is, whatever a mutant makes of it.
fn truth(lab: &Inner) -> Vec<Entry> {
    lab.kept
        .log(&lab.thread)
        .iter()
        .filter_map(|stored| Entry::read(stored, &lab.thread).ok())
        .collect()
}

fn advances(entries: &[Entry]) -> usize {
    let changes = entries.iter().flat_map(|entry| &entry.changes);
    changes
        .filter(|change| matches!(change, Change::FrameAdvanced(_)))
        .count()
}

fn count(lab: &Inner, kind: EntryKind) -> usize {
    truth(lab).iter().filter(|entry| entry.kind == kind).count()
}
