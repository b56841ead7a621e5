//! A server that is killed at random instants and started again, while clients use it in every way: what it accepted ends, once,
//! and what it acknowledged is never done again.
//!
//! On a cluster there are two servers and two workers, and any of them is killed. A request goes to any of the two servers, so that
//! one is asked for what another was told.
//!
//! Each trial has a few seconds, a store of its own (on PostgreSQL, threads of its own) and up to two kills: a run whose
//! process died three times without progress is given up on purpose.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde_json::{Value as Json, json};

use super::api::{Api, ApiFigures, Weather};
use super::judge::{EffectJudge, ThreadSight, judge_thread};
use super::load::{Load, PATIENCE};
use super::site::{Deployment, Site};
use crate::process::lab::Lab;
use crate::process::tally::Tally;
use crate::process::{Found, Plan};
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut kills = Kills {
        lab: Lab::new(plan)?,
        plan,
        site: Site::new("server", plan)?,
        tally: Tally::new("server", plan.trials, KINDS),
        figures: Figures::default(),
    };
    for trial in 0..plan.trials {
        kills
            .trial(trial, &mut Prng::of_trial(plan.seed, trial))
            .with_context(|| format!("trial {trial}"))?;
        kills.tally.progress(trial + 1);
    }
    Ok(Found {
        violations: kills.tally.violations(),
        detail: kills.tally.detail(kills.figures.to_json()),
    })
}

struct Kills<'a> {
    lab: Lab,
    plan: &'a Plan,
    site: Site,
    tally: Tally,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    /// Kills of servers that had not begun to listen.
    kills_while_starting: u64,
    threads: u64,
    requests: u64,
    accepted: u64,
    stateless: u64,
    effects: u64,
    redone: u64,
    calls: ApiFigures,
}

impl Figures {
    fn to_json(&self) -> Json {
        json!({
            "clients": CLIENTS,
            "kills": self.kills,
            "kills_while_starting": self.kills_while_starting,
            "threads": self.threads,
            "runs_requested": self.requests,
            "runs_accepted": self.accepted,
            "stateless_runs_seen_to_end": self.stateless,
            "http_requests": self.calls.requests,
            "connections_cut": self.calls.cut,
            "effects_started": self.effects,
            "effects_redone": self.redone,
        })
    }
}

impl Kills<'_> {
    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let place = self.lab.fresh_place("server")?;
        let mutant = self.plan.mutant.as_deref();
        let mut deployment = self.site.start(&self.lab, &place.store, mutant)?;

        let is_over = &AtomicBool::new(false);
        let ports = &self.site.ports.clone();
        let (killed, loads) = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let seed = self.plan.seed;
                    scope.spawn(move || {
                        let name = format!("s{trial}c{client}");
                        let mut load = Load::new(&name, seed, ports, Weather::Kills);
                        while !is_over.load(Ordering::Relaxed) {
                            load.act();
                        }
                        load
                    })
                })
                .collect();
            let killed = self.kill_and_start_again(trial, &mut deployment, prng);
            is_over.store(true, Ordering::Relaxed);
            let loads: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            (killed, loads)
        });
        killed?;
        let loads: Result<Vec<Load>, _> = loads.into_iter().collect();
        let loads = loads.map_err(|_| anyhow!("a client panicked"))?;
        self.judge(trial, loads, deployment)
    }

    /// Kills a process now and then, for as long as the clients are at work.
    fn kill_and_start_again(
        &mut self,
        trial: u64,
        deployment: &mut Deployment,
        prng: &mut Prng,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let kills = 1 + prng.below(KILLS_MAX);
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(prng.below(LOAD_MS / kills)));
            let hosts = deployment.hosts();
            let host = match hosts {
                [host] => host,
                hosts => &mut hosts[prng.index(hosts.len())],
            };
            self.figures.kills_while_starting += u64::from(!host.is_ready());
            if let Some(status) = host.kill()? {
                let what = format!("the server ended by itself, {status}");
                self.tally.violation("server_ended", trial, what);
            }
            self.figures.kills += 1;
            host.start_again(&mut self.lab)?;
        }
        deployment.wait_until_ready()?;
        std::thread::sleep(Duration::from_millis(LOAD_MS).saturating_sub(begun.elapsed()));
        Ok(())
    }

    /// Looks at every thread, then kills all processes and reads what the runs did.
    fn judge(
        &mut self,
        trial: u64,
        loads: Vec<Load>,
        mut deployment: Deployment,
    ) -> anyhow::Result<()> {
        let mut api = Api::new(&self.site.ports, Weather::Kills, PATIENCE);
        let mut effects = EffectJudge::default();
        let mut faults = Vec::new();
        let deadline = Instant::now() + REST_MAX;
        for load in loads {
            self.figures.calls.add(load.api.figures);
            faults.extend(load.api.faults);
            for mark in &load.stateless {
                self.figures.stateless += 1;
                effects.add_finished(mark);
            }
            for log in &load.threads {
                let sight = look_at_rest(&mut api, &log.id, deadline);
                faults.extend(judge_thread(log, sight.as_ref()));
                if let Some(sight) = &sight {
                    effects.add(log, sight);
                }
                self.figures.threads += 1;
                self.figures.requests += log.requests.len() as u64;
                let accepted = log.requests.iter().filter(|request| request.is_accepted());
                self.figures.accepted += accepted.count() as u64;
            }
        }
        faults.extend(api.faults);
        for status in deployment.kill_all()? {
            let what = format!("a process ended by itself, {status}");
            self.tally.violation("server_ended", trial, what);
        }
        self.lab.ledger.settle()?;
        let findings = effects.judge(&self.lab.ledger.news()?);
        self.figures.effects += findings.started;
        self.figures.redone += findings.redone;
        for (kind, what) in faults.into_iter().chain(findings.faults) {
            self.tally.violation(kind, trial, what);
        }
        Ok(())
    }
}

/// Looks at a thread when nothing runs on it any more, or when that should long have been so.
pub(super) fn look_at_rest(api: &mut Api, thread: &str, deadline: Instant) -> Option<ThreadSight> {
    loop {
        let sight = ThreadSight::look(api, thread);
        let is_at_rest = sight.as_ref().is_none_or(ThreadSight::is_at_rest);
        if is_at_rest || Instant::now() > deadline {
            return sight;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

const CLIENTS: u64 = 10;
/// How long the clients begin new things.
const LOAD_MS: u64 = 2_500;
/// A run that is recovered more than three times without progress ends as failed.
const KILLS_MAX: u64 = 2;
/// After which a run that is active counts as one that never ends.
pub(super) const REST_MAX: Duration = Duration::from_secs(60);
/// What must never happen, in trials with clients.
pub(super) const KINDS: &[&str] = &[
    "acknowledged_step_again",
    "acknowledged_superstep_again",
    "effect_doubled",
    "effect_missing",
    "failed",
    "malformed_reply",
    "no_answer",
    "node_again",
    "ran_after_cancel",
    "refused_but_ran",
    "run_doubled",
    "run_lost",
    "server_ended",
    "server_error",
    "thread_lost",
    "unexpected_refusal",
    "unfinished",
    "wrong_answers",
    "wrong_reply",
    "wrong_state",
    "wrong_status",
];
