//! `cargo xtask crash NAME`: tests that break things on purpose, and count what must never happen.
//!
//! [`run`] is given [`CrashArgs`], plans the trials from a seed, and prints one report. What people read goes to stderr; the last line of stdout is the
//! report as one JSON object, so that a program can read it whatever else was printed.
//!
//! The trials are made with real processes, the program of `testing/workers`, or with the simulator of `testing/sim`. Both are
//! built and started, never linked: this crate depends on no product crate.

mod process;
mod sim;

use std::ops::Range;

use anyhow::bail;
use serde_json::json;

/// The tests there are, for whoever asks for another.
pub const NAMES: &str = "sim, kill, race, zombie, chain, restarts, recover, cluster, leaders, upgrade, fanout, server, streams, outages or slow";

/// What was asked for, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrashArgs {
    /// Which test.
    pub name: String,
    /// On which store, for tests that can use several.
    pub backend: Option<String>,
    /// How often; each test has its own default.
    pub trials: Option<u64>,
    /// For how long, for tests that go by time.
    pub seconds: Option<u64>,
    /// The same in minutes.
    pub minutes: Option<u64>,
    /// How many runs, for tests that go by them.
    pub runs: Option<u64>,
    /// How many seconds lie between two restarts, from the least to the most.
    pub every: Option<Range<u64>>,
    /// Where randomness begins; each test has its own fixed default.
    pub seed: Option<u64>,
    /// Print the report as JSON on stdout.
    pub json: bool,
    /// Which promise is broken on purpose, to see whether the test notices.
    pub mutant: Option<String>,
}

/// What a test found.
#[derive(Debug, Clone)]
pub(crate) struct CrashReport {
    /// The test's name.
    pub test: String,
    /// The store it used.
    pub backend: String,
    /// How many trials were made.
    pub trials: u64,
    /// How often something happened that must never happen.
    pub violations: u64,
    /// The seed that repeats this.
    pub seed: u64,
    /// Counts and findings of this test alone.
    pub detail: serde_json::Value,
}

/// Runs a test and prints what it found. Violations are an error, so the exit status is 1.
pub fn run(args: &CrashArgs) -> anyhow::Result<()> {
    let report = match args.name.as_str() {
        "sim" => sim::run(args)?,
        "kill" | "race" | "zombie" | "chain" | "restarts" | "recover" | "cluster" | "leaders"
        | "upgrade" | "fanout" | "server" | "streams" | "outages" | "slow" => process::run(args)?,
        unknown => bail!("there is no crash test `{unknown}`: use {NAMES}"),
    };
    publish(&report, args.json);
    if report.violations > 0 {
        bail!(
            "{} violations in {} trials of `{}` (seed {})",
            report.violations,
            report.trials,
            report.test,
            report.seed
        );
    }
    Ok(())
}

/// Tells people on stderr, and programs on the last line of stdout.
#[expect(clippy::print_stdout, reason = "the report that was asked for is data")]
fn publish(report: &CrashReport, as_json: bool) {
    eprintln!(
        "{} on {}: {} trials, {} violations, seed {}",
        report.test, report.backend, report.trials, report.violations, report.seed
    );
    if as_json {
        println!("{}", report.to_json());
    } else {
        eprintln!("{:#}", report.detail);
    }
}

impl CrashReport {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "test": self.test,
            "backend": self.backend,
            "trials": self.trials,
            "violations": self.violations,
            "seed": self.seed,
            "detail": self.detail,
        })
    }
}
