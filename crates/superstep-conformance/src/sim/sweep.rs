//! The kill-point sweep: a few programs, and a death at every single point of them.

use super::check::Violation;
use super::lab::{Kill, KillHow, Weather};
use super::program::Program;
use super::trial::{Setting, Trial};

/// What a sweep found.
#[derive(Debug, Clone, Default)]
pub struct SweepReport {
    /// Programs that were swept.
    pub programs: u64,
    /// Points at which a process was killed, or a call failed, each in every way.
    pub points: u64,
    /// What did not hold: the program's seed, the point, how, and what.
    pub violations: Vec<(u64, u64, &'static str, Violation)>,
}

/// Sweeps the programs of these seeds: at every call of the store and every step of the machine the process
/// dies before it is applied, dies after it is applied, and is told of an error although it was applied. Once with one
/// process for each run, once in segments.
pub fn sweep(seeds: impl IntoIterator<Item = u64>) -> SweepReport {
    let mut report = SweepReport::default();
    for seed in seeds {
        let mut program = Program::random(seed);
        program.durability = superstep_core::run::Durability::Sync;
        for in_segments in [false, true] {
            sweep_one(seed, &program, in_segments, &mut report);
        }
    }
    report
}

fn sweep_one(seed: u64, program: &Program, in_segments: bool, report: &mut SweepReport) {
    let calm = trial(seed, program, in_segments, None);
    report.programs += 1;
    for violation in calm.violations {
        report.violations.push((seed, 0, "calm", violation));
    }
    let ways = [
        (KillHow::Before, "dies before"),
        (KillHow::After, "dies after"),
        (KillHow::Error, "applied, error"),
    ];
    for point in 1..=calm.points {
        for (how, word) in &ways {
            report.points += 1;
            let kill = Some(Kill { point, how: *how });
            let found = trial(seed, program, in_segments, kill).violations;
            let told = found.into_iter().map(|what| (seed, point, *word, what));
            report.violations.extend(told);
        }
    }
}

/// With `in_segments` the run is suspended wherever it can be, and whatever can be run by others is.
fn trial(seed: u64, program: &Program, in_segments: bool, kill: Option<Kill>) -> Trial {
    let always = if in_segments { 1000 } else { 0 };
    let setting = Setting {
        seed,
        program,
        weather: Weather {
            kill,
            put_down: always,
            hand_over: always,
            orders: in_segments,
            ..Weather::default()
        },
        mutant: None,
        words: false,
    };
    setting.run()
}
