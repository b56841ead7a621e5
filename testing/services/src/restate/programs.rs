//! The programs of Restate, from npm. The packages carry them as they are, so Node.js is needed to install and not to run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::super::npm::npm;
use harness::folder::replace_folder;
use harness::workspace::{cache, output_of};

#[derive(Debug, Clone)]
pub(super) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Installs them if they are missing.
    pub(super) fn find() -> anyhow::Result<Self> {
        let parent = cache()?.join("services/programs");
        fs::create_dir_all(&parent)
            .with_context(|| format!("{} cannot be made", parent.display()))?;
        let programs = Self {
            folder: parent.join(format!("restate-{VERSION}")),
        };
        // Two at once would install into the same folder.
        let lock = File::create(parent.join("lock"))?;
        lock.lock()?;
        if !programs.are_there() {
            replace_folder(&programs.folder, install_into)?;
        }
        if !programs.are_there() {
            bail!(
                "npm has no Restate {VERSION} for this machine ({}); it is made for Linux on x86-64 and 64-bit ARM",
                std::env::consts::ARCH
            );
        }
        Ok(programs)
    }

    /// Without installing anything.
    pub(super) fn installed() -> anyhow::Result<Option<Self>> {
        let folder = cache()?.join(format!("services/programs/restate-{VERSION}"));
        Ok(Some(Self { folder }).filter(Self::are_there))
    }

    pub(super) fn server(&self) -> Command {
        Command::new(self.program(SERVER))
    }

    /// The tool that administers nodes.
    pub(super) fn control(&self) -> Command {
        Command::new(self.program(CONTROL))
    }

    fn are_there(&self) -> bool {
        [SERVER, CONTROL]
            .iter()
            .all(|name| self.program(name).exists())
    }

    fn program(&self, name: &str) -> PathBuf {
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let package = format!("node_modules/@restatedev/{name}-linux-{machine}");
        self.folder.join(package).join("bin").join(name)
    }
}

fn install_into(folder: &Path) -> anyhow::Result<()> {
    let mut npm = npm("restate", "install")?;
    eprintln!("restate: installing {SERVER} and {CONTROL} {VERSION} with npm (about 20 s)");
    npm.arg("--prefix").arg(folder);
    npm.args([SERVER, CONTROL].map(|name| format!("@restatedev/{name}@{VERSION}")));
    output_of(npm.current_dir(folder))
        .map(drop)
        .context("Restate cannot be installed; npm has to reach a registry")
}

/// What the system calls the process, too.
pub(super) const SERVER: &str = "restate-server";
const CONTROL: &str = "restatectl";
const VERSION: &str = "1.7.12";
