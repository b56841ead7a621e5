//! Two to eight clients answer one question at the same moment, each by a way of its own into the cluster: one wins.

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::{Value as Json, json};

use super::super::tally::Tally;
use super::super::{Found, Plan};
use super::clients::Clients;
use super::lab::Lab;
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let lab = Lab::new("race", plan)?;
    let _fleet = lab.fleet(plan.mutant.as_deref())?;
    let mut race = Race {
        clients: lab.clients()?,
        tally: Tally::new("race", plan.trials, KINDS),
        answers: 0,
    };
    for trial in 0..plan.trials {
        race.trial(trial, &mut Prng::of_trial(plan.seed, trial))
            .with_context(|| format!("trial {trial}"))?;
        race.tally.progress(trial + 1);
    }
    Ok(Found {
        violations: race.tally.violations(),
        detail: race.tally.detail(json!({ "answers": race.answers })),
    })
}

struct Race {
    clients: Clients,
    tally: Tally,
    answers: u64,
}

impl Race {
    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let thread = format!("race-{trial}");
        let paused = self.clients.ask(&format!("talk {thread} 1"))?;
        let question = paused["open"][0].as_str();
        let question = question.with_context(|| format!("it did not pause: {paused}"))?;
        let racers = 2 + prng.below(RACERS_MAX - 1);
        self.answers += racers;
        let told = self
            .clients
            .ask(&format!("race {thread} {question} {racers}"))?;
        self.judge(trial, &thread, &told)
    }

    fn judge(&mut self, trial: u64, thread: &str, told: &Json) -> anyhow::Result<()> {
        let told = told
            .as_array()
            .with_context(|| format!("no race: {told}"))?;
        let mut winners = Vec::new();
        for (racer, line) in told.iter().enumerate() {
            if line["outcome"] == "finished" {
                winners.push(racer);
            } else if line["refused"] != "checkpoint-not-open" {
                self.tally
                    .violation("not_told", trial, format!("racer {racer}: {line}"));
            }
        }
        if winners.len() != 1 {
            self.tally.violation("winners", trial, format!("{told:?}"));
        }
        let effects = Effects::of(&self.clients.ask(&format!("effects {thread}"))?);
        let winner = winners.first().copied().unwrap_or(usize::MAX);
        if effects.begun != [format!("round 0={winner}")] || !effects.again.is_empty() {
            self.tally
                .violation("effects", trial, format!("{effects:?}, winner {winner}"));
        }
        let stored = self.clients.ask(&format!("look talk {thread}"))?;
        let state = &stored["state"];
        if state["answers"] != json!([winner]) || state["acted_on"] != json!([winner]) {
            self.tally.violation("state", trial, stored.to_string());
        }
        Ok(())
    }
}

/// What the ledger holds of a thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Each once, in the order in which they first began.
    pub(super) begun: Vec<String>,
    /// Those that began although they had been acknowledged.
    pub(super) again: Vec<String>,
    /// How many began once more because whoever did them was cut off before they were acknowledged.
    pub(super) redone: u64,
}

impl Effects {
    pub(super) fn of(lines: &Json) -> Self {
        let mut effects = Self::default();
        let mut acked = BTreeSet::new();
        for line in lines.as_array().into_iter().flatten() {
            let key = line[1].as_str().unwrap_or_default().to_owned();
            match line[0].as_str() {
                Some("acked") => drop(acked.insert(key)),
                Some("start") if acked.contains(&key) => effects.again.push(key),
                Some("start") if effects.begun.contains(&key) => effects.redone += 1,
                Some("start") => effects.begun.push(key),
                _ => {}
            }
        }
        effects
    }
}

const RACERS_MAX: u64 = 8;
const KINDS: &[&str] = &["winners", "not_told", "effects", "state"];

#[test]
fn only_what_was_acknowledged_before_began_again() {
    let lines = json!([
        ["start", "a"],
        ["start", "a"],
        ["acked", "a"],
        ["start", "b"]
    ]);
    let effects = Effects::of(&lines);
    assert_eq!((effects.begun.len(), effects.redone), (2, 1));
    assert!(effects.again.is_empty());
    let lines = json!([["start", "a"], ["acked", "a"], ["start", "a"]]);
    assert_eq!(Effects::of(&lines).again, ["a"]);
}
