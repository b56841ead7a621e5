//! Processes that recover the threads of a dead one while another is alive, and that are killed at random: no thread is taken
//! from a process that lives, and nothing that was acknowledged is done again.
//!
//! Trials have two processes and eight in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;

use super::child::Process;
use super::lab::{Lab, Place, inspect};
use super::ledger::{Line, acknowledged_again};
use super::tally::{Tally, percentile};
use super::{Found, Plan};
use harness::prng::{Prng, mix};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut recover = Recover {
        lab: Lab::new(plan)?,
        plan,
        tally: Tally::new("recover", plan.trials, KINDS),
        kills: 0,
        kills_of_owners: 0,
        takeovers: 0,
        recovered_ms: Vec::new(),
    };
    for trial in 0..plan.trials {
        recover
            .trial(trial, &mut Prng::of_trial(plan.seed, trial))
            .with_context(|| format!("trial {trial}"))?;
        recover.tally.progress(trial + 1);
    }
    let more = json!({
        "orphans": plan.threads,
        "living": living_of(plan),
        "kills": recover.kills,
        "kills_of_owners": recover.kills_of_owners,
        "takeovers": recover.takeovers,
        "all_recovered_ms_p50": percentile(&mut recover.recovered_ms, 50),
        "all_recovered_ms_max": percentile(&mut recover.recovered_ms, 100),
    });
    Ok(Found {
        violations: recover.tally.violations(),
        detail: recover.tally.detail(more),
    })
}

struct Recover<'a> {
    lab: Lab,
    plan: &'a Plan,
    tally: Tally,
    kills: u64,
    /// Kills of processes that had run a thread.
    kills_of_owners: u64,
    /// How often a thread went from one process to another.
    takeovers: u64,
    /// From the death of the process that had the orphans until all of them were finished.
    recovered_ms: Vec<u64>,
}

/// What a trial is judged by.
struct Trial {
    lines: Vec<Line>,
    /// How many lines the ledger had when a process was killed.
    killed: BTreeMap<u32, usize>,
}

impl Recover<'_> {
    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let (place, seed) = (self.lab.fresh_place("recover")?, prng.next());
        let mut past = Trial {
            lines: Vec::new(),
            killed: BTreeMap::new(),
        };
        let mut living = self.holder(&place, seed, "living", living_of(self.plan))?;
        let mut dead = self.holder(&place, seed, "orphan", self.plan.threads)?;
        self.kill(&mut dead, &mut past)?;

        let begun = Instant::now();
        let processes = PROCESSES[(trial % 2) as usize];
        let mut recovering = Vec::new();
        for _ in 0..processes {
            recovering.push(self.recoverer(&place, seed)?);
        }
        self.await_a_takeover(&mut past, begun)?;
        for _ in 0..processes * KILLS_EACH {
            std::thread::sleep(Duration::from_millis(prng.below(KILL_EVERY_MS)));
            let victim = usize::try_from(prng.below(processes))?;
            self.kill(&mut recovering[victim], &mut past)?;
            recovering[victim] = self.recoverer(&place, seed)?;
        }
        self.await_the_living_only(&recovering, begun)?;
        self.recovered_ms
            .push(u64::try_from(begun.elapsed().as_millis())?);
        self.end(trial, &mut living)?;
        drop((living, dead, recovering));
        self.lab.ledger.settle()?;
        past.lines.extend(self.lab.ledger.news()?);
        self.judge(trial, &past);
        self.judge_states(trial, &place, seed)
    }

    /// A process with this many threads, each in its first node.
    fn holder(
        &self,
        place: &Place,
        seed: u64,
        name: &str,
        threads: u64,
    ) -> anyhow::Result<Process> {
        let mut command = self.lab.command("hold", &place.store, None);
        command.args(["--thread", &format!("{}-{name}", place.thread)]);
        command.args(["--seed", &seed.to_string(), "--runs", &threads.to_string()]);
        let holder = Process::spawn(&mut command)?;
        match holder.line()?.as_str() {
            "holding" => Ok(holder),
            other => bail!("the threads do not run: {other}"),
        }
    }

    fn recoverer(&self, place: &Place, seed: u64) -> anyhow::Result<Process> {
        let mutant = self.plan.mutant.as_deref();
        let mut command = self.lab.command("recover", &place.store, mutant);
        Process::spawn(command.args(["--seed", &seed.to_string()]))
    }

    fn kill(&mut self, process: &mut Process, past: &mut Trial) -> anyhow::Result<()> {
        past.lines.extend(self.lab.ledger.news()?);
        past.killed.insert(process.id(), past.lines.len());
        process.kill()?;
        self.kills += 1;
        let is_its = |line: &&Line| line.is_of_a_node() && line.pid == process.id();
        self.kills_of_owners += u64::from(past.lines.iter().any(|line| is_its(&line)));
        Ok(())
    }

    /// Waits until the first thread is recovered: a process that still waits for leases has nothing to lose.
    fn await_a_takeover(&mut self, past: &mut Trial, begun: Instant) -> anyhow::Result<()> {
        let before: BTreeSet<u32> = past.lines.iter().map(|line| line.pid).collect();
        while begun.elapsed() < RECOVERED_MAX {
            let news = self.lab.ledger.news()?;
            let is_taken = |line: &Line| line.is_of_a_node() && !before.contains(&line.pid);
            let is_begun = news.iter().any(is_taken);
            past.lines.extend(news);
            if is_begun {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("nothing was recovered within {RECOVERED_MAX:?}")
    }

    /// Waits until nothing is unfinished but the threads of the process that is alive.
    fn await_the_living_only(&self, recovering: &[Process], begun: Instant) -> anyhow::Result<()> {
        let living = living_of(self.plan);
        while begun.elapsed() < RECOVERED_MAX {
            for process in recovering {
                while let Some(line) = process.line_within(Duration::from_millis(10))? {
                    let left = line.strip_prefix("left ").map(str::parse::<u64>);
                    if left.transpose()?.is_some_and(|left| left <= living) {
                        return Ok(());
                    }
                }
            }
        }
        bail!("not everything was recovered within {RECOVERED_MAX:?}")
    }

    /// Lets the living process finish its threads.
    fn end(&mut self, trial: u64, living: &mut Process) -> anyhow::Result<()> {
        living.tell("go")?;
        loop {
            let line = living.line()?;
            match line.strip_prefix("ended ") {
                None => return Ok(()),
                Some(ended) if ended.ends_with(" ok") => {}
                Some(ended) => self.tally.violation("living_thread_lost", trial, ended),
            }
        }
    }

    fn judge(&mut self, trial: u64, past: &Trial) {
        let mut of_thread: BTreeMap<&str, Vec<(usize, &Line)>> = BTreeMap::new();
        for (number, line) in past.lines.iter().enumerate() {
            of_thread
                .entry(&line.thread)
                .or_default()
                .push((number, line));
        }
        for (thread, lines) in of_thread {
            // A process whose claim was refused says so too, and does nothing.
            let mut owners = lines.iter().filter(|(_, line)| line.is_of_a_node());
            let Some(&(_, mut before)) = owners.next() else {
                continue;
            };
            for (number, after) in owners {
                let before = std::mem::replace(&mut before, after);
                if before.pid == after.pid {
                    continue;
                }
                self.takeovers += 1;
                // What a dead process had sent may arrive after its successor's first line.
                let was_dead = |pid| past.killed.get(&pid).is_some_and(|killed| killed <= number);
                if !was_dead(before.pid) && !was_dead(after.pid) {
                    let what = format!("{thread}: from {} to {}", before.pid, after.pid);
                    self.tally.violation("living_thread_taken", trial, what);
                }
            }
            let lines: Vec<Line> = lines.into_iter().map(|(_, line)| line.clone()).collect();
            for key in acknowledged_again(&lines) {
                let what = format!("{thread}: {key}");
                self.tally.violation("acknowledged_step_again", trial, what);
            }
        }
    }

    fn judge_states(&mut self, trial: u64, place: &Place, seed: u64) -> anyhow::Result<()> {
        let mut server = self.lab.server(&place.store, None)?;
        let sets = [
            ("living", living_of(self.plan)),
            ("orphan", self.plan.threads),
        ];
        let mut states = BTreeSet::new();
        for (name, threads) in sets {
            for number in 0..threads {
                let thread = format!("{}-{name}-{number}", place.thread);
                let seen = inspect(&mut server, "held", &thread)?;
                if !seen["fault"].is_null() {
                    self.tally
                        .violation("broken_history", trial, format!("{thread}: {seen}"));
                }
                states.insert(seen["state"].to_string());
            }
        }
        let wanted = expected_state(seed).to_string();
        for state in states.into_iter().filter(|state| *state != wanted) {
            self.tally.violation("wrong_state", trial, state);
        }
        Ok(())
    }
}

fn living_of(plan: &Plan) -> u64 {
    plan.threads.div_ceil(10)
}

/// What the worker's graph leaves behind, whatever happened to its processes.
fn expected_state(seed: u64) -> serde_json::Value {
    let value = |node: &str, step: &str| mix(seed, &format!("{node}/{step}")) % 1_000;
    let done = ["gate", "first", "second"]
        .map(|node| format!("{node} {} {}", value(node, "one"), value(node, "two")));
    json!({ "done": done })
}

/// Processes that recover at once, by trial.
const PROCESSES: [u64; 2] = [2, 8];
const KILLS_EACH: u64 = 3;
const KILL_EVERY_MS: u64 = 300;
const RECOVERED_MAX: Duration = Duration::from_secs(120);
const KINDS: &[&str] = &[
    "living_thread_taken",
    "living_thread_lost",
    "acknowledged_step_again",
    "broken_history",
    "wrong_state",
];
