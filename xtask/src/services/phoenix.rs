//! Arize Phoenix, which shows traces: for the test that sends some and reads them back. Large, so only when it is asked for.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::daemon::{Daemon, Life};
use super::http;
use super::model::make_python;
use super::ports::free_ports;
use super::{Member, Places, Service, Status};
use crate::workspace::{cache, output_of};

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

    fn wait(&self) -> anyhow::Result<()> {
        let asked = Instant::now();
        while !self.is_well() {
            if !self.daemon.runs() || asked.elapsed() > PATIENCE {
                bail!("it does not answer; {}", self.daemon.last_words());
            }
            sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn is_well(&self) -> bool {
        let port = self.daemon.port();
        port.is_ok_and(|port| http::is_ok(port, "/healthz"))
    }
}

impl Service for Phoenix {
    fn name(&self) -> &'static str {
        super::PHOENIX
    }

    fn up(&self) -> anyhow::Result<()> {
        // Without its port nobody finds it.
        if self.daemon.port().is_err() {
            self.daemon.stop()?;
        }
        if !self.daemon.runs() {
            self.start()?;
        }
        self.wait()
    }

    fn down(&self) -> anyhow::Result<bool> {
        self.daemon.stop()
    }

    fn status(&self) -> anyhow::Result<Status> {
        let port = self.daemon.port().ok().filter(|_| self.daemon.runs());
        let url = port.map(|port| format!("http://127.0.0.1:{port}"));
        Ok(Status {
            healthy: port.is_some() && self.is_well(),
            remark: port.is_some().then(|| PACKAGE.to_owned()),
            members: vec![Member::with_url(super::PHOENIX, url)],
        })
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
    let python = make_python(super::PHOENIX, &venv)?;
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
