//! `mcp-conformance`: every scenario for servers of MCP's conformance suite, compared with a table of those that pass and those that
//! cannot.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use harness::workspace::{in_words, output_of};
use serde::Deserialize;

use crate::expected::{ExpectedResults, TestResults};
use crate::graphs::GraphSet;
use crate::protocols_suite::{ProtocolsArgs, install, node};
use crate::server_process::TestServer;

/// Which scenarios pass, and why the others do not.
pub(crate) const TABLE: &str = "protocols/mcp_conformance.json";

/// Runs the scenarios, and reports which of them differ from the table.
pub(crate) fn run(args: &ProtocolsArgs) -> anyhow::Result<()> {
    let suite = install()?;
    let folder = tempfile::tempdir()?;
    let server = TestServer {
        folder: folder.path(),
        store: args.store.as_deref(),
        graphs: GraphSet::Conformance,
        policy: None,
    };
    let is_wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only));
    let mut expected = ExpectedResults::read(TABLE)?;
    expected.keep(is_wanted);
    let results = server.run(|address| {
        let mut results = TestResults::new();
        for name in scenarios(&suite)? {
            if is_wanted(&name) {
                let passed = passes(&suite, address, &name, folder.path());
                let passed = passed.with_context(|| format!("scenario `{name}`"))?;
                results.insert(name, passed);
            }
        }
        Ok(results)
    })?;
    expected.report("mcp-conformance", &results, 0, args.json)
}

/// Returns the program of the suite.
fn conformance(suite: &Path) -> Command {
    let mut command = node(suite);
    command.arg("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    command
}

/// Returns the names of all scenarios for servers.
fn scenarios(suite: &Path) -> anyhow::Result<Vec<String>> {
    let listed = output_of(conformance(suite).args(["list", "--server"]))?;
    let names = names_in(&listed);
    ensure!(!names.is_empty(), "the suite lists no scenarios");
    Ok(names)
}

/// Reads the names from lines such as `  - ping [2025-06-18,2025-11-25]`.
fn names_in(listed: &str) -> Vec<String> {
    let lines = listed.lines().filter_map(|line| line.strip_prefix("  - "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Runs a scenario. Returns whether it checked something, and all was well.
fn passes(suite: &Path, address: &str, name: &str, folder: &Path) -> anyhow::Result<bool> {
    let results = folder.join(name);
    let mut command = conformance(suite);
    command
        .args(["server", "--url", &format!("http://{address}/mcp")])
        .args(["--scenario", name, "--output-dir"])
        .arg(&results);
    // Its exit status says less than its checks.
    let output = command.output();
    let output = output.with_context(|| format!("cannot start `{}`", in_words(&command)))?;
    let printed = || String::from_utf8_lossy(&output.stderr).into_owned();
    let checks = read_checks(&results).with_context(printed)?;
    for check in &checks {
        if let (Status::Failure, Some(why)) = (check.status, &check.error_message) {
            eprintln!("{name}: {why}");
        }
    }
    let count = |status: Status| checks.iter().filter(|check| check.status == status).count();
    Ok(count(Status::Failure) == 0 && count(Status::Success) > 0)
}

/// Reads the checks of a scenario, which are in a folder with the time in its name.
fn read_checks(results: &Path) -> anyhow::Result<Vec<Check>> {
    let folder = fs::read_dir(results)
        .context("the scenario wrote no results")?
        .next();
    let folder = folder.context("the scenario wrote no results")??;
    let text = fs::read_to_string(folder.path().join("checks.json"))?;
    Ok(serde_json::from_str(&text)?)
}

/// One check of a scenario.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    status: Status,
    error_message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Success,
    Failure,
    Warning,
    Skipped,
    Info,
}

#[test]
fn names_are_read_from_the_list() {
    let listed = "Server scenarios (test against a server):\n  - ping [2025-11-25]\n  - tools-list [2025-06-18,2025-11-25]\n";
    assert_eq!(names_in(listed), ["ping", "tools-list"]);
}
