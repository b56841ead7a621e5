//! A PostgreSQL cluster of our own, from Debian's packages.
//!
//! It listens on loopback and on a socket in its folder, trusts whoever reaches it there, and keeps the
//! durability that PostgreSQL comes with: what is measured against it is real. Its data stays when it is
//! stopped, and may be deleted at any time.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::account::Account;
use super::{Places, Service};
use crate::workspace::output_of;

/// The cluster.
#[derive(Debug)]
pub(super) struct Postgres {
    /// Ours, and the server's: data, socket, log.
    folder: PathBuf,
    parent: PathBuf,
    account: Account,
}

impl Postgres {
    pub(super) fn new(places: &Places) -> Self {
        Self {
            folder: places.data.join("postgres"),
            parent: places.data.clone(),
            account: places.account,
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn port_file(&self) -> PathBuf {
        self.folder.join("port")
    }

    fn port(&self) -> anyhow::Result<u16> {
        let text = fs::read_to_string(self.port_file())?;
        text.trim().parse().context("the port is not a number")
    }

    fn url(&self) -> anyhow::Result<String> {
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
    fn process(&self) -> Option<u32> {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        let process: u32 = text.lines().next()?.trim().parse().ok()?;
        let serves = fs::read_link(format!("/proc/{process}/cwd")).ok()?;
        (serves == fs::canonicalize(self.data()).ok()?).then_some(process)
    }

    /// Makes the cluster apart and moves it into place, so that what is in place is whole.
    fn make(&self) -> anyhow::Result<()> {
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

    fn start(&self) -> anyhow::Result<()> {
        // PostgreSQL would look at the number only, and a stranger may have it by now.
        let left_behind = self.data().join("postmaster.pid");
        if left_behind.exists() {
            fs::remove_file(&left_behind)?;
        }
        fs::write(self.port_file(), free_port()?.to_string())?;
        let mut start = self.program("pg_ctl")?;
        start.args(["start", "--wait", "--silent", "--timeout=60", "--pgdata"]);
        start.arg(self.data()).arg("--log").arg(self.log());
        start.arg("--options").arg(self.settings()?);
        // Its output goes to the log; the server would hold a pipe open for as long as it runs.
        let started = start.stdout(std::process::Stdio::null()).status()?;
        if !started.success() {
            bail!("it did not start; see {}", self.log().display());
        }
        Ok(())
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

    fn make_database(&self) -> anyhow::Result<()> {
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

impl Service for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn up(&self) -> anyhow::Result<String> {
        if programs().is_none() {
            install(self.account)?;
        }
        self.account.make_folder(&self.parent)?;
        self.account.make_folder(&self.folder)?;
        self.make()?;
        if self.process().is_none() {
            self.start()?;
        }
        self.make_database()?;
        self.url()
    }

    fn down(&self) -> anyhow::Result<bool> {
        if self.process().is_none() {
            return Ok(false);
        }
        let mut stop = self.program("pg_ctl")?;
        stop.args(["stop", "--wait", "--silent", "--mode=fast", "--pgdata"]);
        output_of(stop.arg(self.data()))?;
        Ok(true)
    }

    fn status(&self) -> anyhow::Result<Option<String>> {
        self.process().map(|_| self.url()).transpose()
    }
}

/// Any free one, kept for as long as the server runs.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Where the programs of the wanted version are, or of the next newer one.
fn programs() -> Option<PathBuf> {
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

/// Installs the packages, without the cluster that they would make and start for the whole machine.
fn install(account: Account) -> anyhow::Result<()> {
    let package = format!("postgresql-{VERSION}");
    if !account.is_root() {
        bail!("install the package {package} first, or run this as root once");
    }
    eprintln!("postgres: installing {package}");
    apt(&["update", "-qq"])?;
    apt(&[
        "install",
        "-y",
        "-qq",
        "--no-install-recommends",
        "postgresql-common",
    ])?;
    let settings = Path::new(CLUSTER_SETTINGS);
    let off = settings.join("superstep.conf");
    if settings.is_dir() {
        fs::write(&off, "create_main_cluster = false\nstart_conf = 'manual'\n")?;
    }
    let installed = apt(&["install", "-y", "-qq", "--no-install-recommends", &package]);
    // Only this one installation was to go without.
    let _ = fs::remove_file(&off);
    installed
}

fn apt(args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    output_of(&mut command).map(drop)
}

const VERSION: u32 = 15;
const VERSIONS: &str = "/usr/lib/postgresql";
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.d";
const USER: &str = "superstep";
const DATABASE: &str = "superstep";
const CONNECTIONS_MAX: u32 = 200;
