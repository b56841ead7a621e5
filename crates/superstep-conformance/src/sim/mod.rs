//! The seeded simulator: random programs on the real machine, in a world that breaks.
//!
//! One thread, no runtime, one seed per trial. A trial makes a random graph with the real builder, drives
//! it with the real [`Run`](superstep_core::Run) over the reference store, and lets everything happen to it
//! that may: tasks end in any order, the store fails before or after it applied a call, processes die, are
//! replaced and go on as zombies, the clock jumps, people answer twice. And everything that a cluster does: runs are suspended
//! and resumed elsewhere, tasks of them are run by others, orders are tried again by callers that did not hear what
//! became of them. Then the same program runs calmly
//! with the same answers, and both must have come to the same end. What else must hold is in [`Check`].
//!
//! The checks have teeth: each [`Mutant`] breaks the world in a way that its check must notice.

mod calls;
mod check;
mod counts;
mod driver;
mod engine;
mod entropy;
mod lab;
mod ledger;
mod life;
mod limits;
mod model;
mod mutant;
mod nodes;
mod outside;
mod people;
mod program;
mod running;
mod store;
mod sweep;
mod trace;
mod trial;
mod worker;
mod world;

pub use check::{Check, Violation};
pub use counts::Counts;
pub use mutant::Mutant;
pub use outside::graph;
pub use sweep::{SweepReport, sweep};

use entropy::Entropy;
use lab::Weather;
use program::Program;
use trial::{Setting, Trial};

/// How a seed went.
#[derive(Debug, Clone)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// What did not hold; empty if all is well.
    pub violations: Vec<Violation>,
    /// How often what happened.
    pub counts: Counts,
    /// The hash of everything that happened, in order.
    pub trace_hash: u64,
    /// How many things happened.
    pub events: u64,
    /// Everything that happened, in words, if they were wanted.
    pub trace: Vec<String>,
}

/// Runs the trial of a seed.
pub fn simulate(seed: u64) -> SeedReport {
    report(seed, run(seed, None, false))
}

/// Runs the trial of a seed in a world that is broken in this way.
pub fn simulate_mutant(seed: u64, mutant: Mutant) -> SeedReport {
    report(seed, run(seed, Some(mutant), false))
}

/// Runs the trial of a seed and tells everything that happened.
pub fn explain(seed: u64, mutant: Option<Mutant>) -> SeedReport {
    let mut told = report(seed, run(seed, mutant, true));
    told.trace
        .insert(0, format!("{:#?}", Program::random(seed)));
    told
}

/// The program of a seed, in words.
pub fn describe(seed: u64) -> String {
    format!("{:#?}", Program::random(seed))
}

/// How a mutant fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MutantReport {
    /// Which.
    pub mutant: Mutant,
    /// After how many seeds the check that owns it noticed; none if it did not within the budget.
    pub caught_after: Option<u64>,
    /// The seed that it was caught with.
    pub seed: Option<u64>,
}

/// Tries a mutant on seeds from `first` on until its check notices.
pub fn catch(mutant: Mutant, first: u64, seeds_max: u64) -> MutantReport {
    let wanted = mutant.caught_by();
    let caught = (0..seeds_max).find(|n| {
        let trial = run(first.wrapping_add(*n), Some(mutant), false);
        trial.violations.iter().any(|found| found.check == wanted)
    });
    MutantReport {
        mutant,
        caught_after: caught.map(|n| n + 1),
        seed: caught.map(|n| first.wrapping_add(n)),
    }
}

fn run(seed: u64, mutant: Option<Mutant>, words: bool) -> Trial {
    let program = Program::random(seed);
    let mut weather = weather(seed);
    if program.durability == superstep_core::run::Durability::Exit {
        // A crash loses such a run, as it says.
        weather.die_in_call = 0;
        weather.die_in_step = 0;
        weather.replace = 0;
        weather.put_down = 0;
        weather.orders = false;
    }
    let setting = Setting {
        seed,
        program: &program,
        weather,
        mutant,
        words,
    };
    setting.run()
}

/// The weather of a seed: some have all faults, some few, some none.
fn weather(seed: u64) -> Weather {
    let mut entropy = Entropy::new(seed, 3);
    let mut some = |most: usize| {
        if entropy.chance(600) {
            entropy.below(most + 1) as u32
        } else {
            0
        }
    };
    Weather {
        fail_before: some(60),
        fail_after: some(80),
        die_in_call: some(60),
        die_in_step: some(40),
        replace: some(30),
        give_up: some(200),
        jump: some(60),
        time_out: some(300),
        cancel: some(15),
        drain: some(15),
        answer_early: some(200),
        race: some(700),
        packet: some(600),
        faults_max: some(40).into(),
        put_down: some(300),
        hand_over: some(1400),
        hand_over_from: 1 + some(2) as usize,
        call_again: some(60),
        unjournaled: some(150),
        orders: some(1000) > 300,
        kill: None,
        disorder: true,
    }
}

fn report(seed: u64, trial: Trial) -> SeedReport {
    SeedReport {
        seed,
        violations: trial.violations,
        counts: trial.counts,
        trace_hash: trial.hash,
        events: trial.events,
        trace: trial.words,
    }
}
