//! Five processes do to one thread whatever can be done, and are killed and replaced all the while: its history is one
//! chain, with everything in it that anybody was told of, once.

mod history;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value as Json, json};

use super::child::Process;
use super::lab::{Lab, Place, inspect};
use super::tally::Tally;
use super::{Found, Plan};
use harness::prng::Prng;
use history::{History, KINDS};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut chain = Chain {
        lab: Lab::new(plan)?,
        plan,
        tally: Tally::new("chain", plan.trials, KINDS),
        processes: 0,
        figures: Figures::default(),
    };
    for trial in 0..plan.trials {
        chain
            .trial(trial, &mut Prng::of_trial(plan.seed, trial))
            .with_context(|| format!("trial {trial}"))?;
        chain.tally.progress(trial + 1);
    }
    Ok(Found {
        violations: chain.tally.violations(),
        detail: chain.tally.detail(chain.figures.told(plan)),
    })
}

struct Chain<'a> {
    lab: Lab,
    plan: &'a Plan,
    tally: Tally,
    /// How many were started: each has a number of its own.
    processes: u64,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    kills: u64,
    entries: u64,
    claims: u64,
    applied: BTreeMap<String, u64>,
    refused: u64,
    effects: u64,
    late_calls: u64,
}

impl Figures {
    fn told(&self, plan: &Plan) -> Json {
        json!({
            "seconds_each": plan.seconds,
            "processes": CONTENDERS,
            "kills": self.kills,
            "entries": self.entries,
            "claims": self.claims,
            "applied": self.applied,
            "refused": self.refused,
            "effects_acknowledged": self.effects,
            "effects_started_by_former_owners": self.late_calls,
        })
    }
}

impl Chain<'_> {
    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let place = self.lab.fresh_place("chain")?;
        self.contend(trial, &place, prng)?;
        self.lab.ledger.settle()?;
        let stored = self.bring_to_rest(trial, &place)?;
        let lines = self.lab.ledger.news()?;
        self.judge(trial, &History::new(&lines, &stored));
        Ok(())
    }

    /// Lets them at it for as long as was asked, one killed and replaced every now and then, and all at the end.
    fn contend(&mut self, trial: u64, place: &Place, prng: &mut Prng) -> anyhow::Result<()> {
        let mut contenders = Vec::new();
        for _ in 0..CONTENDERS {
            contenders.push(self.contender(place)?);
        }
        for contender in &contenders {
            contender.line()?;
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(self.plan.seconds) {
            std::thread::sleep(Duration::from_millis(100 + prng.below(900)));
            let victim = usize::try_from(prng.below(CONTENDERS))?;
            self.kill(trial, &mut contenders[victim])?;
            contenders[victim] = self.contender(place)?;
        }
        for contender in &mut contenders {
            self.kill(trial, contender)?;
        }
        Ok(())
    }

    fn kill(&mut self, trial: u64, contender: &mut Process) -> anyhow::Result<()> {
        if let Some(status) = contender.ended_within(Duration::ZERO)? {
            let what = format!("a process ended by itself, {status}");
            self.tally.violation("unexpected_error", trial, what);
        }
        self.figures.kills += 1;
        contender.kill()
    }

    fn contender(&mut self, place: &Place) -> anyhow::Result<Process> {
        self.processes += 1;
        let mutant = self.plan.mutant.as_deref();
        let mut command = self.lab.command("contend", &place.store, mutant);
        let number = self.processes.to_string();
        Process::spawn(command.args(["--thread", &place.thread, "--seed", &number]))
    }

    /// Somebody goes on with what the killed ones left, and looks at what there is then.
    fn bring_to_rest(&mut self, trial: u64, place: &Place) -> anyhow::Result<Json> {
        let mut keeper = self.lab.server(&place.store, None)?;
        keeper.tell(&format!("rest {}", place.thread))?;
        let rests = keeper.line()?;
        if rests != "rests" {
            self.tally.violation("unfinished", trial, rests);
        }
        inspect(&mut keeper, "contested", &place.thread)
    }

    fn judge(&mut self, trial: u64, history: &History<'_>) {
        for (kind, what) in history.violations() {
            self.tally.violation(kind, trial, what);
        }
        self.figures.entries += history.entries;
        self.figures.claims += history.of("claimed").count() as u64;
        self.figures.refused += history.of("refused").count() as u64;
        self.figures.effects += history.of("acked").count() as u64;
        self.figures.late_calls += history.late_calls();
        for mark in history.of("applied") {
            let kind = mark.key.split(':').next().unwrap_or_default();
            *self.figures.applied.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

const CONTENDERS: u64 = 5;
