//! What `archie new` makes, tried out as the text that it prints says.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use harness::workspace::{cache, cargo, output_of, root};

/// Makes a project, tests it, starts its agent, leaves it at its question and answers that from the inbox.
pub(crate) fn run() -> anyhow::Result<()> {
    let folder = cache()?.join("template");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let said = new_project(&folder, &[NAME])?;
    let typed = format!("cargo run -- --model script:hello.json run {NAME}");
    ensure!(said.contains(&typed), "it does not say `{typed}`:\n{said}");
    let project = folder.join(NAME);
    // With the versions that everything else is tested with.
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    let target = cache()?.join("template-target");
    let in_project = || {
        let mut command = cargo();
        command.current_dir(&project);
        command.env("ARCHIE_HOME", folder.join("home"));
        // Not beside ours: two builds at one place wait for each other.
        command.env("CARGO_TARGET_DIR", &target);
        command
    };
    output_of(in_project().args(["test", "--quiet"]))?;
    let asked = answer(
        in_project().args([
            "run",
            "--quiet",
            "--",
            "--model",
            "script:hello.json",
            "run",
            NAME,
        ]),
        "What is a superstep?\n",
    )?;
    ensure!(
        asked.contains("What do you want to know?") && asked.contains(ANSWER),
        "its agent said:\n{asked}"
    );
    let listed = output_of(in_project().args(["run", "--quiet", "--", "threads"]))?;
    ensure!(
        listed.contains(NAME) && listed.contains("idle"),
        "its threads are:\n{listed}"
    );
    let drawn = output_of(in_project().args(["run", "--quiet", "--", "graph", NAME]))?;
    ensure!(drawn.contains("[ask] ─▶ answer"), "its graph is:\n{drawn}");
    let library = new_project(&folder, &["--lib", LIBRARY])?;
    ensure!(
        library.contains("cargo run"),
        "it does not say `cargo run`:\n{library}"
    );
    let project = folder.join(LIBRARY);
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    let in_project = || {
        let mut command = cargo();
        command.current_dir(&project);
        command.env("CARGO_TARGET_DIR", &target);
        command
    };
    output_of(in_project().args(["test", "--quiet"]))?;
    // It is left at its question, and another process gets the answer.
    let left = answer(in_project().args(["run", "--quiet"]), "")?;
    ensure!(
        left.contains(ANSWER) && left.contains("stays open"),
        "it said:\n{left}"
    );
    let kept = answer(in_project().args(["run", "--quiet"]), "y\n")?;
    ensure!(kept.contains("kept: Some(true)"), "it said:\n{kept}");
    eprintln!("what `archie new` makes is built, tested and run as it says");
    Ok(())
}

/// What `archie new` prints.
fn new_project(folder: &Path, args: &[&str]) -> anyhow::Result<String> {
    let mut archie = cargo();
    archie.args(["run", "--quiet", "--package", "superstep-archie"]);
    archie.arg("--manifest-path").arg(root().join("Cargo.toml"));
    archie.args(["--", "new"]).args(args).arg("--from");
    output_of(archie.arg(root()).current_dir(folder))
}

/// What a program prints that is told this.
fn answer(command: &mut Command, line: &str) -> anyhow::Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn()?;
    let mut input = process.stdin.take().context("it has no input")?;
    input.write_all(line.as_bytes())?;
    drop(input);
    let output = process.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("it ended with {}:\n{said}", output.status);
    }
    Ok(said)
}

const NAME: &str = "greeter";
const LIBRARY: &str = "plain";
const ANSWER: &str = "One step of a graph, stored before the next begins.";
