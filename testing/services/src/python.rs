//! Pythons of their own, each with the packages of one service.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::{find_program, install};
use harness::workspace::output_of;

/// A Python of its own in this folder, made by another one. What is half installed there is made again.
pub fn make_python(name: &str, python: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let is_there = match python.contains('/') {
        true => Path::new(python).is_file(),
        false => find_program(python).is_some(),
    };
    if !is_there || !has_venv(python) {
        eprintln!("{name}: installing Python's module venv (about 20 s)");
        install(&["python3", "python3-venv"])?;
    }
    let mut make = Command::new(python);
    output_of(make.args(["-m", "venv", "--clear"]).arg(folder))?;
    Ok(folder.join("bin/python"))
}

fn has_venv(python: &str) -> bool {
    output_of(Command::new(python).args(["-c", "import venv, ensurepip"])).is_ok()
}
