//! What contests are held with: the programs of all sides, and a folder and a database for each.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use services::database::Database;
use tempfile::TempDir;

use super::contest::Contest;
use super::peers::Peers;
use super::recorder;
use super::side::{Program, Running, Side};
use harness::workspace::{cargo, output_of};

#[derive(Debug)]
pub(super) struct Lab {
    pub(super) quick: bool,
    folder: TempDir,
    /// Programs that are built beside us.
    built: RefCell<BTreeSet<&'static str>>,
    /// None if only ours and the floors are wanted.
    peers: Option<Peers>,
    databases: RefCell<Vec<Database>>,
    started: Cell<u32>,
}

impl Lab {
    pub(super) fn new(quick: bool, against_peers: bool) -> anyhow::Result<Self> {
        Ok(Self {
            quick,
            folder: TempDir::with_prefix("superstep-bench-")?,
            built: RefCell::default(),
            peers: against_peers.then(Peers::install).transpose()?,
            databases: RefCell::default(),
            started: Cell::new(0),
        })
    }

    pub(super) fn has_peers(&self) -> bool {
        self.peers.is_some()
    }

    /// Whether that side can be started here.
    pub(super) fn has(&self, side: Side) -> bool {
        self.has_peers() || !side.is_peer()
    }

    /// A size for a full run, or the one for a quick look.
    pub(super) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Medians are taken of at least five.
    pub(super) fn rounds(&self) -> usize {
        self.size(5, 1)
    }

    /// Where a goal is near to what the disk does, short turns and many: its mood changes within seconds.
    pub(super) fn short_rounds(&self) -> usize {
        self.size(11, 1)
    }

    /// How long a round of a chain goes on.
    pub(super) fn seconds(&self) -> String {
        format!("seconds={}", if self.quick { 0.3 } else { 1.0 })
    }

    /// Where everything that is measured is written.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a side in a folder and a database of its own.
    pub(super) fn start(&self, side: Side, contest: &Contest<'_>) -> anyhow::Result<Running> {
        let folder = self.fresh_folder()?;
        let mut command = self.program(side.program)?;
        command
            .arg(contest.work)
            .arg(contest.store)
            .args(&contest.settings)
            .args(side.settings)
            .env("BENCH_FOLDER", &folder);
        let mut url = None;
        if contest.store == "postgres" {
            let database = Database::create(self.started.get())?;
            command.env("BENCH_POSTGRES", database.url());
            url = Some(database.url().to_owned());
            self.databases.borrow_mut().push(database);
        }
        if side.writes_same_rows() {
            recorder::prepare(&folder, url.as_deref())
                .context("what ours writes cannot be recorded")?;
        }
        Running::start(command).with_context(|| format!("{} cannot be started", side.label))
    }

    /// Starts a worker that listens at this address, over a database that others made.
    pub(super) fn worker(
        &self,
        program: Program,
        folder: &Path,
        url: &str,
        address: &str,
    ) -> anyhow::Result<Running> {
        let mut command = self.program(program)?;
        command.args(["worker", "postgres"]);
        command.arg(format!("listen={address}"));
        command.env("BENCH_FOLDER", folder);
        command.env("BENCH_POSTGRES", url);
        Running::start(command).with_context(|| format!("{program:?} cannot be started"))
    }

    /// Starts our server at this address: over the file in a folder, or over a database.
    pub(super) fn server(
        &self,
        folder: &Path,
        url: Option<&str>,
        settings: &[String],
    ) -> anyhow::Result<Running> {
        let mut command = self.program(Program::Ours)?;
        let store = url.map_or("sqlite", |_| "postgres");
        command.args(["server", store]);
        command.args(settings);
        command.env("BENCH_FOLDER", folder);
        command.envs(url.map(|url| ("BENCH_POSTGRES", url)));
        Running::start(command).context("our server cannot be started")
    }

    /// An empty folder of its own.
    pub(super) fn fresh_folder(&self) -> anyhow::Result<PathBuf> {
        self.started.set(self.started.get() + 1);
        let folder = self.folder.path().join(self.started.get().to_string());
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// A database of its own.
    pub(super) fn database(&self) -> anyhow::Result<Database> {
        self.started.set(self.started.get() + 1);
        Database::create(self.started.get())
    }

    /// What the sides of a contest left behind; they have ended.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        self.databases.borrow_mut().clear();
        for entry in std::fs::read_dir(self.folder.path())? {
            std::fs::remove_dir_all(entry?.path())?;
        }
        Ok(())
    }

    fn program(&self, program: Program) -> anyhow::Result<Command> {
        let peers = || self.peers.as_ref().context("the peers are not installed");
        Ok(match program {
            Program::Ours => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("side");
                command
            }
            Program::Floor => Command::new(self.beside("bench-floor")?),
            Program::Bare => Command::new(self.beside("bench-restate")?),
            Program::Python => peers()?.python(),
            Program::JavaScript => peers()?.javascript(),
            Program::AdkGraph => peers()?.rust("adk-graph"),
            Program::GraphFlow => peers()?.rust("graph-flow"),
            Program::AgentServer | Program::Aegra => bail!("a server does no rounds"),
        })
    }

    /// Built as we were, beside us.
    fn beside(&self, package: &'static str) -> anyhow::Result<PathBuf> {
        let us = std::env::current_exe()?;
        if self.built.borrow_mut().insert(package) {
            // The folder of a profile is called after it.
            let profile = us.parent().and_then(Path::file_name);
            let profile = profile.context("this program lies in no folder")?;
            let mut build = cargo();
            build.args(["build", "--quiet", "--package", package, "--profile"]);
            output_of(build.arg(profile))?;
        }
        Ok(us.with_file_name(package))
    }
}
