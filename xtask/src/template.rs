//! What `archie new` makes, tried out as the text that it prints says.

use std::fs;
use std::io::Write;
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
    let mut archie = cargo();
    archie.args([
        "run",
        "--quiet",
        "--package",
        "superstep-archie",
        "--manifest-path",
    ]);
    archie.arg(root().join("Cargo.toml")).current_dir(&folder);
    archie.args(["--", "new", NAME, "--from"]).arg(root());
    let said = output_of(&mut archie)?;
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
    eprintln!("what `archie new` makes is built, tested and run as it says");
    Ok(())
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
const ANSWER: &str = "One step of a graph, stored before the next begins.";
