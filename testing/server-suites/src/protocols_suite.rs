//! `protocols`: the official clients of MCP, A2A and AG-UI against our server, and the conformance suite of MCP.
//!
//! The tests are ours (`protocols/`), the clients are not: they check the form and the order of what the server sends.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use free_ports::free_port;
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of, root};
use lexopt::prelude::*;

use crate::graphs::GraphSet;
use crate::server_process::ServerProcess;

/// What was typed after `protocols`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtocolsArgs {
    /// Only tests whose names match this regular expression.
    pub(crate) only: Option<String>,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
}

impl ProtocolsArgs {
    /// Reads what was typed after `protocols`; `None` if that asks for help.
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut args = Self::default();
        while let Some(arg) = parser.next()? {
            match arg {
                Long("only") => args.only = Some(parser.value()?.string()?),
                Long("store") => args.store = Some(parser.value()?.string()?),
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(args))
    }
}

/// Runs the tests, and then the scenarios of the conformance suite that do not need tools of its own.
pub(crate) fn run(args: &ProtocolsArgs) -> anyhow::Result<()> {
    let suite = install()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("suite.db").display().to_string();
    let store = args.store.clone().unwrap_or(file);
    let address = format!("127.0.0.1:{}", free_port());
    let log = folder.path().join("server.log");
    let server = ServerProcess::start(&address, &store, GraphSet::Lab, &log)?;
    let tested = test(args, &suite, &address).and_then(|()| conform(&suite, &address));
    let stopped = server.stop();
    let reported = || fs::read_to_string(&log).unwrap_or_default();
    tested.with_context(reported)?;
    stopped.with_context(reported)
}

fn test(args: &ProtocolsArgs, suite: &Path, address: &str) -> anyhow::Result<()> {
    let mut node = Command::new("node");
    node.current_dir(suite)
        .args(["--test", "--test-reporter=spec", "--test-timeout=60000"])
        .env("SERVER_URL", format!("http://{address}"))
        // Standard output is for the results.
        .stdout(io::stderr());
    if let Some(only) = &args.only {
        node.arg(format!("--test-name-pattern={only}"));
    }
    node.args(TESTS);
    run_to_success(&mut node)
}

/// Runs the scenarios one by one, because the suite has no list of them as an argument.
fn conform(suite: &Path, address: &str) -> anyhow::Result<()> {
    for scenario in SCENARIOS {
        // The suite needs a newer Node than many machines have.
        let mut suite_run = Command::new(suite.join("node_modules/node/bin/node"));
        suite_run
            .current_dir(suite)
            .arg("node_modules/@modelcontextprotocol/conformance/dist/index.js")
            .args(["server", "--url", &format!("http://{address}/mcp")])
            .args(["--scenario", scenario])
            .stdout(io::stderr());
        run_to_success(&mut suite_run).with_context(|| format!("scenario `{scenario}`"))?;
    }
    Ok(())
}

fn run_to_success(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status();
    let status = status.with_context(|| format!("cannot start `{}`", in_words(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", in_words(command));
    }
    Ok(())
}

/// Installs the packages that are missing, and copies the tests. Returns the folder of both. Waits for another process that does
/// the same.
fn install() -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let suite = suites.join("protocols");
    let wanted = PACKAGES.join("\n");
    let installed = fs::read_to_string(suite.join(INSTALLED));
    if !installed.is_ok_and(|installed| installed == wanted) {
        eprintln!("server-suites: installing the clients of the protocols with npm (about 20 s)");
        replace_folder(&suite, |unfinished| {
            install_packages(unfinished)?;
            fs::write(unfinished.join(INSTALLED), &wanted)?;
            Ok(())
        })?;
    }
    for file in TESTS {
        let from = root().join("testing/server-suites/protocols").join(file);
        fs::copy(&from, suite.join(file))
            .with_context(|| format!("`{}` cannot be copied", from.display()))?;
    }
    Ok(suite)
}

fn install_packages(folder: &Path) -> anyhow::Result<()> {
    fs::write(
        folder.join("package.json"),
        r#"{"private":true,"type":"module"}"#,
    )?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder)
        // The package `node` installs its program with a script.
        .args(["install", "--save-exact", "--no-audit", "--no-fund"])
        .args(PACKAGES);
    output_of(&mut npm).context("npm has to reach a registry of packages")?;
    Ok(())
}

const TESTS: [&str; 3] = ["mcp.test.mjs", "a2a.test.mjs", "ag_ui.test.mjs"];

/// Scenarios of the conformance suite. The others call tools, resources and prompts that a server has only for the suite.
const SCENARIOS: [&str; 4] = [
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
];

/// What the tests run with.
const PACKAGES: [&str; 5] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/conformance@0.1.16",
    "@a2a-js/sdk@1.3.0",
    "@ag-ui/client@1.0.0",
    "node@22",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";
