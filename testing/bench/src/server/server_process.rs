//! A server that is measured: ours or a peer's, as a process of its own.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use free_ports::free_port;
use services::database::Database;
use tokio::runtime::Runtime;

use super::connection::Connection;
use crate::lab::Lab;
use crate::process::{cpu_of, resident_of};
use crate::side::{OURS, Running, Side};

/// A server that answers. Dropping it ends it, and then deletes its database.
#[derive(Debug)]
pub(super) struct ServerProcess {
    pub(super) side: Side,
    pub(super) address: SocketAddr,
    pub(super) version: String,
    /// How many runs it was asked for.
    pub(super) runs: usize,
    program: ServerProgram,
    /// Held for the program, and so declared after it.
    _database: Option<Database>,
}

#[derive(Debug)]
enum ServerProgram {
    /// It tells what it used by itself, with a finer grain than the system has for others.
    Ours(Running),
    Other {
        process: SpawnedServer,
        /// What it had used of the processors when that was last asked.
        cpu: Duration,
    },
}

/// What a server used of the processors since that was last asked, and the memory that it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerUsage {
    pub(super) cpu_s: f64,
    pub(super) bytes: f64,
}

impl ServerProcess {
    /// Starts ours over the SQLite file of a folder, which may have threads already.
    pub(super) fn over_file(lab: &Lab, folder: &Path) -> anyhow::Result<Self> {
        Self::ours(lab, folder, None, &[])
    }

    /// Starts ours for several tenants, each with a limit of requests per second. Their API keys are in its folder.
    pub(super) fn for_tenants(
        lab: &Lab,
        folder: &Path,
        tenants: usize,
        limit: u32,
    ) -> anyhow::Result<Self> {
        let settings = [format!("tenants={tenants}"), format!("limit={limit}")];
        Self::ours(lab, folder, None, &settings)
    }

    /// Starts ours over an empty store of this kind.
    pub(super) fn over_empty_store(lab: &Lab, store: &str) -> anyhow::Result<Self> {
        let database = (store == "postgres").then(|| lab.database());
        Self::ours(lab, &lab.fresh_folder()?, database.transpose()?, &[])
    }

    fn ours(
        lab: &Lab,
        folder: &Path,
        database: Option<Database>,
        settings: &[String],
    ) -> anyhow::Result<Self> {
        let address = free_address();
        let url = database.as_ref().map(Database::url);
        let mut all = vec![format!("listen={address}")];
        all.extend_from_slice(settings);
        let running = lab.server(folder, url, &all)?;
        Ok(Self {
            side: OURS,
            address,
            version: running.version.clone(),
            runs: 0,
            program: ServerProgram::Ours(running),
            _database: database,
        })
    }

    /// Takes a peer that answers.
    pub(super) fn peer(
        side: Side,
        process: SpawnedServer,
        version: String,
        database: Option<Database>,
    ) -> Self {
        Self {
            side,
            address: process.address,
            version,
            runs: 0,
            program: ServerProgram::Other {
                process,
                cpu: Duration::ZERO,
            },
            _database: database,
        }
    }

    pub(super) fn usage(&mut self) -> anyhow::Result<ServerUsage> {
        match &mut self.program {
            ServerProgram::Ours(running) => {
                let round = running.round()?;
                Ok(ServerUsage {
                    cpu_s: round.cpu_s,
                    bytes: round.bytes.context("the server tells its memory")?,
                })
            }
            ServerProgram::Other { process, cpu } => {
                let before = std::mem::replace(cpu, cpu_of(process.pid())?);
                Ok(ServerUsage {
                    cpu_s: cpu.saturating_sub(before).as_secs_f64(),
                    bytes: process.resident()?,
                })
            }
        }
    }
}

/// A server of a program that knows nothing of benchmarks. Dropping it ends it.
#[derive(Debug)]
pub(super) struct SpawnedServer {
    child: Child,
    /// Where it writes what it reports.
    log: PathBuf,
    pub(super) address: SocketAddr,
    /// From its start to its first reply.
    pub(super) started_in: Duration,
}

impl SpawnedServer {
    /// Starts a server, and waits until it answers at this path. It reports to a log in the folder, which must exist.
    pub(super) fn start(
        tokio: &Runtime,
        mut command: Command,
        address: SocketAddr,
        path: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let log = folder.join("server.log");
        let written = File::create(&log)?;
        command.stdin(Stdio::null());
        command.stdout(written.try_clone()?).stderr(written);
        let begun = Instant::now();
        let mut server = Self {
            child: command.spawn()?,
            log,
            address,
            started_in: Duration::ZERO,
        };
        while !tokio.block_on(answers(address, path)) {
            if let Some(status) = server.child.try_wait()? {
                bail!("it stopped at once ({status}): {}", server.last_words());
            }
            if begun.elapsed() > START_MAX {
                bail!("it does not answer: {}", server.last_words());
            }
            std::thread::sleep(POLL);
        }
        server.started_in = begun.elapsed();
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the bytes that it has in memory.
    pub(super) fn resident(&self) -> anyhow::Result<f64> {
        Ok(resident_of(self.pid())? as f64)
    }

    /// Returns the end of its log.
    fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for SpawnedServer {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn answers(address: SocketAddr, path: &str) -> bool {
    let asked = async {
        let mut connection = Connection::open(address).await?;
        connection.call("GET", path, "").await
    };
    asked.await.is_ok()
}

/// Returns an address on this machine at which nothing listens.
pub(super) fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

/// Python takes its time.
const START_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(1);
const LAST_LINES: usize = 20;
