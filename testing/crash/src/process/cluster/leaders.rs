//! Questions are answered while every partition gets another leader: no answer is lost, and nothing is asked twice.
//!
//! Each trial is one transfer of all leaders; while it lasts, every thread's open question is answered, at an even pace.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value as Json, json};

use super::super::tally::{Tally, percentile};
use super::super::{Found, Plan};
use super::clients::Clients;
use super::lab::Lab;
use super::race::Effects;
use services::restate::PrivateRestate;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let lab = Lab::new("leaders", plan)?;
    let _fleet = lab.fleet(plan.mutant.as_deref())?;
    let mut leaders = Leaders {
        clients: lab.clients()?,
        lab,
        tally: Tally::new("leaders", plan.trials, KINDS),
        open: Vec::new(),
        moved: 0,
        redone: 0,
        answer_ms: Vec::new(),
    };
    leaders.ask_all(plan.trials)?;
    for round in 0..plan.trials {
        leaders
            .round(round, round + 1 == plan.trials)
            .with_context(|| format!("transfer {round}"))?;
        leaders.tally.progress(round + 1);
    }
    leaders.judge(plan.trials)?;
    let figures = json!({
        "threads": THREADS,
        "answers": leaders.answer_ms.len(),
        "leaders_moved": leaders.moved,
        "effects_redone": leaders.redone,
        "answer_ms_p50": percentile(&mut leaders.answer_ms, 50),
        "answer_ms_p99": percentile(&mut leaders.answer_ms, 99),
        "answer_ms_max": percentile(&mut leaders.answer_ms, 100),
    });
    Ok(Found {
        violations: leaders.tally.violations(),
        detail: leaders.tally.detail(figures),
    })
}

struct Leaders {
    lab: Lab,
    clients: Clients,
    tally: Tally,
    /// The open question of each thread; none if it was lost.
    open: Vec<Option<String>>,
    moved: u64,
    redone: u64,
    answer_ms: Vec<u64>,
}

impl Leaders {
    fn ask_all(&mut self, rounds: u64) -> anyhow::Result<()> {
        for thread in 0..THREADS {
            let paused = self
                .clients
                .ask(&format!("talk leaders-{thread} {rounds}"))?;
            let question = paused["open"][0].as_str();
            let question = question.with_context(|| format!("it did not pause: {paused}"))?;
            self.open.push(Some(question.to_owned()));
        }
        Ok(())
    }

    /// All leaders move; meanwhile each thread is answered.
    fn round(&mut self, round: u64, is_last: bool) -> anyhow::Result<()> {
        let restate = &self.lab.restate;
        let (clients, open) = (&mut self.clients, &self.open);
        let mut given = [false; THREADS];
        let moved = std::thread::scope(|scope| {
            let transfer = scope.spawn(|| transfer(restate));
            for thread in 0..THREADS {
                if let Some(question) = &open[thread] {
                    let answer = answer_of(round, thread);
                    let command = format!("answer talk leaders-{thread} {question} {answer}");
                    clients.tell(&tag(round, thread), &command)?;
                    given[thread] = true;
                }
                std::thread::sleep(BETWEEN);
            }
            match transfer.join() {
                Ok(moved) => moved,
                Err(_) => bail!("the transfer panicked"),
            }
        })?;
        self.moved += moved as u64;
        for (thread, _) in given.iter().enumerate().filter(|(_, given)| **given) {
            let told = self.clients.wait_for(&tag(round, thread))?;
            self.answer_ms.extend(told["took_ms"].as_u64());
            self.told(round, thread, &told, is_last);
        }
        Ok(())
    }

    fn told(&mut self, round: u64, thread: usize, told: &Json, is_last: bool) {
        let next = told["open"][0].as_str().map(str::to_owned);
        let what = || format!("leaders-{thread}: {told}");
        let before = self.open[thread].take();
        match (told["outcome"].as_str(), &next) {
            (Some("finished"), None) if is_last => {}
            (Some("paused"), Some(_)) if next == before => {
                self.tally.violation("asked_twice", round, what());
            }
            (Some("paused"), Some(_)) if !is_last => self.open[thread] = next,
            _ => self.tally.violation("answer_lost", round, what()),
        }
    }

    fn judge(&mut self, rounds: u64) -> anyhow::Result<()> {
        for thread in 0..THREADS {
            let stored = self.clients.ask(&format!("look talk leaders-{thread}"))?;
            let answers: Vec<u64> = (0..rounds).map(|round| answer_of(round, thread)).collect();
            let state = &stored["state"];
            if state["answers"] != json!(answers) || state["acted_on"] != json!(answers) {
                self.tally
                    .violation("state", 0, format!("leaders-{thread}: {stored}"));
            }
            let effects = Effects::of(&self.clients.ask(&format!("effects leaders-{thread}"))?);
            self.redone += effects.redone;
            let wanted: Vec<String> = (0..)
                .zip(&answers)
                .map(|(round, answer): (u64, _)| format!("round {round}={answer}"))
                .collect();
            if effects.begun != wanted || !effects.again.is_empty() {
                self.tally
                    .violation("effects", 0, format!("leaders-{thread}: {effects:?}"));
            }
        }
        Ok(())
    }
}

/// Whoever administers the nodes may be about to change, too, and cannot be asked then.
fn transfer(restate: &PrivateRestate) -> anyhow::Result<usize> {
    let begun = Instant::now();
    loop {
        match restate.transfer_leaders() {
            Err(_) if begun.elapsed() < TRANSFER_MAX => std::thread::sleep(BETWEEN),
            transferred => return transferred,
        }
    }
}

fn tag(round: u64, thread: usize) -> String {
    format!("{round}-{thread}")
}

fn answer_of(round: u64, thread: usize) -> u64 {
    round * 1_000 + thread as u64
}

const THREADS: usize = 30;
/// So that the answers fall before, into and after the moment in which a leader changes: a transfer takes a second or two.
const BETWEEN: Duration = Duration::from_millis(60);
const TRANSFER_MAX: Duration = Duration::from_secs(30);
const KINDS: &[&str] = &["answer_lost", "asked_twice", "effects", "state"];
