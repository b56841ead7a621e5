//! The processes that `cargo xtask crash` kills, races, freezes and leaves without a database or a cluster.
//!
//! Modes on one store, all with `--store ADDRESS --ledger ADDRESS` but the first:
//!
//! - `ledger`: counts every effect and never drops a duplicate; prints its address.
//! - `run --thread T [--seed N]`: runs or recovers one thread with effects; prints how it stopped.
//! - `serve`: takes commands on stdin: starts threads that ask, answers them, inspects them.
//! - `contend --thread T --seed N`: does to one thread whatever can be done, against others, until it is killed.
//! - `runs --thread T --runs N --pace-us N [--seed N]`: many runs at an even pace; prints how each ended.
//! - `hold --thread T --runs N [--seed N]`: many threads that stay in their first node until the line `go`.
//! - `recover [--seed N]`: recovers what nobody runs, until it is killed.
//! - `http --listen ADDRESS --runs N`: the server, with graphs of the trials; executes N runs at once. Prints `ready`. With
//!   `--ingress URL,URL,… --redis URL`, the workers of a cluster execute them.
//!
//! Modes on a cluster, with `--store postgres:SCHEMA:URL --ledger ADDRESS` where they need them:
//!
//! - `prepare`: creates the tables of the threads.
//! - `worker --listen ADDRESS --name NAME [--version old|new]`: a worker. Prints `ready`; ends at SIGTERM when its runs are
//!   suspended.
//! - `http-worker --listen ADDRESS --redis URL`: a worker with the graphs of the server. Prints `ready`.
//! - `clients --ingress URL,URL,… [--seed N]`: takes commands on stdin, many at once, and prints what became of each.
//! - `judge --seed N --programs N`: prints what the ledger and the store hold of random programs. Reads on stdin when
//!   something was killed.
//! - `register --admin URL --worker URL`: registers the workers with Restate.
//!
//! `--mutant NAME` breaks a process on purpose, to show that the trials notice. Every mode ends when stdin is closed, so
//! that no process outlives the one that started it.
//!
//! Try it: `cargo run -p crash-workers -- ledger`

#![expect(
    clippy::print_stdout,
    reason = "its lines on stdout are what the trials read"
)]

mod cluster;
mod ledger;
mod local;
mod server;

use std::error::Error;
use std::io::Read;

use tokio::runtime::Builder;

type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let args = Args::parse(std::env::args().skip(1))?;
    match args.mode.as_str() {
        "ledger" => {
            end_with_parent();
            ledger::serve()
        }
        // One thread each: many of these processes share a machine, and start often.
        "run" | "serve" | "contend" | "runs" | "hold" | "recover" => Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(local::perform(&args)),
        "prepare" | "worker" | "clients" | "judge" | "register" => Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(cluster::perform(&args)),
        "http" | "http-worker" => Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(server::perform(&args)),
        unknown => Err(format!(
            "there is no mode `{unknown}`: use ledger, run, serve, contend, runs, hold, recover, http, prepare, worker, http-worker, clients, judge or register"
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
    programs: u64,
    listen: String,
    name: String,
    ingress: Vec<String>,
    redis: String,
    admin: String,
    worker: String,
    version: String,
    mutant: String,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, AnyError> {
        let mut args = Self {
            mode: words.next().ok_or("a mode is needed")?,
            version: "old".to_owned(),
            mutant: "none".to_owned(),
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
                "--programs" => args.programs = value.parse()?,
                "--listen" => args.listen = value,
                "--name" => args.name = value,
                "--ingress" => args.ingress = value.split(',').map(str::to_owned).collect(),
                "--redis" => args.redis = value,
                "--admin" => args.admin = value,
                "--worker" => args.worker = value,
                "--version" => args.version = value,
                "--mutant" => args.mutant = value,
                unknown => return Err(format!("`{unknown}` is not an option").into()),
            }
        }
        Ok(args)
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
