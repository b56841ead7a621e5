//! Programs that checks need, each of one version, installed into the cache folder: neither the clone nor what is installed on
//! the machine changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use harness::folder::replace_folder;
use harness::workspace::{cache, cargo, in_words};
use services::make_python;

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
        let python = make_python(name, "python3", unfinished)?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
        succeed(pip.arg(format!("{name}=={version}")))
    })?;
    Ok(path)
}

/// Returns the Python that has these packages of PyPI, each pinned as `NAME==VERSION` in a line, after installing them if they
/// are missing. `version` changes whenever the lines do.
pub(crate) fn install_requirements(
    name: &str,
    version: &str,
    requirements: &str,
) -> anyhow::Result<PathBuf> {
    let folder = folder(name, version)?;
    install_whole(&folder, |unfinished| {
        eprintln!("installing {name} from PyPI into the cache folder, once");
        let python = make_python(name, "python3", unfinished)?;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
        succeed(pip.args(requirements.lines()))
    })?;
    Ok(folder.join("bin/python"))
}

/// Returns the folder of an npm package, whose dependencies a lock file pins, after installing it if it is missing. `files`
/// are put next to `node_modules`; when one changes, the package is installed again.
pub(crate) fn install_npm(
    name: &str,
    version: &str,
    files: &[(&str, &str)],
) -> anyhow::Result<PathBuf> {
    let folder = folder(name, version)?;
    if !services::is_installed(&folder, files) {
        eprintln!("installing {name} {version} from npm into the cache folder, once");
        services::install_npm(name, &folder, files)?;
    }
    Ok(folder)
}

/// Installs into a folder, unless it is there: it gets its name when it is whole.
fn install_whole(
    folder: &Path,
    install: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    match folder.is_dir() {
        true => Ok(()),
        false => replace_folder(folder, install),
    }
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
        std::fs::write(unfinished.join("half"), "")?;
        bail!("interrupted")
    });
    assert!(interrupted.is_err() && !place.exists());
    install_whole(&place, |unfinished| {
        Ok(std::fs::write(unfinished.join("whole"), "")?)
    })
    .unwrap();
    assert!(place.join("whole").exists() && !place.join("half").exists());
    install_whole(&place, |_| panic!("it is there")).unwrap();
}
