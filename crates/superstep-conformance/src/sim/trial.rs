//! One trial: a program, a world with faults in it, and the thread's whole life.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use superstep_core::checkpoint::format::{Change, Entry};

use super::check::{self, Check, Remains, Violation};
use super::counts::Counts;
use super::lab::{Inner, Lab, Weather};
use super::life::Life;
use super::mutant::Mutant;
use super::nodes;
use super::program::Program;

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
    lab.get().model.recoveries_max = program.recoveries_max;
    let mut life = Life::new(lab, graph, program);
    let mut remains = Remains::default();
    for deed in &program.script {
        {
            let mut lab = lab.get();
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
    life.end();
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
    // Frames of one name are told apart by ids that a fork makes again.
    by_name.values_mut().for_each(|texts| texts.sort());
    by_name
}
