//! An MCP server that we have not written: the protocol's own reference server, from npm. One listens for HTTP; tests that
//! speak over pipes start their own from the same program.
//!
//! What it says of its tools depends on the packages it is made of, and a test pins that. So all of them are pinned.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::daemon::{Daemon, Life};
use super::npm::{npm, remove_folder};
use super::packages::find_program;
use super::ports::free_ports;
use super::{Member, Places, Service, Status, http};
use crate::workspace::{cache, output_of};

#[derive(Debug)]
pub(super) struct Mcp {
    daemon: Daemon,
}

impl Mcp {
    pub(super) fn new(places: &Places) -> Self {
        let daemon = Daemon {
            program: TITLE,
            folder: places.addresses.join(NAME),
        };
        Self { daemon }
    }

    fn start(&self) -> anyhow::Result<()> {
        let node = find_program("node").context("npm is there, and Node.js is not")?;
        let folder = &self.daemon.folder;
        fs::create_dir_all(folder)?;
        fs::write(folder.join(LOOPBACK.0), LOOPBACK.1)?;
        let port = free_ports(PORT, 1)?[0];
        self.daemon.keep_port(port)?;
        // From its first moment it goes by the name that we look for, and keeps it.
        let named = folder.join(TITLE);
        if fs::symlink_metadata(&named).is_ok() {
            fs::remove_file(&named)?;
        }
        symlink(node, &named)?;
        let mut command = Command::new(named);
        command
            .arg(format!("--title={TITLE}"))
            .args(["--import", &format!("./{}", LOOPBACK.0)])
            .arg(program()?)
            .arg("streamableHttp")
            .env_clear()
            .env("PORT", port.to_string());
        self.daemon.start(&mut command, Life::Own)
    }

    fn wait(&self) -> anyhow::Result<()> {
        let asked = Instant::now();
        while !self.is_well() {
            if !self.daemon.runs() || asked.elapsed() > PATIENCE {
                bail!("it does not answer; {}", self.daemon.last_words());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn is_well(&self) -> bool {
        let port = self.daemon.port();
        port.is_ok_and(|port| http::answers(port, PATH))
    }
}

impl Service for Mcp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn up(&self) -> anyhow::Result<()> {
        if !is_installed(&folder()?) {
            // What runs is of other versions.
            self.daemon.stop()?;
            install(&folder()?)?;
        }
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
        let url = port.map(|port| format!("http://127.0.0.1:{port}{PATH}"));
        let mut member = Member::with_url(NAME, url);
        if member.runs {
            let program = program()?.display().to_string();
            member.urls.push(("program", program));
        }
        Ok(Status {
            healthy: member.runs && self.is_well(),
            remark: None,
            members: vec![member],
        })
    }
}

fn program() -> anyhow::Result<PathBuf> {
    Ok(folder()?.join(PROGRAM))
}

fn folder() -> anyhow::Result<PathBuf> {
    Ok(cache()?.join("services/programs").join(NAME))
}

/// Whether what is there is what the list of packages says. It is moved there when it is whole.
fn is_installed(folder: &Path) -> bool {
    fs::read_to_string(folder.join(LOCK.0)).is_ok_and(|lock| lock == LOCK.1)
}

fn install(folder: &Path) -> anyhow::Result<()> {
    let unfinished = folder.with_extension("unfinished");
    remove_folder(&unfinished)?;
    fs::create_dir_all(&unfinished)?;
    for (name, text) in [PACKAGE, LOCK] {
        fs::write(unfinished.join(name), text)?;
    }
    let mut npm = npm(NAME, "ci")?;
    eprintln!("{NAME}: installing the reference server with npm (30 MB, about 10 s)");
    output_of(npm.current_dir(&unfinished))
        .context("it cannot be installed; npm has to reach a registry")?;
    remove_folder(folder)?;
    fs::rename(&unfinished, folder)?;
    Ok(())
}

const NAME: &str = "mcp";
/// What the process is called: Node.js has called its own differently over the years.
const TITLE: &str = "mcp-everything";
const PATH: &str = "/mcp";
const PORT: u16 = 28_300;
const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAM: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const PACKAGE: (&str, &str) = ("package.json", include_str!("mcp/package.json"));
const LOCK: (&str, &str) = ("package-lock.json", include_str!("mcp/package-lock.json"));
const LOOPBACK: (&str, &str) = ("loopback.mjs", include_str!("mcp/loopback.mjs"));

#[test]
fn every_package_is_pinned_and_comes_from_whatever_registry_is_set() {
    let lock: serde_json::Value = serde_json::from_str(LOCK.1).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(package["integrity"].is_string(), "{name}");
        assert!(package.get("resolved").is_none(), "{name}");
    }
}
