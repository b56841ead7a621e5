//! `crash sim`: the seeded simulator, in an optimised build of its own.
//!
//! It is a program of its own, `testing/sim`, and not in this process, so that `cargo xtask verify`
//! still builds while a crate does not compile.

use std::process::Stdio;

use anyhow::{Context, bail};
use serde_json::Value;

use super::{CrashArgs, CrashReport};
use harness::workspace;

/// How many trials are made unless said.
const TRIALS: u64 = 1_000;
/// Where the seeds begin unless said: the same every time, so that a failure is everybody's.
const SEED: u64 = 1;

pub(super) fn run(args: &CrashArgs) -> anyhow::Result<CrashReport> {
    let (trials, seed) = (args.trials.unwrap_or(TRIALS), args.seed.unwrap_or(SEED));
    if let Some(backend) = args
        .backend
        .as_deref()
        .filter(|backend| *backend != "memory")
    {
        bail!(
            "the simulator breaks the reference store itself, not `{backend}`: leave `--backend` out"
        );
    }
    let report = simulate(trials, seed, args.mutant.as_deref())?;
    let violations = report["violations"].as_u64();
    Ok(CrashReport {
        test: "sim".to_owned(),
        backend: "memory".to_owned(),
        trials,
        violations: violations.context("the simulator's report counts no violations")?,
        seed,
        detail: report["detail"].clone(),
    })
}

fn simulate(trials: u64, seed: u64, mutant: Option<&str>) -> anyhow::Result<Value> {
    let mut command = workspace::cargo();
    command
        .args(["run", "--quiet", "--release", "-p", "simulator", "--"])
        .args(["--trials", &trials.to_string(), "--seed", &seed.to_string()])
        .stderr(Stdio::inherit());
    if let Some(mutant) = mutant {
        command.args(["--mutant", mutant]);
    }
    let output = command.output().context("the simulator cannot be run")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = printed.lines().last().unwrap_or_default();
    // Exit status 1 is a report with violations; anything that is no report is an error.
    serde_json::from_str(report)
        .with_context(|| format!("the simulator gave no report, {}", output.status))
}
