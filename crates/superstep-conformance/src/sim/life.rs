//! The life of one thread: its caretaker knows only what the store says, and what an engine journaled.

use std::sync::Arc;

use superstep_core::checkpoint::format::{Change, Entry, EntryKind, Stop};
use superstep_core::checkpoint::{Commit, Status};
use superstep_core::driver::ThreadRequest;
use superstep_core::error::{CheckpointError, FailureKind, OpenError};
use superstep_core::graph::Definition;
use superstep_core::run::{Edit, EditNode, ForkFrom, RunOptions, fork, read_state, update_state};
use superstep_core::{Command, Moment, NodeName, Outcome, Run, Seq, Value};

use super::check::Check;
use super::driver::{Act, Proc, outcome_word};
use super::engine::{Opening, Order, Parked, What};
use super::lab::{Inner, Lab, ProcId, Reply};
use super::nodes::BY_DESIGN;
use super::people;
use super::program::{Deed, Program};
use super::worker::{CallId, Worker};
use super::world::{INPUTS, World, WorldUpdate};
/// Where a thread stands, as the store tells.
enum Standing {
    Finished,
    FailedByDesign(String),
    /// It is to be given its input.
    Start,
    /// It is to go on from where it stopped.
    Resume,
    /// Its owner is gone.
    Recover,
    Asks,
}

pub(super) struct Life<'a> {
    pub(super) lab: Arc<Lab>,
    graph: Arc<Definition>,
    program: &'a Program,
    pub(super) current: Option<Proc>,
    zombies: Vec<Proc>,
    pub(super) next_proc: ProcId,
    /// The start or resume that is being carried out.
    pub(super) order: Option<Order>,
    pub(super) orders: u64,
    /// Where the run was suspended, if it was.
    pub(super) parked: Option<Parked>,
    /// Processes that run tasks for others.
    pub(super) workers: Vec<Worker>,
    pub(super) next_call: CallId,
    acts: u64,
    /// Inputs that must be in the log.
    inputs: usize,
    edited: bool,
    /// The process that was in charge last went on from where the thread had stopped.
    pub(super) resumed: bool,
    /// And it came to its end, with nobody in between.
    undisturbed: bool,
    /// How far the thread had come when it last failed, and how many whole runs have failed there.
    failed_at: Option<((usize, u64), usize)>,
}

/// With the faults off, any program comes to rest in fewer acts; fan-outs of fan-outs take the most.
const ACTS_MAX: u64 = 400_000;

impl<'a> Life<'a> {
    pub(super) fn new(lab: &Arc<Lab>, graph: Arc<Definition>, program: &'a Program) -> Self {
        Self {
            lab: lab.clone(),
            graph,
            program,
            current: None,
            zombies: Vec::new(),
            next_proc: 0,
            order: None,
            orders: 0,
            parked: None,
            workers: Vec::new(),
            next_call: 0,
            acts: 0,
            inputs: 0,
            edited: false,
            resumed: false,
            undisturbed: false,
            failed_at: None,
        }
    }

    /// How its runs are to be made.
    pub(super) fn options(&self) -> RunOptions {
        let mut options = RunOptions::default();
        options.run = self.order.as_ref().map(|order| order.id);
        options.durability = self.program.durability;
        options.step_limit = self.program.step_limit;
        options.recoveries_max = self.program.recoveries_max;
        options
    }

    /// Processes that still run are stopped.
    pub(super) fn end(&mut self) {
        self.zombies.clear();
        self.workers.clear();
    }

    /// Does a deed and everything that follows from it, until the thread is at rest. None if it never is.
    pub(super) fn deed(&mut self, deed: &Deed) -> Option<String> {
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
        if !self.zombies.is_empty() && self.lab.get().entropy.chance(400) {
            let at = self.lab.get().entropy.below(self.zombies.len());
            match self.zombies[at].act() {
                Act::Went => {}
                Act::Stopped(_) | Act::Suspended(_) | Act::Died | Act::Fenced | Act::Stuck => {
                    self.zombies.swap_remove(at);
                }
            }
        }
        if self.current.is_some() && !self.workers.is_empty() && self.lab.get().entropy.chance(300)
        {
            self.work();
        }
        let mut lab = self.lab.get();
        if !lab.packets.is_empty() && lab.entropy.chance(100) {
            lab.deliver();
        }
        let chance = lab.weather.answer_early;
        if !lab.calm && chance > 0 && self.current.is_some() && lab.entropy.chance(chance) {
            people::answer_one(&mut lab);
        }
        let replace = lab.weather.replace;
        if self.current.is_some() && self.zombies.len() < 3 && lab.mishap(replace) {
            lab.counts.zombies += 1;
            lab.trace.add(format_args!("replaced"));
            lab.lost();
            self.resumed = false;
            self.zombies.extend(self.current.take());
        }
    }

    fn after(&mut self, act: Act) {
        match act {
            Act::Went => {}
            Act::Suspended(suspension) => self.suspended(suspension),
            Act::Died => {
                let proc = self.current.take();
                self.resumed = false;
                let mut lab = self.lab.get();
                lab.lost();
                lab.counts.crashes += 1;
                lab.kept.process_died();
                lab.trace.add(format_args!("died"));
                drop(lab);
                drop(proc);
            }
            Act::Fenced => {
                self.current = None;
                self.resumed = false;
                self.lab.get().lost();
            }
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
                let mut lab = self.lab.get();
                let unjournaled = lab.weather.unjournaled;
                let has_heard = !lab.mishap(unjournaled);
                lab.counts.unjournaled += u64::from(!has_heard);
                drop(lab);
                // What was drained goes on elsewhere.
                if has_heard && outcome != Outcome::Drained {
                    self.order_done();
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
        if self.parked.is_some() {
            return self.take_up();
        }
        if self.order.is_some() {
            return self.try_again(deed);
        }
        let what = match self.standing() {
            Standing::Finished => return Some("finished".to_owned()),
            Standing::FailedByDesign(why) => return Some(why),
            Standing::Recover => return self.open(Opening::RECOVER),
            Standing::Start => What::Start,
            Standing::Resume => What::Resume,
            Standing::Asks => {
                people::answer_some(&mut self.lab.get());
                What::Resume
            }
        };
        self.order(what);
        match &self.order {
            Some(_) => self.try_again(deed),
            None => self.open(Opening::Request(self.request(what, deed))),
        }
    }

    /// Tries the order that is being carried out; sometimes somebody else recovers its run first.
    fn try_again(&mut self, deed: &Deed) -> Option<String> {
        let mut lab = self.lab.get();
        let thread = lab.thread.clone();
        let is_recovered = lab.entropy.chance(150)
            && (lab.kept.peek(&thread)).is_some_and(|loaded| loaded.head.status == Status::Running);
        drop(lab);
        if is_recovered {
            return self.open(Opening::RECOVER);
        }
        let input = self.request(What::Start, deed);
        self.try_order(|what| match what {
            What::Start => input,
            What::Resume => ThreadRequest::Resume,
        })
    }

    pub(super) fn open(&mut self, opening: Opening) -> Option<String> {
        // Whatever comes of it, the run before was not the last that was wanted.
        let undisturbed = std::mem::take(&mut self.undisturbed);
        self.next_proc += 1;
        let id = self.next_proc;
        let mut lab = self.lab.get();
        let (thread, entropy, now) = (lab.thread.clone(), lab.entropy.number(), lab.now);
        let loaded = match lab.load(id) {
            Reply::Answer(Ok(loaded)) => loaded,
            Reply::Answer(Err(_)) => return None,
            Reply::Died => {
                lab.counts.crashes += 1;
                return None;
            }
        };
        drop(lab);
        let stands = loaded.as_ref().map(|loaded| loaded.head.epoch);
        let on_purpose = (self.parked.as_ref()).is_some_and(|parked| stands == Some(parked.epoch));
        let resumes = opening.resumes();
        let is_new = !self
            .order
            .as_mut()
            .is_some_and(|order| !opening.recovers() && std::mem::replace(&mut order.tried, true));
        let resumed = match opening {
            Opening::Request(_) => resumes && is_new,
            Opening::Suspended(_) => self.resumed,
        };
        let mut options = self.options();
        if opening.recovers() {
            options.run = None;
        }
        let moment = Moment { now, entropy };
        let opened = match opening {
            Opening::Request(request) => {
                Run::open(&self.graph, &thread, loaded, request, options, moment)
            }
            Opening::Suspended(token) => {
                Run::resume_suspended(&self.graph, &thread, loaded, token, options, moment)
            }
        };
        match opened {
            Ok(run) => {
                let mut lab = self.lab.get();
                (lab.cancel_wanted, lab.drain_wanted) = (false, false);
                lab.trace.add(format_args!("p{id} opens"));
                drop(lab);
                self.resumed = resumed;
                let proc = Proc::new(id, &self.lab, run, self.program.durability);
                self.current = Some(if on_purpose { proc.on_purpose() } else { proc });
                None
            }
            // An earlier try came to the end, and nobody was told.
            Err(OpenError::Taken { .. }) if self.order.is_some() || self.parked.is_some() => {
                let mut lab = self.lab.get();
                lab.counts.orders_taken += 1;
                lab.trace.add(format_args!("p{id} is told that it is done"));
                drop(lab);
                self.undisturbed = undisturbed;
                self.order_done();
                None
            }
            // A zombie may have gone on with it since it was looked at.
            Err(OpenError::Busy { .. }) => None,
            Err(OpenError::NothingToRun { .. }) if resumes => {
                self.order_done();
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

    fn standing(&mut self) -> Standing {
        let mut lab = self.lab.get();
        let thread = lab.thread.clone();
        let Some(loaded) = lab.kept.peek(&thread) else {
            return Standing::Start;
        };
        if loaded.head.status == Status::Running {
            return Standing::Recover;
        }
        let entries = truth(&lab);
        let inputs = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Input)
            .count();
        if inputs < self.inputs {
            return Standing::Start;
        }
        let stop = entries.last().and_then(|entry| entry.stop.clone());
        match (loaded.head.status, stop) {
            (Status::Idle, Some(_)) => Standing::Finished,
            // Changed from outside: goes on from there.
            (Status::Idle, None) => Standing::Resume,
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
                    let runs = match self.failed_at {
                        Some((at, runs)) if at == mark => runs + usize::from(self.undisturbed),
                        _ => 0,
                    };
                    self.failed_at = Some((mark, runs));
                    if people::open_count(&lab) > 0 {
                        return Standing::Asks;
                    }
                    // Others of its superstep may have been held back: by a breakpoint, a drain, an answer to come.
                    // It is at rest when a whole run from here changes nothing, and none of the breakpoints can be why:
                    // a failure outweighs them, so the stop does not tell.
                    let held_back = runs <= self.program.breakpoints();
                    if held_back || !self.undisturbed || lab.drain_wanted {
                        return Standing::Resume;
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
                Standing::Resume
            }
            (Status::Paused | Status::StepLimit | Status::Cancelled, _) => Standing::Resume,
            (status, stop) => {
                lab.fail(Check::Unexpected, format!("{status:?} after {stop:?}"));
                Standing::Finished
            }
        }
    }

    fn request(&self, what: What, deed: &Deed) -> ThreadRequest {
        if what == What::Resume {
            return ThreadRequest::Resume;
        }
        let number = match deed {
            Deed::Input(number) => *number,
            _ => 0,
        };
        let update = WorldUpdate::default()
            .log(format!("input {number}"))
            .total(i64::from(number))
            .turns(std::collections::BTreeMap::from([(INPUTS.to_owned(), 1)]));
        ThreadRequest::Start {
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
            let from = ForkFrom {
                at,
                history: &history,
                copied_from: None,
                write: None,
                context: None,
            };
            fork(graph, &thread, loaded, &from, moment)
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
                entropy: lab.entropy.number(),
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

    pub(super) fn values(&mut self) -> String {
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
