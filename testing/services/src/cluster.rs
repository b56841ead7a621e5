//! A PostgreSQL server with a folder of its own, which may be stopped and killed as one likes.
//!
//! It listens on loopback and on a socket in its folder, trusts whoever reaches it there, and keeps the
//! durability that PostgreSQL comes with: what is measured against it is real.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use free_ports::{free_ports, of_this_process};

use super::account::Account;
use harness::workspace::output_of;

/// The server and its folder: data, socket, log, port.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    account: Account,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It breaks off what is under way and writes everything out.
    Fast,
    /// It is gone at once, as after a crash, and recovers when it starts.
    Immediate,
}

impl Cluster {
    /// In this folder, which must be the servers' own.
    pub(super) fn new(folder: PathBuf, account: Account) -> Self {
        Self { folder, account }
    }

    /// In a new folder among the temporary files, and running. Both go with the value that is returned.
    pub fn private(name: &str) -> anyhow::Result<PrivateCluster> {
        let account = Account::find();
        let folder = std::env::temp_dir().join(format!("superstep-{name}-{}", std::process::id()));
        account.make_folder(&folder)?;
        let cluster = PrivateCluster(Self::new(folder, account));
        cluster.make()?;
        cluster.start()?;
        cluster.make_database()?;
        Ok(cluster)
    }

    /// Where its files are. Only its account and root can read them.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn port_file(&self) -> PathBuf {
        self.folder.join("port")
    }

    fn port(&self) -> anyhow::Result<u16> {
        let text = fs::read_to_string(self.port_file())?;
        text.trim().parse().context("the port is not a number")
    }

    /// Returns the address that clients connect to.
    pub fn url(&self) -> anyhow::Result<String> {
        Ok(format!(
            "postgres://{USER}@127.0.0.1:{}/{DATABASE}",
            self.port()?
        ))
    }

    fn program(&self, name: &str) -> anyhow::Result<Command> {
        let programs = programs().context("PostgreSQL's programs are not installed")?;
        self.account.command(&programs.join(name), &self.folder)
    }

    /// The process that serves our data. A file that a dead server left behind names none, or a stranger.
    pub(super) fn process(&self) -> Option<u32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        let process: u32 = text.lines().next()?.trim().parse().ok()?;
        let serves = fs::read_link(format!("/proc/{process}/cwd")).ok()?;
        (serves == fs::canonicalize(self.data()).ok()?).then_some(process)
    }

    /// Makes the cluster apart and moves it into place, so that what is in place is whole.
    pub(super) fn make(&self) -> anyhow::Result<()> {
        if self.data().join("PG_VERSION").exists() {
            return Ok(());
        }
        let unfinished = self.folder.join("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        let encoding = ["--encoding=UTF8", "--locale=C", "--no-instructions"];
        let mut initdb = self.program("initdb")?;
        initdb.arg("--pgdata").arg(&unfinished).args(encoding);
        initdb.args(["--username", USER, "--auth=trust"]);
        output_of(&mut initdb)?;
        fs::rename(&unfinished, self.data())?;
        Ok(())
    }

    /// At a port that is free now.
    pub(super) fn start(&self) -> anyhow::Result<()> {
        let port = free_ports(of_this_process(PORTS), 1)?[0];
        fs::write(self.port_file(), port.to_string())?;
        self.start_again()
    }

    /// At the port it had.
    pub fn start_again(&self) -> anyhow::Result<()> {
        // PostgreSQL would look at the number only, and a stranger may have it by now.
        let left_behind = self.data().join("postmaster.pid");
        if left_behind.exists() {
            fs::remove_file(&left_behind)?;
        }
        let mut start = self.program("pg_ctl")?;
        start.args(["start", "--wait", "--silent", "--timeout=60", "--pgdata"]);
        start.arg(self.data()).arg("--log").arg(self.log());
        start.arg("--options").arg(self.settings()?);
        // Its output goes to the log; the server would hold a pipe open for as long as it runs.
        let started = start.stdout(Stdio::null()).status()?;
        if !started.success() {
            bail!("it did not start; see {}", self.log().display());
        }
        Ok(())
    }

    /// Says whether it ran.
    pub fn stop(&self, stop: Stop) -> anyhow::Result<bool> {
        if self.process().is_none() {
            return Ok(false);
        }
        let mut command = self.program("pg_ctl")?;
        command.args(["stop", "--wait", "--silent", "--mode", stop.as_str()]);
        output_of(command.arg("--pgdata").arg(self.data()))?;
        Ok(true)
    }

    /// Where it listens, and how many it serves. All else is as it comes.
    fn settings(&self) -> anyhow::Result<String> {
        Ok(format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={} -c max_connections={CONNECTIONS_MAX}",
            self.port()?,
            self.folder.display()
        ))
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(super) fn make_database(&self) -> anyhow::Result<()> {
        let port = self.port()?.to_string();
        let mut ask = self.program("psql")?;
        ask.args(["-h", "127.0.0.1", "-p", &port, "-U", USER, "-d", "postgres"]);
        let find = format!("SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'");
        if !output_of(ask.args(["-Atqc", &find]))?.trim().is_empty() {
            return Ok(());
        }
        let mut create = self.program("createdb")?;
        create.args(["-h", "127.0.0.1", "-p", &port, "-U", USER, DATABASE]);
        output_of(&mut create).map(drop)
    }
}

impl Stop {
    fn as_str(self) -> &'static str {
        match self {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        }
    }
}

/// One that nobody else knows of, and that nothing is left of.
#[derive(Debug)]
pub struct PrivateCluster(Cluster);

impl std::ops::Deref for PrivateCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.0
    }
}

impl Drop for PrivateCluster {
    fn drop(&mut self) {
        // If it does not run there is nothing to stop; and what cannot be removed is among the temporary files.
        let _ = self.0.stop(Stop::Immediate);
        let _ = fs::remove_dir_all(&self.0.folder);
    }
}

/// Where the programs of the wanted version are, or of the next newer one.
pub(super) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?;
    let number = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
    versions
        .filter_map(|entry| number(&entry.ok()?.file_name()))
        .filter(|version| *version >= VERSION)
        .map(|version| {
            (
                version,
                Path::new(VERSIONS).join(version.to_string()).join("bin"),
            )
        })
        .filter(|(_, programs)| programs.join("initdb").exists())
        .min()
        .map(|(_, programs)| programs)
}

pub(super) const VERSION: u32 = 15;
const VERSIONS: &str = "/usr/lib/postgresql";
const PORTS: u16 = 21_000;
const USER: &str = "superstep";
const DATABASE: &str = "superstep";
const CONNECTIONS_MAX: u32 = 200;
