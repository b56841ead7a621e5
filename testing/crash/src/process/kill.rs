//! A process with effects is killed at random instants and started again, until its thread is finished.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use super::lab::{Lab, Place};
use super::ledger::{Line, acknowledged_again};
use super::tally::{Tally, percentile};
use super::{Found, Plan};
use harness::prng::{Prng, mix};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut kill = Kill {
        lab: Lab::new(plan)?,
        plan,
        tally: Tally::new("kill", plan.trials, KINDS),
        calm: Duration::ZERO,
        figures: Figures::default(),
    };
    kill.calm = kill.calm_run()?;
    for trial in 0..plan.trials {
        kill.trial(trial, &mut Prng::of_trial(plan.seed, trial))
            .with_context(|| format!("trial {trial}"))?;
        kill.tally.progress(trial + 1);
    }
    Ok(Found {
        violations: kill.tally.violations(),
        detail: kill.tally.detail(kill.figures.told(kill.calm)),
    })
}

struct Kill<'a> {
    lab: Lab,
    plan: &'a Plan,
    tally: Tally,
    /// How long a run takes that nobody disturbs, its process' start included.
    calm: Duration,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    kills: u64,
    started: u64,
    redone: u64,
    commit_us: Vec<u64>,
}

impl Figures {
    fn told(&mut self, calm: Duration) -> Json {
        json!({
            "kills": self.kills,
            "calm_run_ms": u64::try_from(calm.as_millis()).unwrap_or(u64::MAX),
            "effects_started": self.started,
            "effects_redone": self.redone,
            "redo_share": (self.redone as f64 / self.started.max(1) as f64 * 1e4).round() / 1e4,
            "body_end_to_commit_us_p50": percentile(&mut self.commit_us, 50),
            "body_end_to_commit_us_p99": percentile(&mut self.commit_us, 99),
        })
    }
}

impl Kill<'_> {
    /// The median of three.
    fn calm_run(&mut self) -> anyhow::Result<Duration> {
        let mut times = Vec::new();
        for run in 0..3 {
            let place = self.lab.fresh_place("calm")?;
            let begun = Instant::now();
            self.finish(&place, run)?;
            times.push(begun.elapsed());
        }
        self.lab.ledger.news()?;
        times.sort();
        Ok(times[1])
    }

    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let (place, seed) = (self.lab.fresh_place("kill")?, prng.next());
        let calm_us = u64::try_from(self.calm.as_micros())?.max(1);
        for _ in 0..=prng.below(KILLS_MAX) {
            let instant = Duration::from_micros(prng.below(calm_us));
            let mutant = self.plan.mutant.as_deref();
            let mut worker = self.lab.runner(&place, seed, mutant)?;
            if worker.ended_within(instant)?.is_none() {
                worker.kill()?;
                self.figures.kills += 1;
            }
            self.lab.ledger.settle()?;
        }
        let state = self.finish(&place, seed)?;
        let lines = self.lab.ledger.news()?;
        self.judge(trial, seed, &lines, &state);
        Ok(())
    }

    /// Runs the thread to its end, undisturbed, and gives its state.
    fn finish(&mut self, place: &Place, seed: u64) -> anyhow::Result<Json> {
        let mutant = self.plan.mutant.as_deref();
        let mut worker = self.lab.runner(place, seed, mutant)?;
        let line = worker.line()?;
        worker.ended_within(END_MAX)?.context("it does not end")?;
        self.lab.ledger.settle()?;
        match line.strip_prefix("finished ") {
            Some(state) => Ok(serde_json::from_str(state)?),
            None => bail!("the run did not finish: {line}"),
        }
    }

    fn judge(&mut self, trial: u64, seed: u64, lines: &[Line], state: &Json) {
        for key in acknowledged_again(lines) {
            self.tally.violation("acknowledged_step_again", trial, key);
        }
        for body in supersteps_again(lines) {
            self.tally
                .violation("acknowledged_superstep_again", trial, body);
        }
        for task in results_again(lines) {
            self.tally
                .violation("acknowledged_result_again", trial, task);
        }
        let mut starts: BTreeMap<&str, u64> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.phase == "start") {
            *starts.entry(&line.key).or_default() += 1;
        }
        let wanted: BTreeSet<String> = keys().collect();
        if !wanted.iter().map(String::as_str).eq(starts.keys().copied()) {
            self.tally
                .violation("effect_missing", trial, format!("{starts:?}"));
        }
        if *state != expected_state(seed) {
            self.tally
                .violation("wrong_state", trial, state.to_string());
        }
        self.figures.started += starts.values().sum::<u64>();
        self.figures.redone += starts.values().map(|count| count - 1).sum::<u64>();
        let latencies = lines.iter().filter(|line| line.phase == "latency");
        self.figures
            .commit_us
            .extend(latencies.map(|line| line.detail));
    }
}

/// Bodies that started after one of a later superstep: that one started, so theirs had been acknowledged.
fn supersteps_again(lines: &[Line]) -> Vec<String> {
    let mut newest = 0;
    let mut again = Vec::new();
    for line in lines.iter().filter(|line| line.phase == "body") {
        let rank = rank(&line.key);
        if rank < newest {
            again.push(line.key.clone());
        }
        newest = newest.max(rank);
    }
    again
}

/// Bodies that started although the result of their task was recorded.
fn results_again(lines: &[Line]) -> Vec<String> {
    let mut recorded = BTreeSet::new();
    let mut again = Vec::new();
    for line in lines {
        match line.phase.as_str() {
            "result-acked" => drop(recorded.insert(line.key.as_str())),
            "body" => {
                let task = line.key.rsplit('=').next().unwrap_or_default();
                if recorded.contains(task) {
                    again.push(line.key.clone());
                }
            }
            _ => {}
        }
    }
    again
}

/// The superstep of a body, from its name.
fn rank(body: &str) -> usize {
    ["first", "second", "part", "third", "fourth"]
        .iter()
        .position(|name| body.starts_with(name))
        .unwrap_or(0)
}

/// The nodes of the worker's graph, in the order in which their writes are applied.
pub(super) const NODES: [&str; 8] = [
    "first", "second", "part0", "part1", "part2", "part3", "third", "fourth",
];

pub(super) fn keys() -> impl Iterator<Item = String> {
    NODES
        .iter()
        .flat_map(|node| ["one", "two"].map(|step| format!("{node}/{step}")))
}

/// What the worker's graph leaves behind, whatever happened to its processes.
pub(super) fn expected_state(seed: u64) -> Json {
    let value = |node: &str, step: &str| mix(seed, &format!("{node}/{step}")) % 1_000;
    let done = NODES.map(|node| format!("{node} {} {}", value(node, "one"), value(node, "two")));
    json!({ "done": done })
}

const KILLS_MAX: u64 = 4;
const END_MAX: Duration = Duration::from_secs(60);
const KINDS: &[&str] = &[
    "acknowledged_step_again",
    "acknowledged_superstep_again",
    "acknowledged_result_again",
    "effect_missing",
    "wrong_state",
];
