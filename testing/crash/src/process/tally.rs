//! Counts what must never happen, remembers the first few in words, and says how far the trials are.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

#[derive(Debug)]
pub(super) struct Tally {
    name: &'static str,
    trials: u64,
    counts: BTreeMap<&'static str, u64>,
    first: Vec<String>,
    begun: Instant,
    told: Instant,
}

impl Tally {
    /// With these counted from 0, so that a report says what was looked for.
    pub(super) fn new(name: &'static str, trials: u64, kinds: &[&'static str]) -> Self {
        Self {
            name,
            trials,
            counts: kinds.iter().map(|kind| (*kind, 0)).collect(),
            first: Vec::new(),
            begun: Instant::now(),
            told: Instant::now(),
        }
    }

    /// Something that must never happen.
    pub(super) fn violation(&mut self, kind: &'static str, trial: u64, what: impl Into<String>) {
        *self.counts.entry(kind).or_default() += 1;
        if self.first.len() < SHOWN {
            let told = format!("trial {trial}: {kind}: {}", what.into());
            eprintln!("{}: {told}", self.name);
            self.first.push(told);
        }
    }

    pub(super) fn violations(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn progress(&mut self, done: u64) {
        if self.told.elapsed() >= EVERY || done == self.trials {
            self.told = Instant::now();
            eprintln!(
                "{}: {done} of {} trials, {} violations, {:.0} s",
                self.name,
                self.trials,
                self.violations(),
                self.begun.elapsed().as_secs_f64()
            );
        }
    }

    /// What was found, with further figures of the test.
    pub(super) fn detail(&self, mut more: Json) -> Json {
        more["violations"] = json!(self.counts);
        more["first"] = json!(self.first);
        more["seconds"] = json!(self.begun.elapsed().as_secs());
        more
    }
}

/// A percentile of a list, by the nearest rank; 0 if there is nothing.
pub(super) fn percentile(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0)
}

const EVERY: Duration = Duration::from_secs(2);
const SHOWN: usize = 5;

#[test]
fn a_percentile_is_a_value_of_the_list() {
    assert_eq!(percentile(&mut [], 99), 0);
    assert_eq!(percentile(&mut [7], 50), 7);
    let mut hundred: Vec<u64> = (1..=100).rev().collect();
    assert_eq!(percentile(&mut hundred, 99), 99);
}
