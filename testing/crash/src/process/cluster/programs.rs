//! Random programs on a cluster whose workers, nodes and clients are killed: each ends as if nobody had been.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::super::tally::{Tally, percentile};
use super::super::{Found, Plan};
use super::clients::Clients;
use super::fleet::Fleet;
use super::lab::Lab;
use super::monkey::Monkey;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let lab = Lab::new("cluster", plan)?;
    let mut programs = Programs {
        fleet: lab.fleet(plan.mutant.as_deref())?,
        clients: lab.clients()?,
        lab,
        under_way: BTreeMap::new(),
        given: 0,
        ended: 0,
        tally: Tally::new("cluster", plan.trials, KINDS),
    };
    let mut monkey = Monkey::new(plan.seed);
    let begun = Instant::now();
    programs.run_all(plan.trials, &mut monkey)?;
    let lasted = begun.elapsed();
    let judged = programs.lab.judge(plan.trials, &monkey.figures.kills)?;
    tell(&mut programs.tally, &judged);
    let mut more = json!({
        "programs_ended": programs.ended,
        "programs_seconds": lasted.as_secs(),
        "workers_killed": monkey.figures.workers_killed,
        "nodes_killed": monkey.figures.nodes_killed,
        "clients_killed": monkey.figures.clients_killed,
        "whole_again_ms_max": percentile(&mut monkey.figures.whole_again_ms, 100),
    });
    for (name, figure) in judged.as_object().into_iter().flatten() {
        if name != "violations" {
            more[name] = figure.clone();
        }
    }
    Ok(Found {
        violations: programs.tally.violations(),
        detail: programs.tally.detail(more),
    })
}

/// What the judge found, in the tally.
pub(super) fn tell(tally: &mut Tally, judged: &Json) {
    for violation in judged["violations"].as_array().into_iter().flatten() {
        let kind = violation[0].as_str().unwrap_or_default();
        let kind = KINDS.iter().find(|known| **known == kind);
        let (number, what) = (violation[1].as_u64(), violation[2].as_str());
        tally.violation(
            kind.copied().unwrap_or("wrong_state"),
            number.unwrap_or(0),
            what.unwrap_or_default(),
        );
    }
    let slowest = judged["recovery_ms_p99"].as_u64().unwrap_or(u64::MAX);
    if slowest > RECOVERY_MS_MAX {
        tally.violation("slow_recovery", 0, format!("p99 {slowest} ms"));
    }
}

struct Programs {
    lab: Lab,
    fleet: Fleet,
    clients: Clients,
    /// Programs, and when they were given first.
    under_way: BTreeMap<u64, Instant>,
    given: u64,
    ended: u64,
    tally: Tally,
}

impl Programs {
    fn run_all(&mut self, trials: u64, monkey: &mut Monkey) -> anyhow::Result<()> {
        let mut next = Instant::now();
        while self.ended < trials {
            if self.given < trials && self.under_way.len() < AT_ONCE && Instant::now() >= next {
                self.give(self.given)?;
                self.given += 1;
                next = Instant::now() + PACE;
            }
            if let Some((tag, told)) = self.clients.next_within(TICK)? {
                self.told(&tag, &told)?;
            }
            if monkey.tick(&self.lab, &mut self.fleet)? {
                self.replace_clients()?;
            }
            self.give_up_the_stuck();
            self.tally.progress(self.ended);
        }
        Ok(())
    }

    fn give(&mut self, number: u64) -> anyhow::Result<()> {
        self.under_way.entry(number).or_insert_with(Instant::now);
        self.clients
            .tell(&number.to_string(), &format!("program {number}"))
    }

    fn told(&mut self, tag: &str, told: &Json) -> anyhow::Result<()> {
        let number = tag.parse()?;
        if self.under_way.remove(&number).is_none() {
            // It was given up.
            return Ok(());
        }
        self.ended += 1;
        match told["error"].as_str() {
            Some("stuck") => self.tally.violation("stuck", number, "it does not end"),
            Some(error) => self.tally.violation("refused", number, error),
            None => {}
        }
        Ok(())
    }

    fn give_up_the_stuck(&mut self) {
        let is_stuck = |(number, since): (&u64, &Instant)| {
            let is_stuck = since.elapsed() > STUCK;
            is_stuck.then_some(*number)
        };
        for number in self
            .under_way
            .iter()
            .filter_map(is_stuck)
            .collect::<Vec<_>>()
        {
            self.under_way.remove(&number);
            self.ended += 1;
            let what = format!("it has not ended after {STUCK:?}");
            self.tally.violation("stuck", number, what);
        }
    }

    /// The orders go on; whoever asks for them again is told what became of them.
    fn replace_clients(&mut self) -> anyhow::Result<()> {
        let new = self.lab.clients()?;
        std::mem::replace(&mut self.clients, new).kill()?;
        for number in self.under_way.keys().copied().collect::<Vec<_>>() {
            self.give(number)?;
        }
        Ok(())
    }
}

/// How many programs run at the same time.
const AT_ONCE: usize = 32;
/// So slowly that kills fall among them.
const PACE: Duration = Duration::from_millis(250);
const TICK: Duration = Duration::from_millis(5);
/// A program takes a few seconds, and nothing may keep it for longer than this.
const STUCK: Duration = Duration::from_secs(120);
const RECOVERY_MS_MAX: u64 = 30_000;
pub(super) const KINDS: &[&str] = &[
    "acknowledged_again",
    "effect_lost",
    "effect_not_planned",
    "wrong_end",
    "wrong_state",
    "stuck",
    "refused",
    "slow_recovery",
];
