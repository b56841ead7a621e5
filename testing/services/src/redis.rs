//! The Redis server that tests share, from Debian's packages. It carries live tokens, so it keeps nothing on the disk.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use free_ports::{free_port, free_ports};
use harness::folder::remove_folder;

use super::Places;
use super::daemon::{Daemon, Life};
use super::packages::{find_program, install};
use super::single::{Server, wait_until};

#[derive(Debug)]
pub(super) struct Redis {
    daemon: Daemon,
}

impl Redis {
    pub(super) fn new(places: &Places) -> Self {
        let daemon = Daemon {
            program: PROGRAM,
            folder: places.addresses.join(NAME),
        };
        Self { daemon }
    }

    fn program() -> anyhow::Result<PathBuf> {
        if let Some(program) = find_program(PROGRAM) {
            return Ok(program);
        }
        eprintln!("{NAME}: installing {PROGRAM} (about 10 s)");
        install(&[PROGRAM])?;
        find_program(PROGRAM).context("the package redis-server has no program redis-server")
    }
}

impl Server for Redis {
    fn name(&self) -> &'static str {
        NAME
    }

    fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    fn start(&self) -> anyhow::Result<()> {
        let program = Self::program()?;
        fs::create_dir_all(&self.daemon.folder)?;
        let port = free_ports(PORT, 1)?[0];
        self.daemon.keep_port(port)?;
        let mut command = Command::new(program);
        command.args(settings(port));
        self.daemon.start(&mut command, Life::Own)
    }

    fn is_well(&self, port: u16) -> bool {
        answers(port)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn url(&self, port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }
}

/// A Redis in a new folder among the temporary files, which may be emptied and killed as one likes. It goes with this value.
#[derive(Debug)]
pub struct PrivateRedis {
    daemon: Daemon,
    port: u16,
}

impl PrivateRedis {
    /// Starts one, and waits until it answers.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        let folder = format!("superstep-{name}-redis-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder)?;
        let redis = Self {
            daemon: Daemon {
                program: PROGRAM,
                folder,
            },
            port: free_port(),
        };
        redis.daemon.keep_port(redis.port)?;
        redis.start_again()?;
        Ok(redis)
    }

    /// Returns the address that clients connect to.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it at the port it had, and waits until it answers. It holds nothing.
    pub fn start_again(&self) -> anyhow::Result<()> {
        let mut command = Command::new(Redis::program()?);
        command.args(settings(self.port));
        self.daemon.start(&mut command, Life::WithUs)?;
        wait_until(&self.daemon, PATIENCE, PATIENCE, answers)
    }

    /// Deletes everything that it holds.
    pub fn flush(&self) -> anyhow::Result<()> {
        let answer = ask(self.port, b"FLUSHALL\r\n").context("Redis cannot be emptied")?;
        ensure!(&answer == b"+OK\r\n", "Redis was not emptied");
        Ok(())
    }

    /// Kills it, as a crash would.
    pub fn kill(&self) -> anyhow::Result<()> {
        self.daemon.kill().map(drop)
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        // What cannot be removed is among the temporary files.
        let _ = self.daemon.kill();
        let _ = remove_folder(&self.daemon.folder);
    }
}

/// Loopback, nothing written to the disk, and a bound on what it may hold: a leak shall show as an error.
fn settings(port: u16) -> Vec<String> {
    let line = format!(
        "--bind 127.0.0.1 --port {port} --daemonize no --appendonly no --maxmemory {MEMORY_MAX}"
    );
    let words = line.split(' ').map(str::to_owned);
    words.chain(["--save".to_owned(), String::new()]).collect()
}

fn answers(port: u16) -> bool {
    ask(port, b"PING\r\n").is_ok_and(|answer| &answer == b"+PONG")
}

/// Sends a command, and returns as much of the answer as tells all.
fn ask(port: u16, command: &[u8]) -> std::io::Result<[u8; 5]> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(command)?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}

const NAME: &str = "redis";
const PROGRAM: &str = "redis-server";
const PORT: u16 = 26_379;
const MEMORY_MAX: &str = "256mb";
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn redis_listens_on_loopback_and_keeps_nothing() {
    assert_eq!(
        settings(26_379).join(" "),
        "--bind 127.0.0.1 --port 26379 --daemonize no --appendonly no --maxmemory 256mb --save "
    );
}
