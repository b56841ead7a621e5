//! The Redis server that tests share, from Debian's packages. It carries live tokens, so it keeps nothing on the disk.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use free_ports::free_ports;

use super::Places;
use super::daemon::{Daemon, Life};
use super::packages::{find_program, install};
use super::single::Server;

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

/// Loopback, nothing written to the disk, and a bound on what it may hold: a leak shall show as an error.
fn settings(port: u16) -> Vec<String> {
    let line = format!(
        "--bind 127.0.0.1 --port {port} --daemonize no --appendonly no --maxmemory {MEMORY_MAX}"
    );
    let words = line.split(' ').map(str::to_owned);
    words.chain(["--save".to_owned(), String::new()]).collect()
}

fn answers(port: u16) -> bool {
    let ask = || -> std::io::Result<[u8; 5]> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| &answer == b"+PONG")
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
