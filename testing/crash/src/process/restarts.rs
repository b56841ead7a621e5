//! A PostgreSQL server that is stopped and killed while processes run threads on it: nobody notices.
//!
//! The server is this command's own. It is down for up to two seconds at a time; every run must end as if it had never
//! been, every effect must have been done once, and every history must be one chain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use super::child::Process;
use super::database::{Address, Database};
use super::kill::{expected_state, keys};
use super::lab::{Lab, inspect};
use super::outage::DatabaseOutages;
use super::tally::{Tally, percentile};
use super::{Backend, Found, Plan};
use harness::prng::Prng;
use services::{Cluster, PrivateCluster};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    if plan.backend != Backend::Postgres {
        bail!("`crash restarts` restarts PostgreSQL: leave `--backend` out");
    }
    let server = Cluster::private("restarts")?;
    let mut lab = Lab::with(Database::on_server(&server.url()?))?;
    let store = lab.fresh_place("restarts")?.store;
    let mut restarts = Restarts {
        tally: Tally::new("restarts", plan.trials, KINDS),
        lab,
        plan,
        store,
        figures: Figures::default(),
    };
    restarts.run_and_restart(&server)?;
    restarts.judge()?;
    Ok(Found {
        violations: restarts.tally.violations(),
        detail: restarts.tally.detail(restarts.figures.told(plan)),
    })
}

struct Restarts<'a> {
    lab: Lab,
    plan: &'a Plan,
    store: Address,
    tally: Tally,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    outages: DatabaseOutages,
    /// Writes whose outcome was not known, by what they were.
    unanswered: BTreeMap<String, u64>,
    lasted: Duration,
    ended: u64,
    effects: u64,
}

impl Figures {
    fn told(&mut self, plan: &Plan) -> Json {
        json!({
            "runs_ended": self.ended,
            "processes": WORKERS,
            "seconds_between_restarts": [plan.every.start, plan.every.end],
            "restarts": self.outages.fast + self.outages.immediate,
            "restarts_fast": self.outages.fast,
            "restarts_immediate": self.outages.immediate,
            "away_ms_p50": percentile(&mut self.outages.away_ms, 50),
            "away_ms_max": percentile(&mut self.outages.away_ms, 100),
            "writes_without_an_answer": self.unanswered,
            "runs_seconds": self.lasted.as_secs(),
            "effects": self.effects,
        })
    }
}

impl Restarts<'_> {
    /// The runs, and the restarts for as long as they last.
    fn run_and_restart(&mut self, server: &PrivateCluster) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut workers = Vec::new();
        for worker in 0..WORKERS {
            workers.push(self.worker(worker)?);
        }
        for worker in &workers {
            worker.line()?;
        }
        let prng = &mut Prng::of_trial(self.plan.seed, 0);
        while !all_ended_within(&mut workers, DatabaseOutages::gap(self.plan, prng))? {
            self.figures.outages.restart("restarts", server, prng)?;
        }
        self.figures.lasted = begun.elapsed();
        for (worker, process) in (0..).zip(&workers) {
            for _ in 0..self.runs_of(worker) {
                let line = process.line()?;
                self.ended(&line)?;
            }
        }
        Ok(())
    }

    fn worker(&self, worker: u64) -> anyhow::Result<Process> {
        let mutant = self.plan.mutant.as_deref();
        let mut command = self.lab.command("runs", &self.store, mutant);
        let runs = self.runs_of(worker).to_string();
        let seed = self.seed_of(worker).to_string();
        let pace_us = (1_000_000 * WORKERS / RUNS_PER_SECOND).to_string();
        command.args(["--thread", &worker.to_string(), "--runs", &runs]);
        command.args(["--seed", &seed, "--pace-us", &pace_us]);
        Process::spawn(&mut command)
    }

    fn runs_of(&self, worker: u64) -> u64 {
        let runs = self.plan.trials;
        runs / WORKERS + u64::from(worker < runs % WORKERS)
    }

    /// Far enough apart that no two runs share one.
    fn seed_of(&self, worker: u64) -> u64 {
        (self.plan.seed >> 8) + worker * self.plan.trials
    }

    /// `ended THREAD ok`, or `ended THREAD WHY`.
    fn ended(&mut self, line: &str) -> anyhow::Result<()> {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let ["ended", thread, how] = words.as_slice() else {
            bail!("a worker said `{line}`");
        };
        if *how != "ok" {
            self.tally.violation("failed", number(thread), *how);
        }
        self.figures.ended += 1;
        Ok(())
    }

    /// What the ledger and the store say of every run.
    fn judge(&mut self) -> anyhow::Result<()> {
        self.lab.ledger.settle()?;
        let mut effects: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for line in self.lab.ledger.news()? {
            let counts = match line.phase.as_str() {
                "start" => effects.entry(line.thread).or_default(),
                "unanswered" => &mut self.figures.unanswered,
                _ => continue,
            };
            *counts.entry(line.key).or_default() += 1;
        }
        let mut server = self.lab.server(&self.store, None)?;
        for worker in 0..WORKERS {
            for run in 0..self.runs_of(worker) {
                let expected = Expected::of(worker, run, self.seed_of(worker) + run);
                let done = effects.remove(&expected.thread).unwrap_or_default();
                self.figures.effects += done.values().sum::<u64>();
                let stored = inspect(&mut server, expected.graph, &expected.thread)
                    .with_context(|| expected.thread.clone())?;
                self.compare(&expected, &done, &stored);
            }
        }
        Ok(())
    }

    fn compare(&mut self, expected: &Expected, done: &BTreeMap<String, u64>, stored: &Json) {
        let trial = number(&expected.thread);
        for (key, times) in &expected.effects {
            let what = || format!("{} {key}", expected.thread);
            match done.get(key).copied().unwrap_or(0) {
                found if found < *times => self.tally.violation("effect_lost", trial, what()),
                found if found > *times => self.tally.violation("effect_doubled", trial, what()),
                _ => {}
            }
        }
        let kind = match (&stored["fault"], &stored["state"]) {
            (Json::Null, state) if *state == expected.state => return,
            (Json::Null, _) => "wrong_state",
            _ => "history",
        };
        self.tally
            .violation(kind, trial, format!("{}: {stored}", expected.thread));
    }
}

/// What a run leaves behind, however often the server was away.
struct Expected {
    thread: String,
    graph: &'static str,
    state: Json,
    /// Each effect, and how often it is done: once, and once more by a thread that was forked before it.
    effects: BTreeMap<String, u64>,
}

impl Expected {
    /// Threads are named as the worker's `runs` names them.
    fn of(worker: u64, run: u64, seed: u64) -> Self {
        let act = |times| BTreeMap::from([("act".to_owned(), times)]);
        let verdict = json!({ "answer": run, "acted_on": run });
        let (kind, graph, state, effects) = match run % 3 {
            0 => {
                let once = keys().map(|key| (key, 1)).collect();
                ("effects", "effects", expected_state(seed), once)
            }
            1 => ("question", "question", verdict, act(1)),
            _ => ("edited", "question", verdict, act(2)),
        };
        Self {
            thread: format!("{worker}-{kind}-{run}"),
            graph,
            state,
            effects,
        }
    }
}

/// The run's number stands last in its thread's name.
fn number(thread: &str) -> u64 {
    let number = thread.rsplit('-').next().unwrap_or_default();
    number.parse().unwrap_or(0)
}

fn all_ended_within(workers: &mut [Process], time: Duration) -> anyhow::Result<bool> {
    let begun = Instant::now();
    for worker in workers {
        let left = time.saturating_sub(begun.elapsed());
        if worker.ended_within(left)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

const WORKERS: u64 = 2;
/// So few that many restarts fall into them: 5,000 runs take more than eight minutes.
const RUNS_PER_SECOND: u64 = 10;
const KINDS: &[&str] = &[
    "failed",
    "effect_lost",
    "effect_doubled",
    "wrong_state",
    "history",
];
