//! A PostgreSQL server that is stopped and killed under the server, while clients use it: nothing is lost, nothing is done twice,
//! and the worst that a client sees is a 503 that says when to try again.
//!
//! The PostgreSQL server is this command's own. It is down for up to two seconds at a time, half of the times as after a crash.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use free_ports::free_port;
use serde_json::{Value as Json, json};

use super::api::{Api, ApiFigures, Weather};
use super::host::Host;
use super::judge::{EffectJudge, judge_thread};
use super::kills::{self, REST_MAX, look_at_rest};
use super::load::{Load, PATIENCE};
use crate::process::database::Database;
use crate::process::lab::Lab;
use crate::process::outage::DatabaseOutages;
use crate::process::tally::{Tally, percentile};
use crate::process::{Backend, Found, Plan};
use harness::prng::Prng;
use services::{Cluster, PrivateCluster};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    if plan.backend != Backend::Postgres {
        bail!("`crash outages` restarts PostgreSQL: leave `--backend` out");
    }
    let database = Cluster::private("outages")?;
    let mut lab = Lab::with(Database::on_server(&database.url()?))?;
    let store = lab.fresh_place("outages")?.store;
    let port = free_port();
    let host = Host::start(&lab, &store, port, plan.mutant.as_deref())?;
    host.wait_until_ready()?;
    let kinds = [kills::KINDS, &["connection_lost", "no_retry_after"][..]].concat();
    let mut outages = Outages {
        lab,
        plan,
        port,
        tally: Tally::new("outages", plan.trials, &kinds),
        figures: Figures::default(),
    };
    let loads = outages.use_and_restart(&database)?;
    outages.judge(loads, host)?;
    Ok(Found {
        violations: outages.tally.violations(),
        detail: outages.tally.detail(outages.figures.report(plan)),
    })
}

struct Outages<'a> {
    lab: Lab,
    plan: &'a Plan,
    port: u16,
    tally: Tally,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    outages: DatabaseOutages,
    threads: u64,
    requests: u64,
    accepted: u64,
    effects: u64,
    calls: ApiFigures,
    /// Writes of runs whose outcome was not known.
    unanswered: u64,
    lasted: Duration,
}

impl Figures {
    fn report(&mut self, plan: &Plan) -> Json {
        json!({
            "clients": CLIENTS,
            "seconds_between_restarts": [plan.every.start, plan.every.end],
            "restarts": self.outages.fast + self.outages.immediate,
            "restarts_fast": self.outages.fast,
            "restarts_immediate": self.outages.immediate,
            "away_ms_p50": percentile(&mut self.outages.away_ms, 50),
            "away_ms_max": percentile(&mut self.outages.away_ms, 100),
            "threads": self.threads,
            "runs_requested": self.requests,
            "runs_accepted": self.accepted,
            "http_requests": self.calls.requests,
            "replies_503": self.calls.unavailable,
            "writes_without_an_answer": self.unanswered,
            "effects": self.effects,
            "runs_seconds": self.lasted.as_secs(),
        })
    }
}

impl Outages<'_> {
    /// The clients, and the restarts for as long as they are at work.
    fn use_and_restart(&mut self, database: &PrivateCluster) -> anyhow::Result<Vec<Load>> {
        let begun = Instant::now();
        let next = &AtomicU64::new(0);
        let (restarted, loads) = std::thread::scope(|scope| {
            let (seed, port, runs) = (self.plan.seed, self.port, self.plan.trials);
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn(move || {
                        let name = format!("o{client}");
                        let load = Load::new(&name, seed, port, Weather::Outages);
                        work_at_an_even_pace(load, next, runs, begun)
                    })
                })
                .collect();
            let prng = &mut Prng::of_trial(seed, 0);
            let mut restarted = Ok(());
            let is_over = || clients.iter().all(|client| client.is_finished());
            while restarted.is_ok() && !ends_within(DatabaseOutages::gap(self.plan, prng), is_over)
            {
                restarted = self.figures.outages.restart("outages", database, prng);
                self.tally.progress(next.load(Ordering::Relaxed).min(runs));
            }
            if restarted.is_err() {
                // Without a database there is nothing left to try.
                next.store(runs, Ordering::Relaxed);
            }
            let loads: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            (restarted, loads)
        });
        restarted?;
        self.figures.lasted = begun.elapsed();
        let loads: Result<Vec<Load>, _> = loads.into_iter().collect();
        loads.map_err(|_| anyhow!("a client panicked"))
    }

    /// What the server and the ledger say of every run.
    fn judge(&mut self, loads: Vec<Load>, mut host: Host) -> anyhow::Result<()> {
        let mut api = Api::new(self.port, Weather::Outages, PATIENCE);
        let mut effects = EffectJudge::exact();
        let mut faults = Vec::new();
        let deadline = Instant::now() + REST_MAX;
        for load in loads {
            self.figures.calls.add(load.api.figures);
            faults.extend(load.api.faults);
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
        if let Some(status) = host.kill()? {
            let what = format!("the server ended by itself, {status}");
            faults.push(("server_ended", what));
        }
        self.lab.ledger.settle()?;
        let lines = self.lab.ledger.news()?;
        let unanswered = lines.iter().filter(|line| line.phase == "unanswered");
        self.figures.unanswered = unanswered.count() as u64;
        let findings = effects.judge(&lines);
        self.figures.effects = findings.started;
        for (kind, what) in faults.into_iter().chain(findings.faults) {
            self.tally.violation(kind, 0, what);
        }
        Ok(())
    }
}

/// Takes one thread after the other until there are enough, not faster than all clients together should.
fn work_at_an_even_pace(mut load: Load, next: &AtomicU64, runs: u64, begun: Instant) -> Load {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= runs {
            return load;
        }
        let due = begun + Duration::from_micros(number * 1_000_000 / THREADS_PER_SECOND);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        load.act_with_keys();
    }
}

fn ends_within(time: Duration, is_over: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < time {
        if is_over() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_over()
}

const CLIENTS: u64 = 10;
/// So few that many restarts fall into them: 5,000 threads take more than eight minutes.
const THREADS_PER_SECOND: u64 = 10;
