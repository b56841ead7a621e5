//! The processes of `cargo xtask crash` on a cluster: the workers that it kills, the clients, and who judges them.
//!
//! Modes, all with `--store SCHEMA:URL` (a PostgreSQL) but the last:
//!
//! - `prepare`: makes the tables of the threads and of the ledger.
//! - `serve --listen ADDRESS --name NAME [--version old|new] [--mutant NAME]`: a worker. Says `ready`; ends at SIGTERM when
//!   what is under way has come to a boundary.
//! - `clients --ingress URL,URL,… [--seed N]`: takes commands on stdin, many at once, and says what became of each.
//! - `judge --seed N --programs N`: says what the ledger and the store hold of random programs. Reads on stdin when
//!   something was killed.
//! - `register --admin URL --worker URL`: tells Restate of the workers.
//!
//! `--mutant NAME` breaks a worker on purpose, to show that the trials notice. Every mode ends when stdin is closed, so
//! that no process outlives the one that started it.
//!
//! Try it: `cargo xtask crash cluster --trials 20`

#![expect(
    clippy::print_stdout,
    reason = "its lines on stdout are what the trials read"
)]

mod clients;
mod graphs;
mod judge;
mod ledger;
mod program;
mod register;
mod serve;
mod store;
mod work;

use std::error::Error;
use std::io::Read;

use crate::graphs::Version;
use crate::store::{Mutant, Place};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args = Args::parse(std::env::args().skip(1))?;
    match args.mode.as_str() {
        "prepare" => prepare(&args).await,
        "serve" => serve::serve(&args).await,
        "clients" => clients::clients(&args).await,
        "judge" => judge::judge(&args).await,
        "register" => register::register(&args).await,
        unknown => Err(format!(
            "there is no mode `{unknown}`: use prepare, serve, clients, judge or register"
        )
        .into()),
    }
}

/// A command line, as typed.
#[derive(Default)]
struct Args {
    mode: String,
    store: Place,
    listen: String,
    name: String,
    ingress: Vec<String>,
    admin: String,
    worker: String,
    seed: u64,
    programs: u64,
    version: Version,
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
                "--store" => args.store = value.parse()?,
                "--listen" => args.listen = value,
                "--name" => args.name = value,
                "--ingress" => args.ingress = value.split(',').map(str::to_owned).collect(),
                "--admin" => args.admin = value,
                "--worker" => args.worker = value,
                "--seed" => args.seed = value.parse()?,
                "--programs" => args.programs = value.parse()?,
                "--version" => {
                    args.version = match value.as_str() {
                        "old" => Version::Old,
                        "new" => Version::New,
                        unknown => return Err(format!("there is no version `{unknown}`").into()),
                    }
                }
                "--mutant" => args.mutant = value.parse()?,
                unknown => return Err(format!("`{unknown}` is not an option").into()),
            }
        }
        Ok(args)
    }
}

async fn prepare(args: &Args) -> Result<(), AnyError> {
    args.store.open().await?;
    ledger::Ledger::open(&args.store, "nobody").await?;
    println!("prepared");
    Ok(())
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
