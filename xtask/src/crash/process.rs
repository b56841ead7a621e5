//! `crash kill|race|zombie|chain|restarts`: real processes that are killed, raced, frozen, and left without a database.
//!
//! The processes are the example `crash_worker` of the crate `superstep`; what they do in the world is counted by a
//! ledger, a process too, that never drops a duplicate. Here trials are planned from a seed, done, and judged by
//! what the ledger and the store hold afterwards.

mod chain;
mod child;
mod database;
mod kill;
mod lab;
mod ledger;
mod race;
mod restarts;
mod tally;
#[cfg(test)]
mod teeth;
mod zombie;

use std::ops::Range;

use anyhow::bail;
use serde_json::Value as Json;

use super::{CrashArgs, CrashReport};

/// What is to be done.
#[derive(Debug, Clone)]
struct Plan {
    test: Test,
    backend: Backend,
    trials: u64,
    /// How long a trial lasts, for those that go by time.
    seconds: u64,
    /// How many seconds lie between two restarts.
    every: Range<u64>,
    seed: u64,
    /// Which promise the workers break, to see whether it is noticed.
    mutant: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    Kill,
    Race,
    Zombie,
    Chain,
    Restarts,
}

/// Where the threads are kept. A further one needs its arm in `database.rs` and in the worker's `open_store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Sqlite,
    Postgres,
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
            unknown => bail!("there is no crash test `{unknown}` with processes"),
        };
        let backend = match args.backend.as_deref() {
            None if test == Test::Restarts => Backend::Postgres,
            None | Some("sqlite") => Backend::Sqlite,
            Some("postgres") => Backend::Postgres,
            Some(unknown) => bail!("there is no backend `{unknown}`: use sqlite or postgres"),
        };
        Ok(Self {
            test,
            backend,
            trials: args.trials.unwrap_or(trials),
            seconds: args.seconds.unwrap_or(60),
            every: args.every.clone().unwrap_or(5..40),
            seed: args.seed.unwrap_or(SEED),
            mutant: args.mutant.clone(),
        })
    }

    fn perform(&self) -> anyhow::Result<Found> {
        match self.test {
            Test::Kill => kill::run(self),
            Test::Race => race::run(self),
            Test::Zombie => zombie::run(self),
            Test::Chain => chain::run(self),
            Test::Restarts => restarts::run(self),
        }
    }
}

impl Backend {
    fn as_str(self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
        }
    }
}

const SEED: u64 = 20_261_115;
