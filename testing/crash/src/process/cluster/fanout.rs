//! A superstep of a thousand tasks on two workers: both run some, it is joined once, and a worker that dies in the middle
//! takes nothing along that was stored.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use super::super::tally::{Tally, percentile};
use super::super::{Found, Plan};
use super::clients::Clients;
use super::fleet::Fleet;
use super::lab::Lab;
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let lab = Lab::new("fanout", plan)?;
    let mut fanout = Fanout {
        fleet: lab.fleet(plan.mutant.as_deref())?,
        clients: lab.clients()?,
        lab,
        tally: Tally::new("fanout", plan.trials, KINDS),
        figures: Figures::default(),
    };
    for trial in 0..plan.trials {
        let mut prng = Prng::of_trial(plan.seed, trial);
        // In turn, calm ones first.
        let is_calm = trial % 2 == 0;
        fanout
            .trial(trial, is_calm, &mut prng)
            .with_context(|| format!("trial {trial}"))?;
        fanout.tally.progress(trial + 1);
    }
    let figures = fanout.figures.told();
    Ok(Found {
        violations: fanout.tally.violations(),
        detail: fanout.tally.detail(figures),
    })
}

struct Fanout {
    lab: Lab,
    fleet: Fleet,
    clients: Clients,
    tally: Tally,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    calm_ms: Vec<u64>,
    killed_ms: Vec<u64>,
    stored_at_kill: Vec<u64>,
    redone: u64,
    by_worker: BTreeMap<String, u64>,
}

impl Figures {
    fn told(&mut self) -> Json {
        json!({
            "tasks": TASKS,
            "kills": self.stored_at_kill.len(),
            "results_stored_at_kills": self.stored_at_kill,
            "tasks_by_worker": self.by_worker,
            "effects_redone": self.redone,
            "calm_ms_p50": percentile(&mut self.calm_ms, 50),
            "killed_ms_p50": percentile(&mut self.killed_ms, 50),
            "killed_ms_max": percentile(&mut self.killed_ms, 100),
        })
    }
}

impl Fanout {
    fn trial(&mut self, trial: u64, is_calm: bool, prng: &mut Prng) -> anyhow::Result<()> {
        let thread = format!("wide-{trial}");
        let begun = Instant::now();
        self.clients
            .tell(&thread, &format!("wide {thread} {TASKS}"))?;
        if !is_calm {
            let stored = self.kill_in_the_middle(&thread, prng)?;
            self.figures.stored_at_kill.push(stored);
        }
        let told = self.clients.wait_for(&thread)?;
        let took = u64::try_from(begun.elapsed().as_millis())?;
        match is_calm {
            true => self.figures.calm_ms.push(took),
            false => self.figures.killed_ms.push(took),
        }
        self.judge(trial, &thread, &told)
    }

    /// Kills a worker once some of the results are stored and others are not. Says how many were, after it was gone.
    fn kill_in_the_middle(&mut self, thread: &str, prng: &mut Prng) -> anyhow::Result<u64> {
        let enough = 100 + prng.below(400);
        let begun = Instant::now();
        while self.stored(thread)? < enough {
            if begun.elapsed() > MIDDLE_MAX {
                bail!("the results do not come");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let place = prng.below(2) as usize;
        self.fleet.kill(place)?;
        let stored = self.stored(thread)?;
        self.fleet.start_again(&self.lab, place)?;
        if stored == 0 || stored >= TASKS {
            bail!("{stored} of {TASKS} results were stored when a worker died: not in the middle");
        }
        Ok(stored)
    }

    fn stored(&mut self, thread: &str) -> anyhow::Result<u64> {
        let stored = self.clients.ask(&format!("stored {thread}"))?;
        stored.as_u64().with_context(|| stored.to_string())
    }

    fn judge(&mut self, trial: u64, thread: &str, told: &Json) -> anyhow::Result<()> {
        let squares: Vec<u64> = (0..TASKS).map(|n| n * n).collect();
        let joined: u64 = squares.iter().sum();
        let state = &told["state"];
        if told["outcome"] != "finished" || state["squares"] != json!(squares) {
            self.tally
                .violation("tasks_lost", trial, told["outcome"].to_string());
        }
        if state["joined"] != json!([joined]) {
            self.tally
                .violation("joined", trial, state["joined"].to_string());
        }
        let lines = self.clients.ask(&format!("effects {thread}"))?;
        self.judge_effects(trial, &lines);
        Ok(())
    }

    fn judge_effects(&mut self, trial: u64, lines: &Json) {
        let mut acked: BTreeMap<&str, u64> = BTreeMap::new();
        let mut workers: BTreeMap<String, u64> = BTreeMap::new();
        for line in lines.as_array().into_iter().flatten() {
            let (key, worker) = (
                line[1].as_str().unwrap_or_default(),
                line[2].as_str().unwrap_or_default(),
            );
            if line[0] == "acked" {
                *acked.entry(key).or_default() += 1;
                continue;
            }
            if acked.contains_key(key) {
                self.tally.violation("acknowledged_again", trial, key);
            }
            let place = worker.split('.').next().unwrap_or_default().to_owned();
            *workers.entry(place).or_default() += 1;
        }
        if acked.len() as u64 != TASKS + 1 {
            let what = format!("{} of {} effects", acked.len(), TASKS + 1);
            self.tally.violation("tasks_lost", trial, what);
        }
        if workers.len() < 2 {
            self.tally
                .violation("one_worker", trial, format!("{workers:?}"));
        }
        let started: u64 = workers.values().sum();
        self.figures.redone += started.saturating_sub(TASKS + 1);
        for (worker, tasks) in workers {
            *self.figures.by_worker.entry(worker).or_default() += tasks;
        }
    }
}

const TASKS: u64 = 1_000;
const MIDDLE_MAX: Duration = Duration::from_secs(60);
const KINDS: &[&str] = &["tasks_lost", "joined", "acknowledged_again", "one_worker"];
