//! Programs from npm. Node.js comes from the system, whatever version it has.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::packages::{find_program, install};

/// `npm` with this word, without scripts of packages and without reports to anybody. Installed if it is missing.
pub(super) fn npm(service: &str, word: &str) -> anyhow::Result<Command> {
    if find_program("npm").is_none() {
        eprintln!("{service}: installing npm (a minute or two)");
        install(&["npm"]).context("install Node.js with npm, any version")?;
    }
    let mut npm = Command::new("npm");
    npm.args([word, "--ignore-scripts", "--no-audit", "--no-fund"]);
    Ok(npm)
}

/// Removes a folder if it is there.
pub(super) fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}
