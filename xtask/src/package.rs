//! `cargo xtask package`: packs every crate that is published, and builds each from what was packed.
//!
//! Cargo does so in the order of the dependencies, each against the packed others, as a registry would serve them. So a file
//! that a crate takes from outside its folder, or a dependency without a version, is found here and not by the first user.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::{Value as Json, json};

use crate::metadata::Metadata;
use harness::workspace::{cargo, in_words, output_of};

pub(crate) fn run(json: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let metadata = Metadata::read()?;
    let packages: Vec<_> = metadata.published().collect();
    let mut command = cargo();
    // A check is also for what is not committed yet.
    command.args(["package", "--locked", "--allow-dirty"]);
    // What is packed has no workspace, and so not its profile. With the same one, compiled dependencies are shared.
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    for package in &packages {
        command.args(["--package", &package.name]);
    }
    let status = command.status();
    let status = status.with_context(|| format!("`{}` cannot be started", in_words(&command)))?;
    ensure!(status.success(), "a package cannot be built; see above");

    let target = target_folder()?;
    let mut missing = Vec::new();
    for package in &packages {
        let name = format!("{}-{}", package.name, package.version);
        let folder = Path::new(&target).join("package").join(&name);
        let absent = FILES.iter().filter(|file| !folder.join(file).is_file());
        missing.extend(absent.map(|file| format!("{name} has no {file}")));
    }
    if json {
        print(&json!({
            "test": "package",
            "packages": packages.len(),
            "seconds": start.elapsed().as_secs(),
            "violations": missing.len(),
        }));
    }
    ensure!(missing.is_empty(), "{}", missing.join("\n"));
    eprintln!("{} packages are built from what was packed", packages.len());
    Ok(())
}

fn target_folder() -> anyhow::Result<String> {
    let args = ["metadata", "--format-version", "1", "--no-deps"];
    let json: Json = serde_json::from_str(&output_of(cargo().args(args))?)?;
    let folder = json["target_directory"].as_str();
    Ok(folder.context("cargo names no target folder")?.to_owned())
}

#[expect(clippy::print_stdout, reason = "what --json asks for is data")]
fn print(report: &Json) {
    println!("{report}");
}

/// What every package has besides its code.
const FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// `[profile.dev]` of the workspace.
const PROFILE: [&str; 2] = [
    "profile.dev.debug=\"line-tables-only\"",
    "profile.dev.package.\"*\".opt-level=1",
];
