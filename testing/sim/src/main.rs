//! The seeded simulator from the command line; `cargo xtask crash sim` calls this.
//!
//! `cargo run --release -p simulator -- --trials 1000 --seed 1`
//! prints progress to stderr and one JSON object to stdout. `--explain SEED` tells one trial in words, `--sweep SEED` kills
//! one program at every point of it, `--mutant NAME` breaks the world on purpose.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use superstep_conformance::sim::{
    Counts, Mutant, catch, explain, simulate, simulate_mutant, sweep,
};

struct Args {
    trials: u64,
    seed: u64,
    explain: Option<u64>,
    sweep: Option<u64>,
    mutant: Option<Mutant>,
}

fn main() -> ExitCode {
    let args = match parse() {
        Ok(args) => args,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    // A panic of the machine is a finding that the report tells; its backtrace would hide the others.
    std::panic::set_hook(Box::new(|_| {}));
    match (args.explain, args.sweep) {
        (Some(seed), _) => tell(seed, args.mutant),
        (None, Some(seed)) => tell_sweep(seed),
        (None, None) => run(&args),
    }
}

fn parse() -> Result<Args, String> {
    let mut args = Args {
        trials: 1_000,
        seed: 1,
        explain: None,
        sweep: None,
        mutant: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given
            .next()
            .ok_or_else(|| format!("`{name}` takes a value"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("`{value}` is not a number"))
        };
        match name.as_str() {
            "--trials" => args.trials = number()?,
            "--seed" => args.seed = number()?,
            "--explain" => args.explain = Some(number()?),
            "--sweep" => args.sweep = Some(number()?),
            "--mutant" => {
                let named = Mutant::named(&value);
                args.mutant = Some(named.ok_or_else(|| format!("there is no mutant `{value}`"))?);
            }
            _ => return Err(format!("`{name}` is not understood")),
        }
    }
    Ok(args)
}

/// One trial, in words.
fn tell(seed: u64, mutant: Option<Mutant>) -> ExitCode {
    let told = explain(seed, mutant);
    for line in &told.trace {
        eprintln!("{line}");
    }
    for violation in &told.violations {
        eprintln!("VIOLATION {violation}");
    }
    ExitCode::from(u8::from(!told.violations.is_empty()))
}

/// One program, killed at every point.
fn tell_sweep(seed: u64) -> ExitCode {
    let begun = Instant::now();
    let swept = sweep([seed]);
    for (_, point, how, violation) in &swept.violations {
        eprintln!("point {point}, {how}: {violation}");
    }
    eprintln!("{} points, {:?}", swept.points, begun.elapsed());
    ExitCode::from(u8::from(!swept.violations.is_empty()))
}

fn run(args: &Args) -> ExitCode {
    let begun = Instant::now();
    let (mut findings, counts) = all_trials(args, begun);
    let rate = args.trials as f64 / begun.elapsed().as_secs_f64();
    let (mutants, escaped) = if args.mutant.is_none() {
        all_mutants(args.seed)
    } else {
        (json!([]), 0)
    };
    let swept = if args.trials > 1 && args.mutant.is_none() {
        let swept = sweep(SWEPT);
        for (seed, point, how, violation) in &swept.violations {
            findings.add(
                *seed,
                &format!("sweep, point {point}, {how}: {violation}"),
                1,
            );
        }
        json!({"programs": swept.programs, "points": swept.points, "violations": swept.violations.len()})
    } else {
        json!(null)
    };
    let twice = [simulate(args.seed), simulate(args.seed)].map(|told| told.trace_hash);
    let differs = u64::from(twice[0] != twice[1]);
    let counted: BTreeMap<_, _> = counts.named().into_iter().collect();
    let violations = findings.seeds + escaped + differs;
    let report = json!({
        "trials": args.trials,
        "seed": args.seed,
        "violations": violations,
        "detail": {
            "programs": args.trials,
            "counts": counted,
            "trials_per_second": rate.round(),
            "found": findings.told,
            "sweep": swept,
            "mutants": mutants,
            "mutants_escaped": escaped,
            "trace_hash": twice.map(|hash| format!("{hash:016x}")),
        },
    });
    print(&report);
    ExitCode::from(u8::from(violations > 0))
}

/// Every trial is one thread of its own world, so as many are made at once as there are cores.
fn all_trials(args: &Args, begun: Instant) -> (Findings, Counts) {
    let (next, found) = (
        AtomicU64::new(0),
        Mutex::new((BTreeMap::new(), Counts::default())),
    );
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= args.trials {
                return;
            }
            let seed = args.seed.wrapping_add(n);
            let told = match args.mutant {
                Some(mutant) => simulate_mutant(seed, mutant),
                None => simulate(seed),
            };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.1 += told.counts;
            if let Some(first) = told.violations.first() {
                let what = (seed, first.to_string(), told.violations.len());
                eprintln!("seed {seed}: {}", what.1);
                found.0.insert(n, what);
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut last_word = begun;
        while !workers.iter().all(|worker| worker.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            if last_word.elapsed() >= Duration::from_secs(2) {
                last_word = Instant::now();
                let done = next.load(Ordering::Relaxed).min(args.trials);
                let rate = done as f64 / begun.elapsed().as_secs_f64();
                let bad = found.lock().unwrap_or_else(PoisonError::into_inner).0.len();
                eprintln!("{done} trials, {bad} with violations, {rate:.0}/s");
            }
        }
    });
    let (found, counts) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut findings = Findings::default();
    for (seed, first, count) in found.values() {
        findings.add(*seed, first, *count);
    }
    (findings, counts)
}

/// Programs whose every point is killed: with fan-outs, questions, subgraphs, retries, handlers and loops.
const SWEPT: [u64; 6] = [2, 5, 9, 12, 18, 40];

/// How many seeds a mutant may survive.
const MUTANT_SEEDS_MAX: u64 = 1_500;

fn all_mutants(first: u64) -> (serde_json::Value, u64) {
    let mut rows = Vec::new();
    let mut escaped = 0;
    for mutant in Mutant::ALL {
        let caught = catch(mutant, first, MUTANT_SEEDS_MAX);
        let by = mutant.caught_by().name();
        match caught.caught_after {
            Some(seeds) => eprintln!(
                "mutant {}: caught by {by} after {seeds} seeds",
                mutant.name()
            ),
            None => {
                escaped += 1;
                eprintln!("mutant {}: NOT caught by {by}", mutant.name());
            }
        }
        rows.push(json!({
            "mutant": mutant.name(),
            "check": by,
            "caught": caught.caught_after.is_some(),
            "seeds": caught.caught_after,
            "seed": caught.seed,
        }));
    }
    (rows.into(), escaped)
}

#[derive(Default)]
struct Findings {
    seeds: u64,
    told: Vec<serde_json::Value>,
}

impl Findings {
    fn add(&mut self, seed: u64, first: &str, count: usize) {
        self.seeds += 1;
        eprintln!("seed {seed}: {first}\n  rerun: cargo xtask crash sim --seed {seed} --trials 1");
        if self.told.len() < 50 {
            self.told.push(json!({
                "seed": seed,
                "violation": first,
                "violations": count,
                "rerun": format!("cargo xtask crash sim --seed {seed} --trials 1"),
            }));
        }
    }
}

#[expect(clippy::print_stdout, reason = "the report is data")]
fn print(report: &serde_json::Value) {
    println!("{report}");
}
