//! Workers are replaced by another version of the program and back, one after the other, while programs run.
//!
//! Each trial is one roll forward and one back. Threads that wait in a node which both versions have go on with whichever is
//! there. Those that wait in a node which only the old one has are left alone by the new one, which says why, and go on when
//! the old one is back.

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::{Value as Json, json};

use super::super::tally::Tally;
use super::super::{Found, Plan};
use super::clients::Clients;
use super::fleet::{Fleet, NEW, OLD};
use super::lab::Lab;
use super::programs;
use super::race::Effects;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let lab = Lab::new("upgrade", plan)?;
    let mut upgrade = Upgrade {
        fleet: lab.fleet(plan.mutant.as_deref())?,
        clients: lab.clients()?,
        lab,
        tally: Tally::new("upgrade", plan.trials, KINDS),
        programs: 0,
        parked: 0,
        refused: 0,
    };
    for trial in 0..plan.trials {
        upgrade
            .trial(trial)
            .with_context(|| format!("trial {trial}"))?;
        upgrade.tally.progress(trial + 1);
    }
    let judged = upgrade.lab.judge(upgrade.programs, &[])?;
    programs::tell(&mut upgrade.tally, &judged);
    let figures = json!({
        "rolls": plan.trials * 2,
        "programs": upgrade.programs,
        "threads_gone_on_with_by_the_other_version": upgrade.parked,
        "orders_refused_as_node_gone": upgrade.refused,
        "effects_started": judged["effects_started"],
        "effects_redone": judged["effects_redone"],
        "effects_by_worker": judged["effects_by_worker"],
    });
    Ok(Found {
        violations: upgrade.tally.violations(),
        detail: upgrade.tally.detail(figures),
    })
}

struct Upgrade {
    lab: Lab,
    fleet: Fleet,
    clients: Clients,
    tally: Tally,
    programs: u64,
    parked: u64,
    refused: u64,
}

/// A thread that waits for an answer.
struct Parked {
    thread: String,
    question: String,
}

impl Upgrade {
    fn trial(&mut self, trial: u64) -> anyhow::Result<()> {
        let main = self.park(trial, "main")?;
        let side = self.park(trial, "side")?;
        self.roll(NEW)?;
        for parked in &main {
            self.expect_seen(trial, parked, &["ask", "extra"])?;
        }
        for parked in &side {
            self.expect_refused(trial, parked)?;
        }
        let main = self.park(trial, "back")?;
        self.roll(OLD)?;
        for parked in &main {
            self.expect_seen(trial, parked, &["ask"])?;
        }
        for parked in &side {
            self.expect_seen(trial, parked, &["side"])?;
        }
        Ok(())
    }

    fn park(&mut self, trial: u64, way: &str) -> anyhow::Result<Vec<Parked>> {
        (0..PARKED)
            .map(|n| {
                let thread = format!("{way}-{trial}-{n}");
                let paused = self.clients.ask(&format!("trip {thread} {way}"))?;
                let question = paused["open"][0].as_str();
                let question = question.with_context(|| format!("it did not pause: {paused}"))?;
                Ok(Parked {
                    thread,
                    question: question.to_owned(),
                })
            })
            .collect()
    }

    /// Both workers are replaced while programs run; some begin before, and all end.
    fn roll(&mut self, version: &'static str) -> anyhow::Result<()> {
        let mut under_way = BTreeSet::new();
        for number in self.programs..self.programs + PROGRAMS {
            let tag = format!("program{number}");
            self.clients.tell(&tag, &format!("program {number}"))?;
            under_way.insert((tag, number));
        }
        self.programs += PROGRAMS;
        self.fleet.roll(&self.lab, version)?;
        for (tag, number) in under_way {
            let told = self.clients.wait_for(&tag)?;
            match told["error"].as_str() {
                Some("stuck") => self.tally.violation("stuck", number, tag),
                Some(error) => self.tally.violation("refused", number, error),
                None => {}
            }
        }
        Ok(())
    }

    /// The answer is taken, and the thread goes by these nodes.
    fn expect_seen(&mut self, trial: u64, parked: &Parked, nodes: &[&str]) -> anyhow::Result<()> {
        let told = self.answer(parked)?;
        let effects = Effects::of(&self.clients.ask(&format!("effects {}", parked.thread))?);
        let stored = self.look(parked)?;
        let is_right = told["outcome"] == "finished"
            && effects.begun == nodes
            && effects.again.is_empty()
            && stored["state"]["seen"] == json!(nodes);
        match is_right {
            true => self.parked += 1,
            false => {
                let what = format!("{}: {told}, {effects:?}, {stored}", parked.thread);
                self.tally.violation("parked_lost", trial, what);
            }
        }
        Ok(())
    }

    /// The answer is refused by name, and nothing of the thread is different.
    fn expect_refused(&mut self, trial: u64, parked: &Parked) -> anyhow::Result<()> {
        let before = self.look(parked)?;
        let told = self.answer(parked)?;
        let after = self.look(parked)?;
        let effects = Effects::of(&self.clients.ask(&format!("effects {}", parked.thread))?);
        if told["refused"] != "open-node-gone" {
            let what = format!("{}: {told}", parked.thread);
            self.tally.violation("not_refused", trial, what);
        }
        if before != after || effects != Effects::default() {
            let what = format!("{}: {before}, then {after}, {effects:?}", parked.thread);
            self.tally.violation("changed", trial, what);
        }
        self.refused += 1;
        Ok(())
    }

    fn answer(&mut self, parked: &Parked) -> anyhow::Result<Json> {
        let Parked { thread, question } = parked;
        self.clients
            .ask(&format!("answer trip {thread} {question} 1"))
    }

    fn look(&mut self, parked: &Parked) -> anyhow::Result<Json> {
        self.clients.ask(&format!("look trip {}", parked.thread))
    }
}

/// How many threads of each kind wait while the version changes, and how many programs run.
const PARKED: u64 = 3;
const PROGRAMS: u64 = 12;
const KINDS: &[&str] = &[
    "acknowledged_again",
    "effect_lost",
    "effect_not_planned",
    "wrong_end",
    "wrong_state",
    "stuck",
    "refused",
    "parked_lost",
    "not_refused",
    "changed",
];
