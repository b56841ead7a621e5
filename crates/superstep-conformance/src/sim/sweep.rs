//! The kill-point sweep: a few programs, and a death at every single point of them.

use super::check::Violation;
use super::lab::{Kill, KillHow, Weather};
use super::program::Program;
use super::trial::Setting;

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
/// dies before it is applied, dies after it is applied, and is told of an error although it was applied.
pub fn sweep(seeds: impl IntoIterator<Item = u64>) -> SweepReport {
    let mut report = SweepReport::default();
    for seed in seeds {
        let mut program = Program::random(seed);
        program.durability = superstep_core::run::Durability::Sync;
        let calm = trial(seed, &program, None);
        report.programs += 1;
        for violation in calm.violations {
            report.violations.push((seed, 0, "calm", violation));
        }
        for point in 1..=calm.points {
            for (how, word) in [
                (KillHow::Before, "dies before"),
                (KillHow::After, "dies after"),
                (KillHow::Error, "applied, error"),
            ] {
                report.points += 1;
                let found = trial(seed, &program, Some(Kill { point, how })).violations;
                let told = found.into_iter().map(|what| (seed, point, word, what));
                report.violations.extend(told);
            }
        }
    }
    report
}

fn trial(seed: u64, program: &Program, kill: Option<Kill>) -> super::trial::Trial {
    let setting = Setting {
        seed,
        program,
        weather: Weather {
            kill,
            ..Weather::default()
        },
        mutant: None,
        words: false,
    };
    setting.run()
}
