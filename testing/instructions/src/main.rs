//! Counts the instructions of the runtime's hot paths, and compares them with the committed figures.
//!
//! Wall-clock times of a shared machine differ by more than a regression does. Instruction counts do not: callgrind counts the
//! same for the same program, whatever else runs. So a small regression is seen when it is made.
//!
//! `cargo xtask bench instructions` compares; `--record` of this program replaces `baseline.json`. The program starts itself
//! under callgrind, once for each workload, with the workload's unit as its argument.

mod baseline;
mod requests;
mod workload;

use std::hint::black_box;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::json;

use baseline::Baseline;
use workload::Workload;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => judge(false),
        ["--json"] => judge(true),
        ["--record"] => Baseline::of(count_all()?)?.write(),
        ["--run", unit] => run(unit),
        _ => bail!("usage: instruction-counts [--json | --record | --run UNIT]"),
    }
}

/// Runs one workload, under callgrind if this was started so, and prints how many units it counted.
#[expect(
    clippy::print_stdout,
    reason = "the figure is what this is started for"
)]
fn run(unit: &str) -> anyhow::Result<()> {
    let mut workloads = workload::ALL.iter();
    let workload = workloads.find(|workload| workload.unit == unit);
    let workload = workload.with_context(|| format!("`{unit}` is not a workload"))?;
    let mut executor = tokio::runtime::Builder::new_current_thread();
    let units = (workload.run)(&executor.enable_all().build()?)?;
    println!("{units}");
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "the figures are what this is started for"
)]
fn judge(as_json: bool) -> anyhow::Result<()> {
    let baseline = Baseline::read()?;
    let counts = count_all()?;
    let mut worse = Vec::new();
    for (unit, count) in &counts {
        let before = baseline.count(unit);
        if before.is_some_and(|before| baseline::is_worse(before, *count)) {
            worse.push(*unit);
        }
        if !as_json {
            let before = before.map_or("new".to_owned(), |before| format!("was {before}"));
            println!("{count:>12}  {unit} ({before})");
        }
    }
    if as_json {
        let units: serde_json::Map<_, _> = (counts.iter())
            .map(|(unit, count)| ((*unit).to_owned(), json!(count)))
            .collect();
        println!("{}", json!({ "instructions": units, "worse": worse }));
    }
    // Another compiler makes other instructions, which says nothing about our code.
    let rustc = baseline::rustc()?;
    if rustc != baseline.rustc {
        eprintln!(
            "not judged: the figures are of {}, this is {rustc}",
            baseline.rustc
        );
    } else if !worse.is_empty() {
        bail!(
            "more than {} % more instructions than in {}: {}",
            baseline::PERCENT_MAX,
            baseline::FILE,
            worse.join(", ")
        );
    }
    Ok(())
}

/// Returns the instructions of each workload, per unit.
fn count_all() -> anyhow::Result<Vec<(&'static str, u64)>> {
    let count = |workload: &Workload| Ok((workload.unit, count_under_callgrind(workload.unit)?));
    workload::ALL.iter().map(count).collect()
}

fn count_under_callgrind(unit: &str) -> anyhow::Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg("--toggle-collect=*count_instructions*");
    command.arg(std::env::current_exe()?).args(["--run", unit]);
    let output = command
        .output()
        .context("`valgrind` cannot be started; install it (`apt-get install valgrind`)")?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("`{unit}` failed: {}", log.trim());
    }
    let units: u64 = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    let collected = log.lines().find_map(|line| line.split_once("Collected : "));
    let (_, collected) = collected.context("callgrind printed no count")?;
    Ok(collected.trim().parse::<u64>()? / units)
}

/// Does the part of a workload whose instructions count.
fn counted(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let (mut work, mut result) = (Some(work), Ok(()));
    count_instructions(&mut || {
        if let Some(work) = work.take() {
            result = work();
        }
    });
    result
}

/// Callgrind counts from the call of this function until it returns. Nothing else may have this in its name.
#[inline(never)]
fn count_instructions(work: &mut dyn FnMut()) {
    black_box(());
    work();
    // Otherwise the call above could become a jump, and this function would have returned before.
    black_box(());
}
