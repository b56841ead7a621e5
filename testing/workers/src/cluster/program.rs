//! Random programs as data: what one thread is to do, and what it must have done in the end, whatever happened to the
//! processes that did it.

use std::collections::BTreeSet;

use harness::prng::{Prng, mix};
use serde::{Deserialize, Serialize};

/// What one thread does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) stages: Vec<Stage>,
}

/// One thing after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Stage {
    /// So many supersteps with an effect each.
    Chain(u32),
    /// Tasks that run at once.
    Spread(Vec<Part>),
    /// A question, and an effect once it is answered.
    Ask,
    /// Fails so often, with an effect before; is tried again soon.
    Flaky(u32),
    /// Fails once, and is tried again so late that the segment ends meanwhile.
    Patient,
    /// Takes so long, with an effect before and one after.
    Sleep(u64),
    /// Fails for good after an effect; its handler has one too.
    Broken,
    /// Fails for good after an effect, and nobody handles that.
    Fatal,
}

/// One of the tasks of a [`Stage::Spread`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) effects: u32,
    /// How often it fails after its first effect.
    pub(crate) fails: u32,
    /// It is tried again late.
    pub(crate) is_late: bool,
    pub(crate) asks: bool,
    /// How many tasks it sends out itself.
    pub(crate) leaves: u32,
}

/// What a program leaves behind.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Expected {
    /// What its tasks wrote, in order.
    pub(crate) done: Vec<String>,
    pub(crate) sum: u64,
    /// Every effect that must have happened.
    pub(crate) effects: BTreeSet<String>,
    pub(crate) fails: bool,
}

impl Program {
    /// The program with this number, of those that follow from a seed.
    pub(crate) fn random(seed: u64, number: u64) -> Self {
        let seed = mix(seed, &format!("program {number}"));
        let mut entropy = Entropy(Prng::new(seed));
        let mut stages: Vec<Stage> = (0..entropy.within(2, 6)).map(|_| entropy.stage()).collect();
        if entropy.chance(8) {
            stages.push(Stage::Fatal);
        }
        Self { seed, stages }
    }

    pub(crate) fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for (at, stage) in self.stages.iter().enumerate() {
            self.expect_stage(&mut expected, at, stage);
        }
        expected
    }

    fn expect_stage(&self, expected: &mut Expected, at: usize, stage: &Stage) {
        match stage {
            Stage::Chain(length) => {
                for n in 0..*length {
                    self.expect_task(expected, &format!("{at}.chain.{n}"), &["once"], None);
                }
            }
            Stage::Spread(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    let task = format!("{at}.part.{index}");
                    let effects = part.effect_names();
                    let effects: Vec<&str> = effects.iter().map(String::as_str).collect();
                    let question = part.asks.then_some(task.as_str());
                    self.expect_task(expected, &task, &effects, question);
                }
                for (index, part) in parts.iter().enumerate() {
                    for leaf in 0..part.leaves {
                        let task = format!("{at}.leaf.{index}.{leaf}");
                        self.expect_task(expected, &task, &["once"], None);
                    }
                }
            }
            Stage::Ask => {
                let task = format!("{at}.ask");
                self.expect_task(expected, &task, &["told"], Some(&task));
            }
            Stage::Flaky(_) => {
                self.expect_task(expected, &format!("{at}.flaky"), &["before", "after"], None);
            }
            Stage::Patient => {
                let task = format!("{at}.patient");
                self.expect_task(expected, &task, &["before", "after"], None);
            }
            Stage::Sleep(_) => {
                let task = format!("{at}.sleep");
                self.expect_task(expected, &task, &["before", "after"], None);
            }
            Stage::Broken => {
                // What a failed task did is not undone, and what it wrote is not written.
                expected.effects.insert(format!("{at}.broken/before"));
                self.expect_task(expected, &format!("{at}.handled"), &["once"], None);
            }
            Stage::Fatal => {
                expected.effects.insert(format!("{at}.fatal/before"));
                expected.fails = true;
            }
        }
    }

    fn expect_task(
        &self,
        expected: &mut Expected,
        task: &str,
        effects: &[&str],
        question: Option<&str>,
    ) {
        let mut sum = question.map_or(0, |question| answer_to(self.seed, question));
        for effect in effects {
            let key = format!("{task}/{effect}");
            sum += value_of(self.seed, &key);
            expected.effects.insert(key);
        }
        expected.done.push(format!("{task}={sum}"));
        expected.sum += sum;
    }
}

impl Part {
    /// Its effects, in the order in which it does them.
    pub(crate) fn effect_names(&self) -> Vec<String> {
        (0..self.effects).map(|n| n.to_string()).collect()
    }
}

/// What an effect gives.
pub(crate) fn value_of(seed: u64, key: &str) -> u64 {
    mix(seed, key) % 1_000
}

/// What a question is answered with.
pub(crate) fn answer_to(seed: u64, question: &str) -> u64 {
    mix(seed, &format!("answer to {question}")) % 1_000
}

/// Draws stages and their parts.
struct Entropy(Prng);

impl Entropy {
    fn within(&mut self, least: u32, most: u32) -> u32 {
        least + self.0.below(u64::from(most - least + 1)) as u32
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    fn stage(&mut self) -> Stage {
        match self.0.below(100) {
            0..25 => Stage::Chain(self.within(1, 6)),
            25..55 => Stage::Spread((0..self.within(1, 8)).map(|_| self.part()).collect()),
            55..67 => Stage::Ask,
            67..77 => Stage::Flaky(self.within(1, 2)),
            77..85 => Stage::Patient,
            85..93 => Stage::Sleep(u64::from(self.within(50, 800))),
            _ => Stage::Broken,
        }
    }

    fn part(&mut self) -> Part {
        Part {
            effects: self.within(1, 3),
            fails: match self.chance(15) {
                true => self.within(1, 2),
                false => 0,
            },
            is_late: self.chance(15),
            asks: self.chance(12),
            leaves: match self.chance(20) {
                true => self.within(1, 4),
                false => 0,
            },
        }
    }
}

#[test]
fn a_program_follows_from_its_seed_and_number() {
    assert_eq!(Program::random(1, 2), Program::random(1, 2));
    assert_ne!(Program::random(1, 2), Program::random(1, 3));
}

#[test]
fn programs_do_everything_there_is() {
    let programs: Vec<Program> = (0..50).map(|number| Program::random(1, number)).collect();
    let any = |holds: &dyn Fn(&Stage) -> bool| {
        programs
            .iter()
            .any(|program| program.stages.iter().any(holds))
    };
    assert!(any(&|stage| matches!(stage, Stage::Fatal)));
    assert!(any(&|stage| matches!(stage, Stage::Patient)));
    assert!(any(
        &|stage| matches!(stage, Stage::Spread(parts) if parts.iter().any(|part| part.asks))
    ));
    assert!(any(
        &|stage| matches!(stage, Stage::Spread(parts) if parts.iter().any(|part| part.leaves > 0))
    ));
}
