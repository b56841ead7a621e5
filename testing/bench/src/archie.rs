//! The program that people install: how large it is, and how soon it is there.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use super::contest::quantile;
use super::findings::Findings;
use super::lab::Lab;
use super::report::Row;
use harness::workspace::{cargo, output_of};

pub(super) fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut found = Findings::new("archie", lab.quick);
    // As `cargo install` makes it.
    output_of(cargo().args([
        "build",
        "--quiet",
        "--package",
        "superstep-archie",
        "--release",
    ]))?;
    let us = std::env::current_exe()?;
    let profiles = us.parent().and_then(Path::parent);
    let program = profiles.context("this program lies in no folder")?;
    let program = program.join("release/archie");
    let megabytes = std::fs::metadata(&program)?.len() as f64 / 1e6;
    let home = lab.folder().join("archie");
    let start = |args: &[&str]| -> anyhow::Result<f64> {
        let mut times = Vec::new();
        for _ in 0..lab.size(50, 10) {
            let begun = Instant::now();
            let mut command = Command::new(&program);
            command.args(args).env("ARCHIE_HOME", &home);
            let ended = command.stdout(Stdio::null()).status()?;
            ensure!(ended.success(), "`archie {}`: {ended}", args.join(" "));
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        Ok(quantile(&times, 0.5))
    };
    found.rows = vec![
        Row::new("archie, the program", "MB", megabytes).at_most(60.0),
        Row::new("archie --version, p50", "ms", start(&["--version"])?),
        Row::new("archie threads, p50", "ms", start(&["threads"])?).at_most(100.0),
    ];
    Ok(found)
}
