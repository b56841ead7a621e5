//! `cargo xtask studio`: builds and checks the web page in `studio/`. Nothing else needs Node.js to build the product.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

use harness::workspace::{cache, cargo, in_words, output_of, root};

/// What to do with the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StudioAction {
    /// Builds it into the crate that serves it.
    Build,
    /// Checks types and style, runs its tests, and compares its build with what is in the crate.
    Check,
    /// Drives it in a browser, served by the real program.
    Browser,
}

impl StudioAction {
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        match name {
            "build" => Ok(Self::Build),
            "check" => Ok(Self::Check),
            "browser" => Ok(Self::Browser),
            unknown => Err(format!("use build, check or browser, not `{unknown}`")),
        }
    }
}

pub(crate) fn run(action: StudioAction) -> anyhow::Result<()> {
    install()?;
    match action {
        StudioAction::Build => {
            node("vite", &["build"])?;
            script(&[])
        }
        StudioAction::Check => {
            node("tsc", &["--noEmit"])?;
            node("biome", &["check", "--error-on-warnings", "."])?;
            node("vitest", &["run"])?;
            node("vite", &["build"])?;
            script(&["--check"])
        }
        StudioAction::Browser => {
            // As the tests are built: any other selection of packages has other features, and would build the world again.
            output_of(cargo().args(["build", "--quiet", "--workspace", "--tests"]))?;
            node("vitest", &["run", "--config", "vitest.e2e.config.ts"])
        }
    }
}

/// Installs what the lock file pins, unless that is there already.
pub(crate) fn install() -> anyhow::Result<()> {
    let lock = fs::read(folder().join("package-lock.json"))?;
    let installed = folder().join("node_modules/.installed-lock.json");
    if fs::read(&installed).is_ok_and(|there| there == lock) {
        return Ok(());
    }
    eprintln!("studio: installing packages with npm");
    // Not `ci`: that one refuses a lock file without the packages that other platforms would need. Without `--no-save`, npm
    // would add them to the lock file, and the bundle would no longer have the hash of its sources.
    let mut npm = services::npm("studio", "install")?;
    output_of(npm.arg("--no-save").current_dir(folder()))
        .context("the packages of Studio cannot be installed; npm has to reach a registry")?;
    fs::write(installed, lock)?;
    Ok(())
}

fn folder() -> PathBuf {
    root().join("studio")
}

/// Runs a program of the page's packages.
fn node(program: &str, args: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(folder().join("node_modules/.bin").join(program));
    pass(command.args(args))
}

/// Runs the script that compresses the build.
fn script(args: &[&str]) -> anyhow::Result<()> {
    pass(Command::new("node").arg("scripts/bundle.mjs").args(args))
}

fn pass(command: &mut Command) -> anyhow::Result<()> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    command.current_dir(folder());
    command.env("ARCHIE", target.join("debug/archie"));
    command.env("SERVICES", cache()?.join("services"));
    let status = command.status();
    let status = status.with_context(|| format!("`{}` cannot be started", in_words(command)))?;
    ensure!(status.success(), "`{}`: {status}", in_words(command));
    Ok(())
}
