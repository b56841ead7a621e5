//! Runs the table of checks: says what it does and how long that took, and stops at the first failure.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value as Json;

use crate::metadata::Metadata;
use crate::results::{Results, StepResult};
use crate::steps::{Action, Profile, STEPS, Step};
use harness::workspace::{cache, cargo, commit, in_words, is_dirty, output_of, program, root};

const WASM: &str = "wasm32-unknown-unknown";

/// Which steps are run.
#[derive(Debug, PartialEq)]
pub(crate) enum Selection {
    /// Every step of the profile.
    All,
    /// Those of the profile from this one on.
    From(String),
    /// These, whatever their profile.
    Only(Vec<String>),
}

pub(crate) fn run(
    profile: Profile,
    selection: &Selection,
    seed: Option<u64>,
) -> anyhow::Result<()> {
    let steps = selected(selection, profile)?;
    let commit = commit();
    let seed = seed.unwrap_or_else(|| seed_of(commit.as_deref()));
    eprintln!(
        "verify: profile {}, commit {}, seed {seed}",
        profile.as_str(),
        commit.as_deref().unwrap_or("none")
    );

    let mut results = Results {
        profile,
        commit,
        dirty: is_dirty(),
        seed,
        steps: Vec::new(),
    };
    let outcome = run_steps(&steps, &mut results);
    report(&results.steps);
    outcome
}

/// The steps that are run, in the order of the table. A run that leaves some out proves only its own steps.
fn selected(selection: &Selection, profile: Profile) -> anyhow::Result<Vec<&'static Step>> {
    let of_profile = |steps: &'static [Step]| {
        let steps = steps.iter().filter(|step| step.profile <= profile);
        steps.collect()
    };
    Ok(match selection {
        Selection::All => of_profile(STEPS),
        Selection::From(name) => of_profile(&STEPS[place_of(name)?..]),
        Selection::Only(names) => {
            let places: Result<BTreeSet<_>, _> = names.iter().map(|name| place_of(name)).collect();
            places?.into_iter().map(|place| &STEPS[place]).collect()
        }
    })
}

/// Where the step is in the table.
fn place_of(name: &str) -> anyhow::Result<usize> {
    let place = STEPS.iter().position(|step| step.name == name);
    place.with_context(|| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        format!(
            "no step is called `{name}`; the steps are: {}",
            names.join("; ")
        )
    })
}

fn run_steps(steps: &[&'static Step], results: &mut Results) -> anyhow::Result<()> {
    for step in steps {
        eprintln!("\n=== {}", step.name);
        let start = Instant::now();
        let ended = perform(&step.action, results.profile, results.seed);
        let result = StepResult {
            name: step.name,
            took: start.elapsed(),
            ended,
        };
        eprintln!(
            "=== {}: {} after {}",
            step.name,
            result.in_words(),
            seconds(result.took)
        );
        let failed = matches!(result.ended, Ended::Failed { .. });
        results.steps.push(result);
        if results.profile == Profile::Long {
            // After each step, as the long profile takes hours and what a step found must not be lost with the next.
            results.write()?;
        }
        if failed {
            bail!(
                "verify stopped: the step `{}` failed; what is wrong stands above",
                step.name
            );
        }
    }
    Ok(())
}

/// How a step ended.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    Passed { report: Option<Json> },
    Skipped { why: String },
    Failed { why: String, report: Option<Json> },
}

fn perform(action: &Action, profile: Profile, seed: u64) -> Ended {
    let done = match action {
        Action::Cargo { args, env } => {
            let mut command = cargo();
            command
                .args(
                    args.iter()
                        .map(|arg| arg.replace("{seed}", &seed.to_string())),
                )
                .envs(env.iter().copied());
            return execute(&mut command);
        }
        Action::Tests => return execute(&mut tests(profile)),
        Action::EachFeature => each_feature(),
        Action::MinimumRust => minimum_rust(),
        Action::Wasm => wasm(),
    };
    done.unwrap_or_else(|error| Ended::Failed {
        why: format!("{error:#}"),
        report: None,
    })
}

fn tests(profile: Profile) -> Command {
    let mut command = cargo();
    if output_of(cargo().args(["nextest", "--version"])).is_ok() {
        // `ci` leaves out what takes minutes; see .config/nextest.toml.
        let set = match profile {
            Profile::Short => "ci",
            Profile::Long => "long",
        };
        command.args(["nextest", "run", "--workspace", "--profile", set]);
    } else {
        eprintln!(
            "cargo-nextest is not installed; `cargo test` does the same, one test binary after another"
        );
        command.args([
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
            "--no-fail-fast",
        ]);
    }
    command
}

fn each_feature() -> anyhow::Result<Ended> {
    for package in Metadata::read()?.members() {
        for features in feature_sets(&package.features) {
            let mut command = cargo();
            command.args(["check", "--package", &package.name, "--no-default-features"]);
            if let Some(feature) = features {
                command.args(["--features", feature]);
            }
            eprintln!("{}: {}", package.name, features.unwrap_or("no features"));
            if let failed @ Ended::Failed { .. } = execute(&mut command) {
                return Ok(failed);
            }
        }
    }
    Ok(Ended::Passed { report: None })
}

/// None at all, then each one alone. A crate without features was checked by the other steps.
fn feature_sets(features: &[String]) -> Vec<Option<&str>> {
    let named: Vec<&str> = features
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "default")
        .collect();
    if named.is_empty() {
        return Vec::new();
    }
    std::iter::once(None)
        .chain(named.into_iter().map(Some))
        .collect()
}

/// A toolchain that is not installed is reported, and the others are used all the same.
fn minimum_rust() -> anyhow::Result<Ended> {
    let metadata = Metadata::read()?;
    let mut libraries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in metadata.libraries() {
        let version = package.rust_version.as_deref();
        let version = version.with_context(|| format!("{} has no rust-version", package.name))?;
        libraries.entry(version).or_default().push(&package.name);
    }
    let toolchains = output_of(program("rustup").args(["toolchain", "list"])).unwrap_or_default();
    let mut absent = Vec::new();
    for (version, names) in libraries {
        let Some(toolchain) = toolchain_of(version, &toolchains) else {
            eprintln!(
                "!!! NOT CHECKED with Rust {version}: {}; install it with `rustup toolchain install {version}`",
                names.join(", ")
            );
            absent.push(version);
            continue;
        };
        // A target folder of its own: another compiler would rebuild everything in the shared one.
        let mut command = program("rustup");
        command.args([
            "run",
            toolchain,
            "cargo",
            "check",
            "--locked",
            "--all-features",
        ]);
        command.env("CARGO_TARGET_DIR", cache()?.join("minimum-target"));
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("RUSTC")
            .env_remove("CARGO");
        for name in &names {
            command.args(["--package", name]);
        }
        eprintln!("Rust {version}: {}", names.join(", "));
        if let failed @ Ended::Failed { .. } = execute(&mut command) {
            return Ok(failed);
        }
    }
    if absent.is_empty() {
        return Ok(Ended::Passed { report: None });
    }
    let why = format!("no toolchain for Rust {}", absent.join(", "));
    eprintln!("!!! SKIPPED: {why}");
    Ok(Ended::Skipped { why })
}

/// The installed toolchain of this version, whatever its patch and its host.
fn toolchain_of<'a>(version: &str, installed: &'a str) -> Option<&'a str> {
    let names = installed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let mut fitting = names.filter(|name| {
        let rest = name.strip_prefix(version);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    });
    fitting.next()
}

fn wasm() -> anyhow::Result<Ended> {
    if let Err(error) = install_wasm() {
        let why = format!("the target {WASM} is not installed and cannot be: {error:#}");
        eprintln!("!!! SKIPPED: {why}");
        return Ok(Ended::Skipped { why });
    }
    Ok(execute(cargo().args([
        "check",
        "--package",
        "superstep-core",
        "--target",
        WASM,
    ])))
}

fn install_wasm() -> anyhow::Result<()> {
    let folder = output_of(program("rustc").args(["--print", "target-libdir", "--target", WASM]))?;
    if root().join(folder.trim()).is_dir() {
        return Ok(());
    }
    output_of(program("rustup").args(["target", "add", WASM])).map(drop)
}

fn execute(command: &mut Command) -> Ended {
    match stream(command) {
        Ok((true, report)) => Ended::Passed { report },
        Ok((false, report)) => Ended::Failed {
            why: format!("`{}` failed", in_words(command)),
            report,
        },
        Err(error) => Ended::Failed {
            why: format!("{error:#}"),
            report: None,
        },
    }
}

/// Runs a command, passes on what it prints, and keeps the last line if it is a JSON object.
fn stream(command: &mut Command) -> anyhow::Result<(bool, Option<Json>)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", in_words(command)))?;
    let stdout = child.stdout.take().expect("it was piped");
    let mut last = Vec::new();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line?;
        eprintln!("{}", String::from_utf8_lossy(&line));
        if !line.trim_ascii().is_empty() {
            last = line;
        }
    }
    let report = serde_json::from_slice(&last).ok().filter(Json::is_object);
    Ok((child.wait()?.success(), report))
}

fn report(steps: &[StepResult]) {
    eprintln!();
    for step in steps {
        eprintln!(
            "{:>8}  {:<12} {}",
            seconds(step.took),
            step.name,
            step.in_words()
        );
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

/// The same commit gives the same seed, and the next commit looks somewhere else.
fn seed_of(commit: Option<&str>) -> u64 {
    commit
        .and_then(|commit| u64::from_str_radix(commit.get(..8)?, 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_selected_steps_are_run_in_the_order_of_the_table() {
        let names = |selection, profile| -> Vec<&str> {
            let steps = selected(&selection, profile).unwrap();
            steps.iter().map(|step| step.name).collect()
        };
        let only = |names: [&str; 3]| Selection::Only(names.map(str::to_owned).to_vec());
        // `deploy` belongs to the long profile.
        let some = only(["deploy", "format", "deploy"]);
        assert_eq!(names(some, Profile::Short), ["format", "deploy"]);
        let rest = names(Selection::From("deny".to_owned()), Profile::Short);
        assert_eq!(rest[..2], ["deny", "studio"]);
        let all = names(Selection::All, Profile::Short);
        assert_eq!(all.first(), Some(&"format"));
        assert!(!all.contains(&"deploy"));
        assert_eq!(names(Selection::All, Profile::Long).len(), STEPS.len());
    }

    #[test]
    fn a_step_that_does_not_exist_is_an_error_that_lists_the_steps() {
        for selection in [
            Selection::Only(vec!["format".to_owned(), "no-such-step".to_owned()]),
            Selection::From("no-such-step".to_owned()),
        ] {
            let error = selected(&selection, Profile::Long).unwrap_err().to_string();
            assert!(
                error.contains("`no-such-step`; the steps are: format; "),
                "{error}"
            );
        }
    }

    #[test]
    fn each_feature_is_checked_alone_and_default_is_not_one() {
        let features = ["default", "derive", "mcp"].map(str::to_owned);
        assert_eq!(feature_sets(&features), [None, Some("derive"), Some("mcp")]);
        assert!(feature_sets(&[]).is_empty());
    }

    #[test]
    fn a_toolchain_is_found_by_its_version() {
        let installed = "stable-x86_64 (active, default)\n1.88.0-x86_64\n1.95.0-x86_64\n";
        assert_eq!(toolchain_of("1.88", installed), Some("1.88.0-x86_64"));
        assert_eq!(toolchain_of("1.9", installed), None);
        assert_eq!(toolchain_of("1.88", ""), None);
    }

    #[test]
    fn the_seed_comes_from_the_commit() {
        assert_eq!(seed_of(Some("0000002affff")), 42);
        assert_eq!(seed_of(None), 0);
    }

    #[test]
    fn a_failing_command_fails_its_step_and_keeps_its_last_line() {
        let mut command = Command::new("sh");
        let Ended::Failed { report, .. } =
            execute(command.args(["-c", r#"echo one; echo '{"trials":3}'; exit 1"#]))
        else {
            panic!("exit status 1 was taken for success");
        };
        assert_eq!(report.map(|json| json["trials"].clone()), Some(3.into()));
    }

    #[test]
    fn a_passing_command_passes() {
        assert!(matches!(
            execute(Command::new("sh").args(["-c", "echo done"])),
            Ended::Passed { report: None }
        ));
        assert!(matches!(
            execute(&mut Command::new("no-such-program-here")),
            Ended::Failed { .. }
        ));
    }
}
