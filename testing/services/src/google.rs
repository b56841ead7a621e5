//! A server that speaks the REST interfaces of Gmail and Google's calendar, from npm. Its state is in memory, so tests that change it
//! start their own from the same program.

use std::fs;
use std::time::Duration;

use free_ports::free_ports;

use super::daemon::{Daemon, Life};
use super::npm::Package;
use super::single::Server;
use super::{Places, http};

#[derive(Debug)]
pub(super) struct Google {
    daemon: Daemon,
}

impl Google {
    pub(super) fn new(places: &Places) -> Self {
        let daemon = Daemon {
            program: "google-emulate",
            folder: places.addresses.join(PACKAGE.name),
        };
        Self { daemon }
    }
}

impl Server for Google {
    fn name(&self) -> &'static str {
        PACKAGE.name
    }

    fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    fn prepare(&self) -> anyhow::Result<()> {
        PACKAGE.prepare(&self.daemon)
    }

    fn start(&self) -> anyhow::Result<()> {
        let mut command = PACKAGE.command(&self.daemon)?;
        fs::write(self.daemon.folder.join(SEED.0), SEED.1)?;
        let port = free_ports(PORT, 1)?[0];
        self.daemon.keep_port(port)?;
        command.args(["start", "--service", "google"]).args([
            "--port",
            &port.to_string(),
            "--seed",
            SEED.0,
        ]);
        self.daemon.start(&mut command, Life::Own)
    }

    fn is_well(&self, port: u16) -> bool {
        http::answers(port, "/")
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn url(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}")
    }

    fn more(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        Ok(vec![
            ("program", PACKAGE.program()?.display().to_string()),
            ("loopback", PACKAGE.loopback()?.display().to_string()),
        ])
    }
}

const PORT: u16 = 28_400;
const SEED: (&str, &str) = ("seed.yaml", include_str!("google/seed.yaml"));
pub(super) const PACKAGE: Package = Package {
    name: "google",
    package: include_str!("google/package.json"),
    lock: include_str!("google/package-lock.json"),
    program: "node_modules/emulate/dist/index.js",
    about: "a server for Gmail and Calendar (about 5 s)",
};
