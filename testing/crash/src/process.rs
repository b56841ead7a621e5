//! `crash kill|race|zombie|chain|restarts|recover`: real processes that are killed, raced, frozen, and left without a database;
//! those on a cluster, which are in `cluster.rs`; and the server with its clients, in `server.rs`.
//!
//! The processes are the program of `testing/workers`, each in one of its modes; what they do in the world is counted by a
//! ledger, a process too, that never drops a duplicate. Here trials are planned from a seed, done, and judged by
//! what the ledger and the store hold afterwards.

mod chain;
mod child;
mod cluster;
mod database;
mod kill;
mod lab;
mod ledger;
mod outage;
mod race;
mod recover;
mod restarts;
mod server;
mod tally;
#[cfg(test)]
mod teeth;
mod zombie;

use std::ops::Range;

use anyhow::bail;
use serde_json::Value as Json;

use super::{CrashArgs, CrashReport};
use services::restate::Layout;

/// What is to be done.
#[derive(Debug, Clone)]
struct Plan {
    test: Test,
    backend: Backend,
    trials: u64,
    /// How many threads a trial has, for those that go by them.
    threads: u64,
    /// How long a trial lasts, for those that go by time.
    seconds: u64,
    /// How many seconds lie between two restarts.
    every: Range<u64>,
    seed: u64,
    /// Which promise the workers break, to see whether it is noticed.
    mutant: Option<String>,
    /// How many nodes a cluster has. What does not need three starts quicker with one.
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Kill,
    Race,
    Zombie,
    Chain,
    Restarts,
    Recover,
    Programs,
    Leaders,
    Upgrade,
    Fanout,
    Server,
    Streams,
    Outages,
    Slow,
}

/// Where the threads are kept. A further one needs its arm in `database.rs` and in the worker's `OpenStore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Postgres,
    /// PostgreSQL, with workers and a Restate in front of it.
    Cluster,
}

/// What the trials of one test found.
#[derive(Debug)]
struct Found {
    violations: u64,
    detail: Json,
}

pub(super) fn run(args: &CrashArgs) -> anyhow::Result<CrashReport> {
    let plan = Plan::of(args)?;
    let found = plan.perform()?;
    Ok(CrashReport {
        test: args.name.clone(),
        backend: plan.backend.as_str().to_owned(),
        trials: plan.trials,
        violations: found.violations,
        seed: plan.seed,
        detail: found.detail,
    })
}

impl Plan {
    fn of(args: &CrashArgs) -> anyhow::Result<Self> {
        let (test, trials) = match args.name.as_str() {
            "kill" => (Test::Kill, 300),
            "race" => (Test::Race, 1_000),
            "zombie" => (Test::Zombie, 300),
            "chain" => (Test::Chain, 1),
            "restarts" => (Test::Restarts, args.runs.unwrap_or(5_000)),
            "recover" => (Test::Recover, 2),
            "cluster" => (Test::Programs, 1_000),
            "leaders" => (Test::Leaders, 20),
            "upgrade" => (Test::Upgrade, 10),
            "fanout" => (Test::Fanout, 10),
            "server" => (Test::Server, 300),
            "streams" => (Test::Streams, 1_000),
            "outages" => (Test::Outages, args.runs.unwrap_or(5_000)),
            "slow" => (Test::Slow, 1),
            unknown => bail!("there is no crash test `{unknown}` with processes"),
        };
        let backend = match args.backend.as_deref() {
            None if matches!(test, Test::Restarts | Test::Outages) => Backend::Postgres,
            None | Some("cluster") if test.is_of_a_cluster() => Backend::Cluster,
            Some(other) if test.is_of_a_cluster() => {
                bail!("`crash {}` is of a cluster, not of `{other}`", args.name)
            }
            None | Some("sqlite") => Backend::Sqlite,
            Some("postgres") => Backend::Postgres,
            Some("cluster") if matches!(test, Test::Race | Test::Server | Test::Outages) => {
                Backend::Cluster
            }
            Some(unknown) => bail!(
                "there is no backend `{unknown}`: use sqlite or postgres, or cluster for `race`, `server` and `outages`"
            ),
        };
        let minutes = args.minutes.map(|minutes| minutes * 60);
        let seconds = match test {
            Test::Slow => 600,
            _ => 60,
        };
        Ok(Self {
            test,
            backend,
            trials: args.trials.unwrap_or(trials),
            threads: args.runs.unwrap_or(1_000),
            seconds: args.seconds.or(minutes).unwrap_or(seconds),
            every: args.every.clone().unwrap_or(5..40),
            seed: args.seed.unwrap_or(SEED),
            mutant: args.mutant.clone(),
            layout: Layout::Cluster,
        })
    }

    fn perform(&self) -> anyhow::Result<Found> {
        match self.test {
            Test::Server | Test::Streams | Test::Outages | Test::Slow => server::run(self),
            _ if self.backend == Backend::Cluster => cluster::run(self),
            Test::Kill => kill::run(self),
            Test::Race => race::run(self),
            Test::Zombie => zombie::run(self),
            Test::Chain => chain::run(self),
            Test::Restarts => restarts::run(self),
            Test::Recover => recover::run(self),
            Test::Programs | Test::Leaders | Test::Upgrade | Test::Fanout => cluster::run(self),
        }
    }
}

impl Test {
    /// Whether there is no other place for it.
    fn is_of_a_cluster(self) -> bool {
        matches!(
            self,
            Test::Programs | Test::Leaders | Test::Upgrade | Test::Fanout
        )
    }
}

impl Backend {
    fn as_str(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
            Backend::Cluster => "cluster",
        }
    }
}

const SEED: u64 = 20_261_115;
