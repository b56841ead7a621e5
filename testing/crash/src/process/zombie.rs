//! A process is frozen inside a node, another takes its thread over and finishes it, the first is thawed: it must
//! notice before it writes anything, and do nothing more.
//!
//! A frozen process may hold SQLite's write lock, and then nobody can take over until it thaws. Such a try is
//! counted, judged by the same rules, and made again with another instant: the trials are those with a takeover.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value as Json, json};

use super::child::Process;
use super::kill::expected_state;
use super::lab::{Lab, Place, inspect};
use super::ledger::{Line, acknowledged_again};
use super::tally::Tally;
use super::{Found, Plan};
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut zombie = Zombie {
        lab: Lab::new(plan)?,
        plan,
        tally: Tally::new("zombie", plan.trials, KINDS),
        lock_held: 0,
        too_late: 0,
        in_flight: 0,
    };
    for trial in 0..plan.trials {
        let prng = &mut Prng::of_trial(plan.seed, trial);
        while !zombie
            .attempt(trial, prng)
            .with_context(|| format!("trial {trial}"))?
        {}
        zombie.tally.progress(trial + 1);
    }
    let more = json!({
        "successor_waited_for_the_thaw": zombie.lock_held,
        "frozen_too_late": zombie.too_late,
        "effects_started_before_it_was_told": zombie.in_flight,
    });
    Ok(Found {
        violations: zombie.tally.violations(),
        detail: zombie.tally.detail(more),
    })
}

struct Zombie<'a> {
    lab: Lab,
    plan: &'a Plan,
    tally: Tally,
    /// Tries in which the successor had to wait for the thaw.
    lock_held: u64,
    /// Tries in which the run was over before the freeze.
    too_late: u64,
    /// Effects of zombies after the thaw and before they could know.
    in_flight: u64,
}

/// How one takeover went.
struct Takeover {
    zombie: u32,
    zombie_said: String,
    successor: u32,
    successor_said: String,
    /// Lines of the ledger up to the thaw.
    before: Vec<Line>,
    after: Vec<Line>,
    stored: Json,
}

impl Zombie<'_> {
    /// One try; true if it counts as the trial.
    fn attempt(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<bool> {
        let (place, seed) = (self.lab.fresh_place("zombie")?, prng.next());
        let mutant = self.plan.mutant.as_deref();
        let mut zombie = self.lab.runner(&place, seed, mutant)?;
        let mut before = Vec::new();
        let frozen = self.await_effect(&mut zombie, prng.below(EFFECTS), &mut before)? && {
            std::thread::sleep(Duration::from_micros(prng.below(8_000)));
            zombie.freeze()?
        };
        if !frozen {
            self.too_late += 1;
            self.end(zombie)?;
            self.lab.ledger.settle()?;
            self.lab.ledger.news()?;
            return Ok(false);
        }
        let mut successor = self.lab.runner(&place, seed, None)?;
        let in_time = successor.ended_within(TAKEOVER_MAX)?.is_some();
        before.extend(self.lab.ledger.news()?);
        zombie.thaw()?;
        let takeover = Takeover {
            zombie: zombie.id(),
            zombie_said: zombie.line()?,
            successor: successor.id(),
            successor_said: successor.line()?,
            stored: self.end_and_inspect([zombie, successor], &place)?,
            before,
            after: self.lab.ledger.news()?,
        };
        self.lock_held += u64::from(!in_time);
        if takeover.claimed_from().is_none() {
            // The zombie had written its last entry and was frozen on its way out.
            self.too_late += 1;
            return Ok(false);
        }
        self.judge(trial, seed, &takeover);
        Ok(in_time)
    }

    /// Waits until the process is inside an effect, counted from 0; false if it ends before.
    fn await_effect(
        &mut self,
        process: &mut Process,
        effect: u64,
        seen: &mut Vec<Line>,
    ) -> anyhow::Result<bool> {
        loop {
            seen.extend(self.lab.ledger.news()?);
            let starts = seen.iter().filter(|line| line.phase == "start").count() as u64;
            if starts > effect {
                return Ok(true);
            }
            if process.ended_within(Duration::from_micros(300))?.is_some() {
                return Ok(false);
            }
        }
    }

    fn end_and_inspect(&mut self, processes: [Process; 2], place: &Place) -> anyhow::Result<Json> {
        for process in processes {
            self.end(process)?;
        }
        self.lab.ledger.settle()?;
        let mut server = self.lab.server(&place.store, None)?;
        inspect(&mut server, "effects", &place.thread)
    }

    fn end(&self, mut process: Process) -> anyhow::Result<()> {
        process.ended_within(END_MAX)?.context("it does not end")?;
        Ok(())
    }

    fn judge(&mut self, trial: u64, seed: u64, takeover: &Takeover) {
        if !takeover
            .zombie_said
            .starts_with("stopped checkpoint-fenced")
        {
            let said = takeover.zombie_said.clone();
            self.tally.violation("not_fenced", trial, said);
        }
        for line in takeover.stale_commits() {
            let what = format!("entry {}", line.detail);
            self.tally.violation("stale_commit", trial, what);
        }
        for line in takeover.effects_after_told() {
            let what = line.key.clone();
            self.tally.violation("effect_after_told", trial, what);
        }
        for key in acknowledged_again(&takeover.lines_but_calls_in_flight()) {
            self.tally.violation("acknowledged_step_again", trial, key);
        }
        if takeover.stored["fault"] != Json::Null {
            let fault = takeover.stored["fault"].to_string();
            self.tally.violation("fork", trial, fault);
        }
        let expected = expected_state(seed);
        let said = takeover.successor_said.strip_prefix("finished ");
        let finished = said.and_then(|state| serde_json::from_str::<Json>(state).ok());
        if finished.as_ref() != Some(&expected) || takeover.stored["state"] != expected {
            let what = format!("{}, {}", takeover.successor_said, takeover.stored);
            self.tally.violation("wrong_state", trial, what);
        }
        self.in_flight += takeover.effects_before_told();
    }
}

impl Takeover {
    /// All lines but the effects that the zombie began after the thaw and before it could know. A fence stops
    /// commits, not a call that is as good as on the wire.
    fn lines_but_calls_in_flight(&self) -> Vec<Line> {
        let in_flight = |line: &&Line| line.pid == self.zombie && line.phase == "start";
        let after = self.after.iter().filter(|line| !in_flight(line));
        self.before.iter().chain(after).cloned().collect()
    }

    /// The entry after which the successor took the thread, if it did.
    fn claimed_from(&self) -> Option<u64> {
        self.before
            .iter()
            .chain(&self.after)
            .find(|line| line.pid == self.successor && line.phase == "claimed")
            .map(|line| line.detail)
    }

    /// What the zombie wrote above the entry that its successor took over from. One at or below it was durable
    /// before the freeze, and only its report came late.
    fn stale_commits(&self) -> impl Iterator<Item = &Line> {
        let claimed = self.claimed_from().unwrap_or(u64::MAX);
        self.of_zombie("saved")
            .filter(move |line| line.detail > claimed)
    }

    fn effects_after_told(&self) -> impl Iterator<Item = &Line> {
        self.of_zombie("start-after-told")
    }

    fn effects_before_told(&self) -> u64 {
        self.of_zombie("start").count() as u64
    }

    /// What the zombie reported after the thaw.
    fn of_zombie(&self, phase: &'static str) -> impl Iterator<Item = &Line> {
        self.after
            .iter()
            .filter(move |line| line.pid == self.zombie && line.phase == phase)
    }
}

/// Effects of the worker's graph.
const EFFECTS: u64 = 16;
/// Far longer than a run takes, and shorter than the patience of a worker's store.
const TAKEOVER_MAX: Duration = Duration::from_millis(1_500);
const END_MAX: Duration = Duration::from_secs(60);
const KINDS: &[&str] = &[
    "not_fenced",
    "stale_commit",
    "effect_after_told",
    "acknowledged_step_again",
    "fork",
    "wrong_state",
];
