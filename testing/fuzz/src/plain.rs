//! The command line of an ordinary build: `fuzz-targets [TARGET] [--seconds N] [--seed N] [--crashes FOLDER]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use fuzz_targets::campaign::{self, Report};
use fuzz_targets::{TARGETS, Target};
use lexopt::prelude::*;
use serde_json::{Value as Json, json};

#[derive(Debug)]
struct Args {
    targets: Vec<&'static Target>,
    time: Duration,
    seed: u64,
    /// Where inputs that break a promise are kept.
    crashes: PathBuf,
    /// Only say which targets there are.
    list: bool,
}

/// Runs the targets one after the other. Prints one JSON object for each, and exits with 1 if a promise was broken.
pub(super) fn main() -> ExitCode {
    let args = match parse(lexopt::Parser::from_env()) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    campaign::silence_panics();
    let mut broken = false;
    for target in args.targets {
        if args.list {
            print(&json!({ "name": target.name, "bytes_max": target.bytes_max }));
            continue;
        }
        match campaign::run(target, args.time, args.seed).and_then(|report| {
            keep(&report, target, &args.crashes)?;
            Ok(report)
        }) {
            Ok(report) => {
                broken |= !report.crashes.is_empty();
                print(&in_json(target, &report));
            }
            Err(error) => {
                eprintln!("`{}` cannot be run: {error}", target.name);
                broken = true;
            }
        }
    }
    ExitCode::from(u8::from(broken))
}

fn parse(mut parser: lexopt::Parser) -> Result<Args, lexopt::Error> {
    let mut args = Args {
        targets: Vec::new(),
        time: Duration::from_secs(2),
        seed: 0,
        crashes: std::env::temp_dir(),
        list: false,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) => {
                let name = name.string()?;
                let target = fuzz_targets::target(&name);
                args.targets
                    .push(target.ok_or_else(|| format!("`{name}` is not a target"))?);
            }
            Long("seconds") => args.time = Duration::from_secs(parser.value()?.parse()?),
            Long("seed") => args.seed = parser.value()?.parse()?,
            Long("crashes") => args.crashes = parser.value()?.into(),
            Long("list") => args.list = true,
            other => return Err(other.unexpected()),
        }
    }
    if args.targets.is_empty() {
        args.targets.extend(TARGETS);
    }
    Ok(args)
}

fn keep(report: &Report, target: &Target, folder: &Path) -> io::Result<()> {
    for (number, crash) in report.crashes.iter().enumerate() {
        let from = crash.name.as_deref().unwrap_or("a mutation");
        eprintln!("`{}` broke on {from}: {}", target.name, crash.why);
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}-crash-{number}", target.name));
        fs::write(&path, &crash.bytes)?;
        eprintln!("the input is in {}", path.display());
    }
    Ok(())
}

fn in_json(target: &Target, report: &Report) -> Json {
    json!({
        "name": target.name,
        "executions": report.executions,
        "seconds": report.took.as_secs_f64(),
        "crashes": report.crashes.len(),
        "corpus": report.corpus,
        "slowest_ms": u64::try_from(report.slowest.as_millis()).unwrap_or(u64::MAX),
    })
}

#[expect(clippy::print_stdout, reason = "`cargo xtask fuzz` reads it")]
fn print(line: &Json) {
    println!("{line}");
}
