//! Programs from npm. Node.js comes from the system, whatever version it has.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::daemon::Daemon;
use super::packages::{find_program, install};
use harness::folder::replace_folder;
use harness::workspace::{cache, output_of};

/// A server from npm, with everything it is made of pinned.
#[derive(Debug)]
pub(super) struct Package {
    /// The service that it is for, and its folder.
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    pub(super) lock: &'static str,
    /// Its program, from the folder.
    pub(super) program: &'static str,
    /// What it is and how long it takes, for whoever waits.
    pub(super) about: &'static str,
}

impl Package {
    fn folder(&self) -> anyhow::Result<PathBuf> {
        Ok(cache()?.join("services/programs").join(self.name))
    }

    pub(super) fn program(&self) -> anyhow::Result<PathBuf> {
        Ok(self.folder()?.join(self.program))
    }

    /// What makes a server of Node.js listen on loopback alone, whatever it meant to.
    pub(super) fn loopback(&self) -> anyhow::Result<PathBuf> {
        Ok(self.folder()?.join(LOOPBACK.0))
    }

    fn files(&self) -> [(&'static str, &'static str); 3] {
        [
            ("package.json", self.package),
            ("package-lock.json", self.lock),
            LOOPBACK,
        ]
    }

    /// Installs it if what is there is not what the files say; what runs then is of other versions, and is stopped. It is moved
    /// to its place when it is whole.
    pub(super) fn prepare(&self, daemon: &Daemon) -> anyhow::Result<()> {
        let folder = self.folder()?;
        if is_installed(&folder, &self.files()) {
            return Ok(());
        }
        daemon.stop()?;
        eprintln!("{}: installing {} with npm", self.name, self.about);
        install_npm(self.name, &folder, &self.files())
    }

    /// Node.js with the program, on loopback, without our environment. From its first moment it goes by the name that the
    /// daemon is looked for by, and keeps it: Node.js has called its own process differently over the years.
    pub(super) fn command(&self, daemon: &Daemon) -> anyhow::Result<Command> {
        let node = find_program("node").context("npm is there, and Node.js is not")?;
        fs::create_dir_all(&daemon.folder)?;
        let named = daemon.folder.join(daemon.program);
        if fs::symlink_metadata(&named).is_ok() {
            fs::remove_file(&named)?;
        }
        symlink(node, &named)?;
        let mut command = Command::new(named);
        command
            .arg(format!("--title={}", daemon.program))
            .arg("--import")
            .arg(self.loopback()?)
            .arg(self.program()?)
            .env_clear();
        Ok(command)
    }
}

/// Returns whether a folder was installed with these files.
pub fn is_installed(folder: &Path, files: &[(&str, &str)]) -> bool {
    let is_there = |(name, text): &(&str, &str)| {
        fs::read_to_string(folder.join(name)).is_ok_and(|there| there == *text)
    };
    files.iter().all(is_there)
}

/// Installs what a lock file among `files` pins, next to the files.
pub fn install_npm(name: &str, folder: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    let mut npm = npm(name, "ci")?;
    replace_folder(folder, |unfinished| {
        for (name, text) in files {
            fs::write(unfinished.join(name), text)?;
        }
        output_of(npm.current_dir(unfinished))
            .context("it cannot be installed; npm has to reach a registry")?;
        Ok(())
    })
}

/// `npm` with this word, without scripts of packages and without reports to anybody. Installed if it is missing.
pub fn npm(service: &str, word: &str) -> anyhow::Result<Command> {
    if find_program("npm").is_none() {
        eprintln!("{service}: installing npm (a minute or two)");
        install(&["npm"]).context("install Node.js with npm, any version")?;
    }
    let mut npm = Command::new("npm");
    npm.args([word, "--ignore-scripts", "--no-audit", "--no-fund"]);
    Ok(npm)
}

const LOOPBACK: (&str, &str) = ("loopback.mjs", include_str!("npm/loopback.mjs"));

#[test]
fn every_package_is_pinned_and_comes_from_whatever_registry_is_set() {
    for package in [&super::mcp::PACKAGE, &super::google::PACKAGE] {
        let lock: serde_json::Value = serde_json::from_str(package.lock).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["integrity"].is_string(), "{name}");
            assert!(package.get("resolved").is_none(), "{name}");
        }
    }
}
