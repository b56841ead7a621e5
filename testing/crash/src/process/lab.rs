//! What trials are made with: the worker's binary, the ledger, places where nobody has been.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use serde_json::Value as Json;

use super::Plan;
use super::child::Process;
use super::database::{Address, Database};
use super::ledger::Ledger;
use harness::workspace::{cargo, output_of};

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) ledger: Ledger,
    worker: PathBuf,
    database: Database,
    places: u64,
}

/// Where one try is made: a thread that nobody has used.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) store: Address,
    pub(super) thread: String,
}

impl Lab {
    pub(super) fn new(plan: &Plan) -> anyhow::Result<Self> {
        Self::with(Database::new(plan.backend)?)
    }

    /// With a database that the trial looks after.
    pub(super) fn with(database: Database) -> anyhow::Result<Self> {
        let worker = build_worker()?;
        let ledger = Ledger::start(&worker)?;
        let mut lab = Self {
            ledger,
            worker,
            database,
            places: 0,
        };
        lab.make_tables()?;
        Ok(lab)
    }

    /// Otherwise the first trial would, and be unlike the others.
    fn make_tables(&mut self) -> anyhow::Result<()> {
        let place = self.fresh_place("nobody")?;
        inspect(&mut self.server(&place.store, None)?, "effects", "nobody")?;
        self.ledger.settle()
    }

    pub(super) fn fresh_place(&mut self, name: &str) -> anyhow::Result<Place> {
        self.places += 1;
        Ok(Place {
            store: self.database.fresh(self.places)?,
            thread: format!("{name}-{}", self.places),
        })
    }

    /// A process that runs or recovers one thread.
    pub(super) fn runner(
        &self,
        place: &Place,
        seed: u64,
        mutant: Option<&str>,
    ) -> anyhow::Result<Process> {
        let mut command = self.command("run", &place.store, mutant);
        command.args(["--thread", &place.thread, "--seed", &seed.to_string()]);
        Process::spawn(&mut command)
    }

    /// A process that takes commands.
    pub(super) fn server(&self, store: &Address, mutant: Option<&str>) -> anyhow::Result<Process> {
        Process::spawn(&mut self.command("serve", store, mutant))
    }

    pub(super) fn command(&self, mode: &str, store: &Address, mutant: Option<&str>) -> Command {
        let mut command = self.program(mode);
        command.args(["--store", store.as_str()]);
        command.args(["--ledger", self.ledger.address()]);
        command.args(["--mutant", mutant.unwrap_or("none")]);
        command
    }

    /// The program in one of its modes.
    pub(super) fn program(&self, mode: &str) -> Command {
        let mut command = Command::new(&self.worker);
        command.arg(mode);
        command
    }
}

/// What the store holds of a thread.
pub(super) fn inspect(server: &mut Process, graph: &str, thread: &str) -> anyhow::Result<Json> {
    server.tell(&format!("inspect {graph} {thread}"))?;
    Ok(serde_json::from_str(&server.line()?)?)
}

/// Builds the program whose modes are all the processes of the trials.
pub(super) fn build_worker() -> anyhow::Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--package", PACKAGE]);
    build.args(["--quiet", "--message-format", "json"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let messages = output_of(&mut build)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Json>(line).ok())
        .filter(|message| message["target"]["name"] == PACKAGE)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo built no `{PACKAGE}`"))
}

const PACKAGE: &str = "crash-workers";
