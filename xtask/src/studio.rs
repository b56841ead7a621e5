//! `cargo xtask studio`: builds and checks the web page in `studio/`. Nothing else needs Node.js to build the product.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value as Json;

use harness::workspace::{cache, cargo, commit, in_words, is_dirty, output_of, root};

/// What to do with the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StudioAction {
    /// Builds it into the crate that serves it.
    Build,
    /// Checks types and style, runs its tests, and compares its build with what is in the crate.
    Check,
    /// Drives it in a browser, served by the real program.
    Browser(BrowserTests),
}

/// Which tests in the browser are run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BrowserTests {
    /// Names of files in `studio/e2e`; without any, those that CI runs, or all of them in the long profile.
    pub(crate) names: Vec<String>,
    /// Whether they have their full size, and what they measure goes into `results/studio.json`.
    pub(crate) is_long: bool,
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
        StudioAction::Browser(tests) => {
            // As the tests are built: any other selection of packages has other features, and would build the world again.
            output_of(cargo().args(["build", "--quiet", "--workspace", "--tests"]))?;
            drive(&tests)
        }
    }
}

/// Runs tests in the browser. In the long profile, the last line that is printed has what they measured.
#[expect(clippy::print_stdout, reason = "`verify` keeps the last line")]
fn drive(tests: &BrowserTests) -> anyhow::Result<()> {
    let mut command = node_program("vitest");
    command.args(["run", "--config", "vitest.e2e.config.ts"]);
    for name in &tests.names {
        let file = format!("e2e/{name}.test.ts");
        let is_there = folder().join(&file).is_file();
        ensure!(is_there, "studio/{file} does not exist");
        command.arg(file);
    }
    if !tests.is_long {
        return pass(&mut command);
    }
    let figures = root().join("results/studio.json");
    command.env("LONG", "1").env("FIGURES", &figures);
    command.env("COMMIT", commit().unwrap_or_default());
    command.env("DIRTY", is_dirty().to_string());
    pass(&mut command)?;
    println!("{}", measured(&figures, &tests.names)?);
    Ok(())
}

/// Returns the recorded figures by the names of the files; of all files if none is named.
fn measured(file: &Path, names: &[String]) -> anyhow::Result<Json> {
    let text = fs::read_to_string(file).unwrap_or_else(|_| r#"{"rows": []}"#.to_owned());
    let recorded: Json = serde_json::from_str(&text)
        .with_context(|| format!("{} is not valid JSON", file.display()))?;
    let rows = recorded["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let of_row = |row: &Json| {
        let name = row["name"].as_str()?.to_owned();
        let is_wanted = names.is_empty() || names.contains(&name);
        is_wanted.then(|| (name, row["figures"].clone()))
    };
    Ok(Json::Object(rows.iter().filter_map(of_row).collect()))
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
    pass(node_program(program).args(args))
}

fn node_program(name: &str) -> Command {
    Command::new(folder().join("node_modules/.bin").join(name))
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
