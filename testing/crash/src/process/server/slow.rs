//! A node that takes longer than every lease, timeout and interval there is: it runs once, and its clients hear of its end,
//! however they wait.
//!
//! Two processes recover whatever nobody runs all the while. They find the leases of the threads, which the server renews.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use free_ports::free_port;
use serde_json::json;

use super::api::{Api, Told, Weather};
use super::host::Host;
use super::judge::{EffectJudge, RequestLog, ThreadLog, judge_thread};
use super::kills::{self, REST_MAX, look_at_rest};
use super::load::{PATIENCE, random_uuid};
use super::order::{Ask, Route, RunOrder};
use crate::process::child::Process;
use crate::process::lab::{Lab, Place};
use crate::process::tally::Tally;
use crate::process::{Found, Plan};
use harness::prng::Prng;

pub(super) fn run(plan: &Plan) -> anyhow::Result<Found> {
    let mut slow = Slow {
        lab: Lab::new(plan)?,
        plan,
        port: free_port(),
        tally: Tally::new("slow", plan.trials, kills::KINDS),
        starts: 0,
    };
    for trial in 0..plan.trials {
        slow.trial(trial, &mut Prng::of_trial(plan.seed, trial))?;
        slow.tally.progress(trial + 1);
    }
    let more = json!({
        "seconds_of_the_node": plan.seconds,
        "runs": plan.trials * ROUTES.len() as u64,
        "recovering_processes": RECOVERERS,
        "effects_started": slow.starts,
    });
    Ok(Found {
        violations: slow.tally.violations(),
        detail: slow.tally.detail(more),
    })
}

struct Slow<'a> {
    lab: Lab,
    plan: &'a Plan,
    port: u16,
    tally: Tally,
    starts: u64,
}

impl Slow<'_> {
    fn trial(&mut self, trial: u64, prng: &mut Prng) -> anyhow::Result<()> {
        let place = self.lab.fresh_place("slow")?;
        let mut host = Host::start(&self.lab, &place.store, self.port, None)?;
        host.wait_until_ready()?;
        let recoverers: Vec<Process> = (0..RECOVERERS)
            .map(|_| self.recoverer(&place))
            .collect::<anyhow::Result<_>>()?;
        let patience = Duration::from_secs(self.plan.seconds) + PATIENCE;
        let port = self.port;
        let orders = ROUTES.map(|route| self.order(trial, route, prng));
        let clients = std::thread::scope(|scope| {
            let clients = orders.map(|order| scope.spawn(move || wait_for(order, port, patience)));
            clients.map(|client| client.join())
        });

        let mut api = Api::new(&[self.port], Weather::Kills, PATIENCE);
        let mut effects = EffectJudge::exact();
        for client in clients {
            let (log, mut of_client) = client.map_err(|_| anyhow!("a client panicked"))?;
            let deadline = Instant::now() + REST_MAX;
            let sight = look_at_rest(&mut api, &log.id, deadline);
            of_client.faults.extend(judge_thread(&log, sight.as_ref()));
            if let Some(sight) = &sight {
                effects.add(&log, sight);
            }
            for (kind, what) in of_client.faults {
                self.tally.violation(kind, trial, what);
            }
        }
        drop(recoverers);
        if let Some(status) = host.kill()? {
            let what = format!("the server ended by itself, {status}");
            self.tally.violation("server_ended", trial, what);
        }
        self.lab.ledger.settle()?;
        let findings = effects.judge(&self.lab.ledger.news()?);
        self.starts += findings.started;
        for (kind, what) in findings.faults.into_iter().chain(api.faults) {
            self.tally.violation(kind, trial, what);
        }
        Ok(())
    }

    /// A process that takes over what it thinks nobody runs.
    fn recoverer(&self, place: &Place) -> anyhow::Result<Process> {
        let mutant = self.plan.mutant.as_deref();
        Process::spawn(&mut self.lab.command("recover", &place.store, mutant))
    }

    fn order(&self, trial: u64, route: Route, prng: &mut Prng) -> RunOrder {
        RunOrder {
            thread: Some(random_uuid(prng)),
            mark: format!("slow{trial}-{route:?}"),
            ask: Ask::Steps {
                ms: self.plan.seconds * 1_000,
            },
            route,
            strategy: None,
            is_keyed: false,
        }
    }
}

/// Submits a run and waits for its end by the way of the order. Nothing is cut here, so no request is ever repeated.
fn wait_for(order: RunOrder, port: u16, patience: Duration) -> (ThreadLog, Api) {
    let mut api = Api::new(&[port], Weather::Outages, patience);
    let id = order.thread.clone().unwrap_or_default();
    api.create_thread(&id);
    let submitted = match order.route {
        Route::Stream => api.stream(&order),
        Route::Create | Route::Wait => api.submit(&order),
    };
    if let (Told::Accepted { run }, None) = (&submitted.told, &submitted.values) {
        // In the background: its client comes back for the result.
        api.join(&id, run);
    }
    let request = RequestLog {
        mark: order.mark,
        ask: order.ask,
        told: submitted.told,
        may_be_refused: false,
        may_be_cancelled: false,
        may_be_deleted: false,
        cancelled_at: None,
    };
    let log = ThreadLog {
        id,
        requests: vec![request],
    };
    (log, api)
}

const ROUTES: [Route; 3] = [Route::Create, Route::Wait, Route::Stream];
const RECOVERERS: usize = 2;
