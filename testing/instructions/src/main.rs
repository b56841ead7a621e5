//! Counts the instructions of the runtime's hot paths, and compares them with the committed figures.
//!
//! Wall-clock times of a shared machine differ by more than a regression does. Instruction counts do not: callgrind counts the
//! same for the same program, whatever else runs. So a small regression is seen when it is made.
//!
//! `cargo xtask bench instructions` and `instructions-server` compare; `--record` replaces the figures of `baseline.json`. The
//! program starts itself under callgrind, with a workload's unit as its argument.

mod baseline;
mod callgrind;
#[cfg(feature = "server")]
mod requests;
mod stores;
mod workload;

use anyhow::{Context, bail};
use serde_json::json;

use baseline::{Baseline, Count, OtherCompiler, Part};
use workload::Workload;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["--run", unit, rounds] = words[..] {
        return run(unit, rounds.parse()?);
    }
    let mut args = Args::default();
    for word in words {
        match word {
            "--server" => args.server = true,
            "--json" => args.json = true,
            "--record" => args.record = true,
            "--strict" => args.strict = true,
            _ => bail!("usage: instruction-counts [--server] [--json] [--record | --strict]"),
        }
    }
    let part = match args.server {
        true => Part::Server,
        false => Part::Runtime,
    };
    let counts = count_all(part)?;
    let rustc = baseline::rustc()?;
    if args.record {
        let mut baseline = Baseline::read().unwrap_or_default();
        baseline.replace(part, rustc, &counts);
        return baseline.write();
    }
    let baseline = Baseline::read()?;
    print(&baseline, part, &counts, args.json);
    let other_compiler = match args.strict {
        true => OtherCompiler::Fail,
        false => OtherCompiler::Report,
    };
    if let Some(note) = baseline.judge(part, &counts, &rustc, other_compiler)? {
        eprintln!("{note}");
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Args {
    server: bool,
    json: bool,
    record: bool,
    /// Whether figures of another compiler are an error.
    strict: bool,
}

/// Runs one workload, and prints how many units that were.
#[expect(
    clippy::print_stdout,
    reason = "the figure is what this is started for"
)]
fn run(unit: &str, rounds: u64) -> anyhow::Result<()> {
    let mut workloads = [Part::Runtime, Part::Server]
        .into_iter()
        .flat_map(workloads_of);
    let workload = workloads.find(|workload| workload.unit == unit);
    let workload = workload.with_context(|| format!("`{unit}` is not a workload"))?;
    let mut executor = tokio::runtime::Builder::new_current_thread();
    let units = (workload.run)(&executor.enable_all().build()?, rounds)?;
    println!("{units}");
    Ok(())
}

fn workloads_of(part: Part) -> &'static [Workload] {
    match part {
        Part::Runtime => workload::ALL,
        #[cfg(feature = "server")]
        Part::Server => requests::ALL,
        #[cfg(not(feature = "server"))]
        Part::Server => &[],
    }
}

fn count_all(part: Part) -> anyhow::Result<Vec<Count>> {
    let workloads = workloads_of(part);
    if workloads.is_empty() {
        bail!("this program was built without the feature `server`");
    }
    let counted = workloads.iter().map(|workload| {
        let figures = callgrind::count(workload)?;
        Ok((workload.unit, figures))
    });
    counted.collect()
}

#[expect(
    clippy::print_stdout,
    reason = "the figures are what this is started for"
)]
fn print(baseline: &Baseline, part: Part, counts: &[Count], as_json: bool) {
    if as_json {
        let units: serde_json::Map<_, _> = (counts.iter())
            .map(|(unit, figures)| {
                let figures = json!({
                    "instructions": figures.instructions,
                    "allocations": figures.allocations,
                });
                ((*unit).to_owned(), figures)
            })
            .collect();
        let worse = baseline.worse(part, counts);
        println!("{}", json!({ "instructions": units, "worse": worse }));
        return;
    }
    println!("instructions  allocations");
    for (unit, figures) in counts {
        let before = baseline.instructions(part, unit);
        let before = before.map_or("new".to_owned(), |before| format!("was {before}"));
        let (instructions, allocations) = (figures.instructions, figures.allocations);
        println!("{instructions:>12}  {allocations:>11.1}  {unit} ({before})");
    }
}
