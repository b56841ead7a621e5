//! `cargo xtask weight`: what building the example programs costs, and what installing the packages of their twins in Python does.
//!
//! Programs that need the same crates cost the same, so there is a row for each set of dependencies and not for each program. A
//! row in Rust is one program, built in an empty target folder: the crates that cargo compiles, and the CPU seconds of all
//! processes of the build. A row in Python is `pip install` in a new environment. CPU seconds come from `/proc`, so this needs
//! Linux.
//!
//! The migration guide shows what `--record` wrote. `tidy/weight.rs` fails when the number of crates is another one now.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value as Json, json};

use harness::workspace::{cargo, commit, is_dirty, output_of, program, root};

/// What was asked for, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WeightArgs {
    /// Names of rows; none are all.
    pub(crate) names: Vec<String>,
    pub(crate) json: bool,
    /// Whether the figures go into [`RESULTS`], in place of those that are there for the same rows.
    pub(crate) record: bool,
}

/// A row: programs with the same dependencies.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What a reader knows the programs by.
    pub(crate) programs: &'static str,
    /// The dependencies that make the difference.
    dependencies: &'static [&'static str],
    pub(crate) source: Source,
}

/// Where the figures of a row come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A build of one of the programs.
    Cargo {
        package: &'static str,
        program: &'static str,
        features: &'static [&'static str],
    },
    /// An installation of the dependencies, in the versions of `examples/python/requirements.txt`.
    Pip,
}

/// Where the figures are recorded.
pub(crate) const RESULTS: &str = "results/weight.json";

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "graphs",
        programs: "graphs (`examples/graphs`)",
        dependencies: &["superstep", "superstep-sqlite", "tokio"],
        source: Source::Cargo {
            package: "example-graphs",
            program: "hello_graph",
            features: &[],
        },
    },
    Row {
        name: "agents",
        programs: "agents with scripted models (`examples/agents`)",
        dependencies: &["superstep", "superstep-sqlite", "superstep-agent"],
        source: Source::Cargo {
            package: "example-agents",
            program: "tools",
            features: &[],
        },
    },
    Row {
        name: "agents-remote",
        programs: "agents with models on servers (`--features remote`)",
        dependencies: &["superstep", "superstep-sqlite", "superstep-agent"],
        source: Source::Cargo {
            package: "example-agents",
            program: "tools",
            features: &["remote"],
        },
    },
    Row {
        name: "service",
        programs: "a web service (`examples/service`)",
        dependencies: &["superstep", "superstep-sqlite", "axum"],
        source: Source::Cargo {
            package: "example-service",
            program: "example-service",
            features: &[],
        },
    },
    Row {
        name: "langgraph-graphs",
        programs: "graphs, with LangGraph",
        dependencies: &["langgraph", "langgraph-checkpoint-sqlite"],
        source: Source::Pip,
    },
    Row {
        name: "langgraph-agents",
        programs: "agents, with LangGraph",
        dependencies: &["langgraph", "langgraph-checkpoint-sqlite", "langchain"],
        source: Source::Pip,
    },
    Row {
        name: "langgraph-service",
        programs: "a web service, with LangGraph",
        dependencies: &[
            "langgraph",
            "langgraph-checkpoint-sqlite",
            "fastapi",
            "uvicorn",
        ],
        source: Source::Pip,
    },
];

pub(crate) fn run(args: &WeightArgs) -> anyhow::Result<()> {
    // Now, because the builds take minutes and the files may change meanwhile.
    let (commit, dirty) = (commit(), is_dirty());
    let rustc = output_of(program("rustc").arg("--version"))?;
    let mut measured = Vec::new();
    for row in ROWS.iter().filter(|row| args.is_for(row)) {
        let (unit, count, cpu_seconds) = match &row.source {
            Source::Cargo {
                package,
                program,
                features,
            } => build(package, program, features)?,
            Source::Pip => install(row.dependencies)?,
        };
        eprintln!(
            "{:<18} {count:>3} {unit:<8} {cpu_seconds:>5.0} CPU seconds",
            row.name
        );
        let json = json!({
            "name": row.name,
            "programs": row.programs,
            "dependencies": row.dependencies,
            unit: count,
            "cpu_seconds": cpu_seconds,
            "rustc": rustc.trim(),
            "commit": commit,
            "dirty": dirty,
        });
        if args.record {
            record(&json)?;
        }
        measured.push(json);
    }
    if args.json {
        print(&json!({ "test": "weight", "rows": measured }));
    }
    Ok(())
}

impl WeightArgs {
    fn is_for(&self, row: &Row) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == row.name)
    }
}

/// Puts a row into [`RESULTS`].
fn record(row: &Json) -> anyhow::Result<()> {
    let path = root().join(RESULTS);
    let old = fs::read_to_string(&path).unwrap_or_default();
    let old = serde_json::from_str(&old).unwrap_or_default();
    let text = serde_json::to_string_pretty(&merged(&old, row))? + "\n";
    fs::write(&path, text).with_context(|| format!("`{RESULTS}` cannot be written"))
}

/// The recorded rows with this one in place of the last of its name, in the order of [`ROWS`]. Rows that are no more are dropped.
fn merged(old: &Json, new: &Json) -> Json {
    let old = old["rows"].as_array().into_iter().flatten();
    let known: Vec<&Json> = std::iter::once(new).chain(old).collect();
    let of_name = |row: &Row| {
        known
            .iter()
            .find(|known| known["name"] == row.name)
            .copied()
    };
    json!({ "test": "weight", "rows": ROWS.iter().filter_map(of_name).collect::<Vec<_>>() })
}

/// Builds a program where nothing is built yet.
fn build(
    package: &str,
    program: &str,
    with: &[&str],
) -> anyhow::Result<(&'static str, usize, f64)> {
    let planned = crates(package, with)?;
    let target = tempfile::tempdir()?;
    let mut command = cargo();
    command.args(["build", "--locked", "--package", package]);
    command.args(["--bin", program]).args(features(with));
    command.args(["--message-format", "json-render-diagnostics"]);
    command.arg("--target-dir").arg(target.path());
    // A cache would make it no build, and other flags another one.
    for variable in ["CARGO_INCREMENTAL", "RUSTC_WRAPPER", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    let (printed, cpu_seconds) = measured(&mut command)?;
    let compiled = compiled(&printed);
    ensure!(
        compiled == planned,
        "cargo compiled other crates for `{package}` than it planned: {:?}",
        compiled.symmetric_difference(&planned)
    );
    Ok(("crates", compiled.len(), cpu_seconds))
}

/// Installs packages where nothing is installed yet.
fn install(dependencies: &[&str]) -> anyhow::Result<(&'static str, usize, f64)> {
    let folder = tempfile::tempdir()?;
    let python = services::make_python("weight", "python3", folder.path())?;
    let pip = |args: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "--disable-pip-version-check"]);
        command.args(args).current_dir(root());
        command
    };
    let versions = ["--constraint", "examples/python/requirements.txt"];
    let (_, cpu_seconds) = measured(
        pip(&["install", "--quiet"])
            .args(versions)
            .args(dependencies),
    )?;
    let listed = output_of(&mut pip(&["list", "--format", "json"]))?;
    let listed: Vec<Json> = serde_json::from_str(&listed).context("pip lists no packages")?;
    // A new environment has these two already.
    let is_new = |package: &&Json| package["name"] != "pip" && package["name"] != "setuptools";
    let packages = listed.iter().filter(is_new).count();
    Ok(("packages", packages, cpu_seconds))
}

/// Returns the packages that cargo compiles for the programs of a package: itself, and all that it, its build scripts and its
/// macros are built from.
///
/// Cargo's own plan, because `cargo tree` also lists build-dependencies of a package that is published without its build script.
pub(crate) fn crates(package: &str, with: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let mut command = cargo();
    command.args(["build", "--locked", "--package", package]);
    command.args(features(with));
    command.args(["--unit-graph", "-Z", "unstable-options"]);
    // Lets a stable cargo print the plan. It compiles nothing.
    command.env("RUSTC_BOOTSTRAP", "1");
    let plan = serde_json::from_str(&output_of(&mut command)?);
    Ok(planned(&plan.context("cargo's plan is not JSON")?))
}

/// The packages of a plan, each once: a package with a build script has several units.
fn planned(plan: &Json) -> BTreeSet<String> {
    let units = plan["units"].as_array().into_iter().flatten();
    units
        .filter_map(|unit| unit["pkg_id"].as_str().map(str::to_owned))
        .collect()
}

fn features(names: &[&str]) -> Option<String> {
    (!names.is_empty()).then(|| format!("--features={}", names.join(",")))
}

/// The packages that cargo reports to have compiled.
fn compiled(messages: &str) -> BTreeSet<String> {
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let built = messages.filter(|message: &Json| message["reason"] == "compiler-artifact");
    built
        .filter_map(|message| message["package_id"].as_str().map(str::to_owned))
        .collect()
}

/// Runs a command and returns what it printed, and the CPU seconds of it and of everything that it started.
fn measured(command: &mut Command) -> anyhow::Result<(String, f64)> {
    let before = cpu_of_children()?;
    let printed = output_of(command)?;
    Ok((printed, cpu_of_children()? - before))
}

/// CPU seconds, user and system, of the processes that this one has waited for, and of those that they have waited for.
fn cpu_of_children() -> anyhow::Result<f64> {
    let stat = Path::new("/proc/self/stat");
    let stat = fs::read_to_string(stat).context("`cargo xtask weight` needs Linux")?;
    parse_cpu_of_children(&stat).context("`/proc/self/stat` is not as Linux writes it")
}

/// Reads `cutime` and `cstime`. Linux counts them in hundredths of a second, whatever the kernel's own clock is.
fn parse_cpu_of_children(stat: &str) -> Option<f64> {
    // The name of the program may contain anything; the fields are behind its last bracket.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut ticks = fields.split(' ').skip(13).map(str::parse::<u64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    Some((user + system) as f64 / 100.0)
}

#[expect(clippy::print_stdout, reason = "what --json asks for is data")]
fn print(report: &Json) {
    println!("{report}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_row_replaces_the_old_one_of_its_name_and_others_stay() {
        let row = |name: &str, crates: u64| json!({ "name": name, "crates": crates });
        let old = json!({ "rows": [row("removed", 1), row("service", 2), row("agents", 3)] });
        let merged = merged(&old, &row("agents", 4));
        assert_eq!(merged["rows"], json!([row("agents", 4), row("service", 2)]));
    }

    #[test]
    fn a_crate_of_a_plan_is_counted_once_and_each_version_of_it() {
        let unit = |id: &str, mode: &str| json!({ "pkg_id": id, "mode": mode });
        let units = [
            unit("libc@0.2.1", "build"),
            unit("libc@0.2.1", "run-custom-build"),
            unit("syn@2.0.1", "build"),
            unit("syn@3.0.0", "build"),
        ];
        assert_eq!(planned(&json!({ "version": 1, "units": units })).len(), 3);
    }

    #[test]
    fn what_cargo_reports_is_counted_once_for_library_and_build_script() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"libc","target":{"name":"build-script-build"}}
{"reason":"build-script-executed","package_id":"libc"}
{"reason":"compiler-artifact","package_id":"libc","target":{"name":"libc"}}
{"reason":"compiler-artifact","package_id":"serde","target":{"name":"serde"}}
{"reason":"build-finished","success":true}"#;
        assert_eq!(compiled(messages).len(), 2);
    }

    #[test]
    fn the_time_of_children_is_read_behind_the_name_of_the_program() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 150 30 0 0 11 12 250 50 20 0 1 0 5 6";
        assert_eq!(parse_cpu_of_children(stat), Some(3.0));
        assert_eq!(parse_cpu_of_children("7 (a) S 1"), None);
        // A child that this process waits for is counted.
        let (_, seconds) = measured(program("rustc").arg("--version")).unwrap();
        assert!((0.0..60.0).contains(&seconds), "{seconds}");
    }
}
