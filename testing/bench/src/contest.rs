//! The same work, done by several sides in turns.
//!
//! In every round each side has its turn, so whatever else the machine does hits all of them. What counts is the
//! median of the rounds; the least and the most are kept beside it.

use anyhow::Context;
use serde_json::{Value as Json, json};

use super::lab::Lab;
use super::report::rounded;
use super::side::{Round, Running, Side};

/// What is done, and by whom.
#[derive(Debug)]
pub(super) struct Contest<'a> {
    /// What people call it.
    pub(super) title: String,
    /// What the sides call it.
    pub(super) work: &'static str,
    pub(super) store: &'static str,
    pub(super) settings: Vec<String>,
    pub(super) rounds: usize,
    pub(super) measure: Measure,
    pub(super) sides: &'a [Side],
}

/// What is made of a round.
#[derive(Debug, Clone, Copy)]
pub(super) enum Measure {
    /// Supersteps a second, and what each costs the processor.
    Speed,
    /// How long one run takes.
    Run,
    /// How long most answers take, and nearly all.
    Answers,
    /// What the store grew by.
    Bytes,
    /// What the store grew by for each thread.
    BytesEach,
}

/// One figure of one side.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) title: String,
    pub(super) store: &'static str,
    pub(super) side: &'static str,
    pub(super) version: String,
    pub(super) figure: &'static str,
    /// In the order of the rounds.
    rounds: Vec<f64>,
}

pub(super) const STEPS_PER_SECOND: &str = "supersteps/s";
pub(super) const CPU_PER_STEP: &str = "CPU us/superstep";
pub(super) const RUNS_PER_SECOND: &str = "runs/s";
pub(super) const CPU_PER_RUN: &str = "worker CPU us/run";
pub(super) const POSTGRES_CPU_PER_RUN: &str = "PostgreSQL CPU us/run";
pub(super) const RESTATE_CPU_PER_RUN: &str = "Restate CPU us/run";
pub(super) const MS_PER_RUN: &str = "ms/run";
pub(super) const P50: &str = "p50 ms";
pub(super) const P99: &str = "p99 ms";
pub(super) const BYTES: &str = "bytes";
pub(super) const BYTES_EACH: &str = "bytes/thread";

impl Contest<'_> {
    /// Starts all sides that the lab has, and lets each have its turn in every round.
    pub(super) fn hold(&self, lab: &Lab) -> anyhow::Result<Vec<Measured>> {
        let sides = self.sides.iter().filter(|side| lab.has(**side));
        let mut running = sides
            .map(|side| Ok((*side, lab.start(*side, self)?)))
            .collect::<anyhow::Result<Vec<(Side, Running)>>>()?;
        let mut measured = self.blank(&running);
        for round in 1..=self.rounds {
            for (at, (side, running)) in running.iter_mut().enumerate() {
                let found = running
                    .round()
                    .with_context(|| format!("{}, {}: {}", self.title, self.store, side.label))?;
                let figures = self.measure.figures(&found);
                self.tell(round, side.label, &figures);
                for ((_, figure), measured) in figures.iter().zip(&mut measured[at]) {
                    measured.push(*figure);
                }
            }
        }
        drop(running);
        lab.clear()?;
        Ok(measured.concat())
    }

    /// For every side a list of its figures, still without any round.
    fn blank(&self, running: &[(Side, Running)]) -> Vec<Vec<Measured>> {
        let of_side = |(side, running): &(Side, Running)| {
            let figures = self.measure.names().iter().copied();
            figures
                .map(|figure| {
                    let version = &running.version;
                    Measured::new(&self.title, self.store, *side, version, figure)
                })
                .collect()
        };
        running.iter().map(of_side).collect()
    }

    fn tell(&self, round: usize, side: &str, figures: &[(&str, f64)]) {
        let figures: Vec<String> = figures
            .iter()
            .map(|(name, figure)| format!("{} {name}", rounded(*figure)))
            .collect();
        let (title, store, of) = (&self.title, self.store, self.rounds);
        eprintln!(
            "{title}, {store}, round {round} of {of}: {side}: {}",
            figures.join(", ")
        );
    }
}

impl Measure {
    fn names(self) -> &'static [&'static str] {
        match self {
            Measure::Speed => &[STEPS_PER_SECOND, CPU_PER_STEP],
            Measure::Run => &[MS_PER_RUN],
            Measure::Answers => &[P50, P99],
            Measure::Bytes => &[BYTES, STEPS_PER_SECOND],
            Measure::BytesEach => &[BYTES_EACH],
        }
    }

    fn figures(self, round: &Round) -> Vec<(&'static str, f64)> {
        let bytes = round.bytes.unwrap_or(f64::NAN);
        let ms = |part: f64| quantile(&round.times_s, part) * 1e3;
        let figures = match self {
            Measure::Speed => vec![round.units / round.wall_s, round.cpu_s / round.units * 1e6],
            Measure::Run => vec![round.wall_s / round.units * 1e3],
            Measure::Answers => vec![ms(0.5), ms(0.99)],
            Measure::Bytes => vec![bytes, round.units / round.wall_s],
            Measure::BytesEach => vec![bytes / round.units],
        };
        self.names().iter().copied().zip(figures).collect()
    }
}

impl Measured {
    /// Still without any round.
    pub(super) fn new(
        title: &str,
        store: &'static str,
        side: Side,
        version: &str,
        figure: &'static str,
    ) -> Self {
        Self {
            title: title.to_owned(),
            store,
            side: side.label,
            version: version.to_owned(),
            figure,
            rounds: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, figure: f64) {
        self.rounds.push(figure);
    }

    pub(super) fn median(&self) -> f64 {
        quantile(&self.rounds, 0.5)
    }

    pub(super) fn to_json(&self) -> Json {
        json!({
            "work": self.title,
            "store": self.store,
            "side": self.side,
            "figure": self.figure,
            "median": rounded(self.median()),
            "min": rounded(quantile(&self.rounds, 0.0)),
            "max": rounded(quantile(&self.rounds, 1.0)),
            "rounds": self.rounds.len(),
        })
    }
}

/// The value below which that part of all lies.
pub(super) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * part) as usize;
    let last = sorted.len().saturating_sub(1);
    sorted.get(rank.min(last)).copied().unwrap_or(f64::NAN)
}

#[test]
fn the_middle_of_five_is_the_third() {
    let values = [5.0, 1.0, 4.0, 2.0, 3.0];
    assert_eq!(
        [0.0, 0.5, 1.0].map(|part| quantile(&values, part)),
        [1.0, 3.0, 5.0]
    );
    assert!(quantile(&[], 0.5).is_nan());
}
