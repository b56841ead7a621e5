//! What trials are made with: the worker's binary, a folder that goes away, the ledger, fresh databases.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use serde_json::Value as Json;
use tempfile::TempDir;

use super::child::Process;
use super::ledger::Ledger;
use super::{Backend, Plan};
use crate::services;
use crate::workspace::{cargo, output_of};

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) ledger: Ledger,
    worker: PathBuf,
    folder: TempDir,
    backend: Backend,
    stores: u64,
}

/// The address of a database.
#[derive(Debug, Clone)]
pub(super) struct Store(String);

impl Lab {
    pub(super) fn new(plan: &Plan) -> anyhow::Result<Self> {
        let worker = build_worker()?;
        let ledger = Ledger::start(Process::spawn(Command::new(&worker).arg("ledger"))?)?;
        Ok(Self {
            ledger,
            worker,
            folder: TempDir::with_prefix("superstep-crash-")?,
            backend: plan.backend,
            stores: 0,
        })
    }

    /// A database that nobody has used; it is made by the first worker that opens it. The one before may be dropped.
    pub(super) fn fresh_store(&mut self) -> anyhow::Result<Store> {
        match self.backend {
            Backend::Sqlite => {
                let folder = |number: u64| self.folder.path().join(number.to_string());
                if self.stores > 1 {
                    std::fs::remove_dir_all(folder(self.stores - 1))?;
                }
                self.stores += 1;
                std::fs::create_dir(folder(self.stores))?;
                let path = folder(self.stores).join("threads.db");
                Ok(Store(format!("sqlite:{}", path.display())))
            }
            Backend::Postgres => {
                if self.stores > 1 {
                    drop_schema(self.stores - 1)?;
                }
                self.stores += 1;
                let url = services::address("postgres")?;
                Ok(Store(format!("postgres:{}:{url}", schema(self.stores))))
            }
        }
    }

    /// A process that runs or recovers one thread.
    pub(super) fn runner(
        &self,
        store: &Store,
        thread: &str,
        seed: u64,
        mutant: Option<&str>,
    ) -> anyhow::Result<Process> {
        let mut command = self.command("run", store, mutant);
        Process::spawn(command.args(["--thread", thread, "--seed", &seed.to_string()]))
    }

    /// A process that takes commands.
    pub(super) fn server(&self, store: &Store, mutant: Option<&str>) -> anyhow::Result<Process> {
        Process::spawn(&mut self.command("serve", store, mutant))
    }

    fn command(&self, mode: &str, store: &Store, mutant: Option<&str>) -> Command {
        let mut command = Command::new(&self.worker);
        command.args([mode, "--store", &store.0, "--ledger", self.ledger.address()]);
        command.args(["--mutant", mutant.unwrap_or("none")]);
        command
    }
}

/// What the store holds of a thread.
pub(super) fn inspect(server: &mut Process, graph: &str, thread: &str) -> anyhow::Result<Json> {
    server.tell(&format!("inspect {graph} {thread}"))?;
    Ok(serde_json::from_str(&server.line()?)?)
}

fn build_worker() -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build.args([
        "build",
        "--package",
        "superstep",
        "--example",
        "crash_worker",
    ]);
    build.args(["--quiet", "--message-format", "json"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let messages = output_of(&mut build)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Json>(line).ok())
        .filter(|message| message["target"]["name"] == "crash_worker")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo built no `crash_worker`")
}

/// A schema of its own for every database: of this process, and of nobody else's trials.
fn schema(number: u64) -> String {
    format!("crash_{}_{number}", std::process::id())
}

fn drop_schema(number: u64) -> anyhow::Result<()> {
    let statement = format!("DROP SCHEMA IF EXISTS {} CASCADE", schema(number));
    let mut psql = Command::new("psql");
    psql.arg(services::address("postgres")?);
    psql.args(["--quiet", "--no-psqlrc", "--command", &statement]);
    psql.env("PGOPTIONS", "--client-min-messages=warning");
    output_of(&mut psql).map(drop)
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.backend == Backend::Postgres {
            for number in self.stores.saturating_sub(1)..=self.stores {
                // What is left behind is in nobody's way: the next trials have schemas of their own.
                let _ = drop_schema(number);
            }
        }
    }
}
