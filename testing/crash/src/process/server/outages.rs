//! A PostgreSQL server that is stopped and killed under the server, while clients use it: nothing is lost, nothing is done twice,
//! and the worst that a client sees is a 503 that says when to try again.
//!
//! On a cluster, it is the Redis between servers and workers that is emptied and killed. Clients do not even see a 503: streams show
//! everything that is in the log, and tokens may be missing only of messages that come as a whole then.
//!
//! Both are this command's own. They are down for up to two seconds at a time, PostgreSQL half of the times as after a crash.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use serde_json::{Value as Json, json};

use super::api::{Api, ApiFigures, Weather};
use super::judge::{EffectJudge, judge_thread};
use super::kills::{self, REST_MAX, look_at_rest};
use super::load::{Load, PATIENCE};
use super::site::{Deployment, Site};
use super::streams::{StreamCounts, watch_uncut};
use crate::process::database::Database;
use crate::process::lab::Lab;
use crate::process::outage::{DatabaseOutages, RedisOutages};
use crate::process::tally::{Tally, percentile};
use crate::process::{Backend, Found, Plan};
use harness::prng::Prng;
use services::{Cluster, PrivateCluster};

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let server = match plan.backend {
        Backend::Postgres => Some(Cluster::private("outages")?),
        Backend::Cluster => None,
        Backend::Sqlite => bail!("`crash outages` is of PostgreSQL, or of Redis on a cluster"),
    };
    let database = match &server {
        Some(server) => Database::on_server(&server.url()?),
        None => Database::new(plan.backend)?,
    };
    let mut lab = Lab::with(database)?;
    let store = lab.fresh_place("outages")?.store;
    let mut site = Site::new("outages", plan)?;
    let deployment = site.start(&lab, &store, plan.mutant.as_deref())?;
    let kinds = [kills::KINDS, KINDS].concat();
    let mut outages = Outages {
        lab,
        plan,
        site,
        server,
        tally: Tally::new("outages", plan.trials, &kinds),
        figures: Figures::default(),
    };
    let loads = outages.use_and_break()?;
    outages.judge(loads, deployment)?;
    Ok(Found {
        violations: outages.tally.violations(),
        detail: outages.tally.detail(outages.figures.report(plan)),
    })
}

struct Outages<'a> {
    lab: Lab,
    plan: &'a Plan,
    site: Site,
    /// The PostgreSQL server that goes away. Without one, it is the cluster's Redis.
    server: Option<PrivateCluster>,
    tally: Tally,
    figures: Figures,
}

#[derive(Debug, Default)]
struct Figures {
    outages: DatabaseOutages,
    redis: RedisOutages,
    streams: u64,
    stream_events: u64,
    tokens: u64,
    messages_completed: u64,
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
        let mut report = json!({
            "clients": CLIENTS,
            "threads": self.threads,
            "runs_requested": self.requests,
            "runs_accepted": self.accepted,
            "http_requests": self.calls.requests,
            "replies_503": self.calls.unavailable,
            "writes_without_an_answer": self.unanswered,
            "effects": self.effects,
            "runs_seconds": self.lasted.as_secs(),
        });
        let every = json!([plan.every.start, plan.every.end]);
        let more = match plan.backend {
            Backend::Cluster => json!({
                "seconds_between_outages": every,
                "redis_flushes": self.redis.flushes,
                "redis_restarts": self.redis.away_ms.len(),
                "redis_away_ms_max": percentile(&mut self.redis.away_ms, 100),
                "streams": self.streams,
                "stream_events": self.stream_events,
                "stream_events_of_messages": self.tokens,
                "messages_whole_after_a_part": self.messages_completed,
            }),
            _ => json!({
                "seconds_between_restarts": every,
                "restarts": self.outages.fast + self.outages.immediate,
                "restarts_fast": self.outages.fast,
                "restarts_immediate": self.outages.immediate,
                "away_ms_p50": percentile(&mut self.outages.away_ms, 50),
                "away_ms_max": percentile(&mut self.outages.away_ms, 100),
            }),
        };
        for (name, figure) in more.as_object().into_iter().flatten() {
            report[name] = figure.clone();
        }
        report
    }
}

impl Outages<'_> {
    /// The clients, and the outages for as long as they are at work.
    fn use_and_break(&mut self) -> anyhow::Result<Vec<Load>> {
        let begun = Instant::now();
        let next = &AtomicU64::new(0);
        let counts = &StreamCounts::default();
        let ports = &self.site.ports.clone();
        let with_streams = self.site.cluster.is_some();
        let (broken, loads) = std::thread::scope(|scope| {
            let (seed, runs) = (self.plan.seed, self.plan.trials);
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn(move || {
                        let name = format!("o{client}");
                        let load = Load::new(&name, seed, ports, Weather::Outages);
                        let act = |load: &mut Load, number: u64| match with_streams {
                            true if number.is_multiple_of(3) => {
                                let faults = watch_uncut(ports, seed, number, counts);
                                load.api.faults.extend(faults);
                            }
                            _ => load.act_with_keys(),
                        };
                        work_at_an_even_pace(load, next, runs, begun, act)
                    })
                })
                .collect();
            let prng = &mut Prng::of_trial(seed, 0);
            let mut broken = Ok(());
            let is_over = || clients.iter().all(|client| client.is_finished());
            while broken.is_ok() && !ends_within(DatabaseOutages::gap(self.plan, prng), is_over) {
                broken = self.break_once(prng);
                self.tally.progress(next.load(Ordering::Relaxed).min(runs));
            }
            if broken.is_err() {
                // Without what was to come back there is nothing left to try.
                next.store(runs, Ordering::Relaxed);
            }
            let loads: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            (broken, loads)
        });
        broken?;
        self.figures.lasted = begun.elapsed();
        self.figures.streams = counts.streams.load(Ordering::Relaxed);
        self.figures.stream_events = counts.events.load(Ordering::Relaxed);
        self.figures.tokens = counts.tokens.load(Ordering::Relaxed);
        self.figures.messages_completed = counts.completed.load(Ordering::Relaxed);
        let loads: Result<Vec<Load>, _> = loads.into_iter().collect();
        loads.map_err(|_| anyhow!("a client panicked"))
    }

    fn break_once(&mut self, prng: &mut Prng) -> anyhow::Result<()> {
        let figures = &mut self.figures;
        match (&self.server, &self.site.cluster) {
            (Some(server), _) => figures.outages.restart("outages", server, prng),
            (None, Some(cluster)) => figures.redis.next("outages", &cluster.redis, prng),
            (None, None) => bail!("there is nothing to break"),
        }
    }

    /// What the server and the ledger say of every run.
    fn judge(&mut self, loads: Vec<Load>, mut deployment: Deployment) -> anyhow::Result<()> {
        let mut api = Api::new(&self.site.ports, Weather::Outages, PATIENCE);
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
        for status in deployment.kill_all()? {
            let what = format!("a process ended by itself, {status}");
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
fn work_at_an_even_pace(
    mut load: Load,
    next: &AtomicU64,
    runs: u64,
    begun: Instant,
    act: impl Fn(&mut Load, u64),
) -> Load {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= runs {
            return load;
        }
        let due = begun + Duration::from_micros(number * 1_000_000 / THREADS_PER_SECOND);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        act(&mut load, number);
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
/// What must never happen either.
const KINDS: &[&str] = &[
    "connection_lost",
    "message_incomplete",
    "no_retry_after",
    "stream_differs",
    "stream_incomplete",
];
