//! The process that `cargo xtask crash` kills, races, freezes and leaves without a database.
//!
//! Modes, all with `--store ADDRESS --ledger ADDR` but the first:
//!
//! - `ledger`: counts every effect and never drops a duplicate; prints where it listens.
//! - `run --thread T [--seed N]`: runs or recovers one thread with effects, says how it stopped.
//! - `serve`: takes commands on stdin: starts threads that ask, answers them, looks at them.
//! - `contend --thread T --seed N`: does to one thread whatever can be done, against others, until it is killed.
//! - `runs --thread T --runs N --pace-us N [--seed N]`: many runs at an even pace; says how each ended.
//!
//! `--mutant NAME` breaks its checkpointer on purpose, to show that the trials notice. Every mode ends when
//! stdin is closed, so that no process outlives the one that started it.
//!
//! Try it: `cargo run -p crash-workers --bin crash_worker -- ledger`

#![expect(
    clippy::print_stdout,
    reason = "its lines on stdout are what the trials read"
)]

mod contend;
mod contested;
mod graphs;
mod inspect;
mod ledger;
mod run;
mod runs;
mod serve;
mod watched;

use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use superstep::{Checkpointer, Runtime};
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;

use crate::ledger::Ledger;
use crate::watched::{Mutant, Watched};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AnyError> {
    let args = Args::parse(std::env::args().skip(1))?;
    // It reads stdin itself.
    if args.mode != "serve" {
        end_with_parent();
    }
    if args.mode == "ledger" {
        return ledger::serve();
    }
    let (runtime, ledger) = open(&args).await?;
    match args.mode.as_str() {
        "run" => run::run(&runtime, &ledger, &args.thread, args.seed).await,
        "serve" => serve::serve(&runtime, &ledger).await,
        "contend" => contend::contend(&runtime, &ledger, &args.thread, args.seed).await,
        "runs" => runs::runs(&runtime, &ledger, &args).await,
        unknown => Err(format!(
            "there is no mode `{unknown}`: use ledger, run, serve, contend or runs"
        )
        .into()),
    }
}

/// A command line, as typed.
#[derive(Default)]
struct Args {
    mode: String,
    store: String,
    ledger: String,
    thread: String,
    seed: u64,
    runs: u64,
    pace_us: u64,
    mutant: Mutant,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, AnyError> {
        let mode = words.next().ok_or("a mode is needed")?;
        let mut args = Self {
            mode,
            ..Self::default()
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("`{name}` needs a value"))?;
            match name.as_str() {
                "--store" => args.store = value,
                "--ledger" => args.ledger = value,
                "--thread" => args.thread = value,
                "--seed" => args.seed = value.parse()?,
                "--runs" => args.runs = value.parse()?,
                "--pace-us" => args.pace_us = value.parse()?,
                "--mutant" => args.mutant = value.parse()?,
                unknown => return Err(format!("`{unknown}` is not an option").into()),
            }
        }
        Ok(args)
    }
}

async fn open(args: &Args) -> Result<(Runtime, Arc<Ledger>), AnyError> {
    let ledger = Arc::new(Ledger::connect(&args.ledger).await?);
    let store = open_store(&args.store, args.mutant).await?;
    let watched = Watched::new(store, ledger.clone(), args.mutant);
    let runtime = Runtime::builder(watched).patience(args.mutant.patience());
    Ok((runtime.build(), ledger))
}

/// Opens a store by its address; a further backend is a further arm.
async fn open_store(address: &str, mutant: Mutant) -> Result<Box<dyn Checkpointer>, AnyError> {
    match address.split_once(':') {
        Some(("sqlite", path)) => open_sqlite(&PathBuf::from(path)),
        Some(("postgres", rest)) => {
            let (schema, url) = rest.split_once(':').ok_or("use postgres:SCHEMA:URL")?;
            let mut options = superstep_postgres::Options::default();
            options.schema = schema.to_owned();
            // Up to nine of these processes share a server.
            options.connections = 4;
            options.patience = options.patience.min(mutant.patience());
            Ok(Box::new(Postgres::connect_with(url, options).await?))
        }
        _ => Err(
            format!("`{address}` is not a store: use sqlite:PATH or postgres:SCHEMA:URL").into(),
        ),
    }
}

fn open_sqlite(path: &Path) -> Result<Box<dyn Checkpointer>, AnyError> {
    // A process that was frozen in the middle of a write holds the file; whoever comes next waits for it.
    let begun = Instant::now();
    loop {
        match Sqlite::open(path) {
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            opened => return Ok(Box::new(opened?)),
        }
    }
}

/// Nobody is left to read what this process finds: it ends.
fn end_with_parent() {
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        // An error is an end too.
        let _ = std::io::stdin().read_to_end(&mut rest);
        std::process::exit(9);
    });
}

const PATIENCE: Duration = Duration::from_secs(30);
