//! Arize Phoenix, which shows traces: for the test that sends some and reads them back. Large, so only when it is asked for.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use free_ports::free_ports;

use super::Places;
use super::daemon::{Daemon, Life};
use super::http;
use super::python::make_python;
use super::single::Server;
use harness::workspace::{cache, output_of};

#[derive(Debug)]
pub(super) struct Phoenix {
    daemon: Daemon,
}

impl Phoenix {
    pub(super) fn new(places: &Places) -> Self {
        let daemon = Daemon {
            program: "python",
            folder: places.addresses.join(super::PHOENIX),
        };
        Self { daemon }
    }
}

impl Server for Phoenix {
    fn name(&self) -> &'static str {
        super::PHOENIX
    }

    fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    fn start(&self) -> anyhow::Result<()> {
        let python = python()?;
        fs::create_dir_all(&self.daemon.folder)?;
        // Its gRPC port is open to other machines, whatever it is told, but nobody sends anything there.
        let ports = free_ports(PORT, 2)?;
        self.daemon.keep_port(ports[0])?;
        let mut command = Command::new(python);
        command
            .args(["-m", "phoenix.server.main", "serve"])
            .env("PHOENIX_HOST", "127.0.0.1")
            .env("PHOENIX_PORT", ports[0].to_string())
            .env("PHOENIX_GRPC_PORT", ports[1].to_string())
            .env("PHOENIX_WORKING_DIR", self.daemon.folder.join("data"))
            .env("PHOENIX_TELEMETRY_ENABLED", "false")
            .env("PHOENIX_ALLOW_EXTERNAL_RESOURCES", "false");
        self.daemon.start(&mut command, Life::Own)
    }

    fn is_well(&self, port: u16) -> bool {
        http::is_ok(port, "/healthz")
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn url(&self, port: u16) -> String {
        format!("http://127.0.0.1:{port}")
    }

    fn remark(&self) -> Option<String> {
        Some(PACKAGE.to_owned())
    }
}

/// A Python with Phoenix in it.
fn python() -> anyhow::Result<PathBuf> {
    let folder = cache()?.join("phoenix");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let venv = folder.join("venv");
    if venv.join(PACKAGE).is_file() {
        return Ok(venv.join("bin/python"));
    }
    let python = make_python(super::PHOENIX, "python3", &venv)?;
    eprintln!(
        "{}: installing {PACKAGE} with pip (850 MB, about 3 min)",
        super::PHOENIX
    );
    output_of(Command::new(&python).args(["-m", "pip", "-q", "install", PACKAGE]))?;
    File::create(venv.join(PACKAGE))?;
    Ok(python)
}

const PACKAGE: &str = "arize-phoenix==20.26.1";
const PORT: u16 = 28_200;
const PATIENCE: Duration = Duration::from_secs(120);
