//! Programs that checks need, each of one version, installed into the cache folder: neither the clone nor what is installed on
//! the machine changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use harness::workspace::{cache, cargo, in_words};

/// Returns where a program of crates.io is, after building it if it is missing. It is quick to build rather than quick: it
/// runs for seconds.
pub(crate) fn install_crate(
    name: &str,
    version: &str,
    features: &[&str],
) -> anyhow::Result<PathBuf> {
    let folder = folder(name, version)?;
    let path = folder.join("bin").join(name);
    if path.is_file() {
        return Ok(path);
    }
    eprintln!("building {name} {version} into the cache folder, once");
    let mut command = cargo();
    command
        .args(["install", name, "--locked", "--version", version])
        .args(features)
        .arg("--root")
        .arg(&folder)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env_remove("CARGO_TARGET_DIR");
    succeed(&mut command)?;
    Ok(path)
}

/// Returns where the folder of a PyPI package that brings a program is, after installing it if it is missing.
pub(crate) fn install_wheel(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let folder = folder(name, version)?;
    let path = folder.join("bin").join(name);
    install_whole(&folder, |unfinished| {
        eprintln!("installing {name} {version} from PyPI into the cache folder, once");
        let mut venv = Command::new("python3");
        succeed(venv.args(["-m", "venv"]).arg(unfinished))
            .context("install Python 3 with its module venv (Debian: python3-venv)")?;
        let mut pip = Command::new(unfinished.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
        succeed(pip.arg(format!("{name}=={version}")))
    })?;
    Ok(path)
}

/// Returns the folder of an npm package, whose dependencies a lock file pins, after installing it if it is missing. `files`
/// are put next to `node_modules`; when one changes, the package is installed again.
pub(crate) fn install_npm(
    name: &str,
    version: &str,
    files: &[(&str, &str)],
) -> anyhow::Result<PathBuf> {
    let folder = folder(name, version)?;
    let is_same = |(file, text): &(&str, &str)| {
        fs::read_to_string(folder.join(file)).is_ok_and(|found| found == *text)
    };
    if !files.iter().all(is_same) && folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    install_whole(&folder, |unfinished| {
        eprintln!("installing {name} {version} from npm into the cache folder, once");
        for (file, text) in files {
            fs::write(unfinished.join(file), text)?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        succeed(npm.current_dir(unfinished)).context("install Node.js 20 or newer with npm")
    })?;
    Ok(folder)
}

/// Installs into a folder that gets its name when it is whole, so that an interrupted installation is never used.
fn install_whole(
    folder: &Path,
    install: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished)?;
    install(&unfinished)?;
    fs::rename(&unfinished, folder)?;
    Ok(())
}

fn folder(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    Ok(cache()?.join("programs").join(format!("{name}-{version}")))
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status();
    let status = status.with_context(|| format!("`{}` cannot be started", in_words(command)))?;
    match status.success() {
        true => Ok(()),
        false => bail!("`{}` failed", in_words(command)),
    }
}

#[test]
fn an_interrupted_installation_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("program");
    let interrupted = install_whole(&place, |unfinished| {
        fs::write(unfinished.join("half"), "")?;
        bail!("interrupted")
    });
    assert!(interrupted.is_err() && !place.exists());
    install_whole(&place, |unfinished| {
        Ok(fs::write(unfinished.join("whole"), "")?)
    })
    .unwrap();
    assert!(place.join("whole").exists() && !place.join("half").exists());
    install_whole(&place, |_| panic!("it is there")).unwrap();
}
