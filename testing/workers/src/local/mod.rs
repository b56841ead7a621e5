//! Modes of processes that share one store: each drives its threads itself.

mod contend;
mod contested;
mod graphs;
mod hold;
mod inspect;
mod recover;
mod run;
mod runs;
mod serve;
pub(crate) mod watched;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use superstep::{Checkpointer, RunOptions, Runtime};
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;

use self::watched::{Mutant, Watched};
use crate::ledger::Ledger;
use crate::{AnyError, Args, end_with_parent};

pub(crate) async fn perform(args: &Args) -> Result<(), AnyError> {
    // These read stdin themselves.
    if !["serve", "hold"].contains(&args.mode.as_str()) {
        end_with_parent();
    }
    let (runtime, ledger) = open(args).await?;
    match args.mode.as_str() {
        "run" => run::run(&runtime, &ledger, &args.thread, args.seed).await,
        "serve" => serve::serve(&runtime, &ledger).await,
        "hold" => hold::hold(&runtime, &ledger, args).await,
        "recover" => recover::recover(&runtime, &ledger, args).await,
        "contend" => contend::contend(&runtime, &ledger, &args.thread, args.seed).await,
        _ => runs::runs(&runtime, &ledger, args).await,
    }
}

async fn open(args: &Args) -> Result<(Runtime, Arc<Ledger>), AnyError> {
    let ledger = Arc::new(Ledger::connect(args).await?);
    let mutant: Mutant = args.mutant.parse()?;
    let store = open_store(&args.store, mutant).await?;
    let watched = Watched::new(store, ledger.clone(), mutant);
    let runtime = Runtime::builder(watched)
        .retry_deadline(mutant.patience())
        .lease(mutant.lease())
        // A trial may kill often within one superstep; that is no poison.
        .run_options(RunOptions::default().recoveries_max(1_000));
    Ok((runtime.build(), ledger))
}

async fn open_store(address: &str, mutant: Mutant) -> Result<Box<dyn Checkpointer>, AnyError> {
    match OpenStore::open(address, mutant).await? {
        OpenStore::Sqlite(store) => Ok(Box::new(store)),
        OpenStore::Postgres(store) => Ok(Box::new(store)),
    }
}

/// A database by its address; a further backend is a further variant.
pub(crate) enum OpenStore {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl OpenStore {
    pub(crate) async fn open(address: &str, mutant: Mutant) -> Result<Self, AnyError> {
        match address.split_once(':') {
            Some(("sqlite", path)) => Ok(Self::Sqlite(open_sqlite(&PathBuf::from(path))?)),
            Some(("postgres", rest)) => {
                let (schema, url) = rest.split_once(':').ok_or("use postgres:SCHEMA:URL")?;
                let mut options = superstep_postgres::Options::default();
                options.schema = schema.to_owned();
                // Up to nine of these processes share a server.
                options.connections = 4;
                options.patience = options.patience.min(mutant.patience());
                let store = Postgres::connect_with(url, options).await?;
                Ok(Self::Postgres(store))
            }
            _ => Err(
                format!("`{address}` is not a store: use sqlite:PATH or postgres:SCHEMA:URL")
                    .into(),
            ),
        }
    }
}

fn open_sqlite(path: &Path) -> Result<Sqlite, AnyError> {
    // A process that was frozen in the middle of a write holds the file; the next one waits for it.
    let begun = Instant::now();
    loop {
        match Sqlite::open(path) {
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            opened => return Ok(opened?),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
