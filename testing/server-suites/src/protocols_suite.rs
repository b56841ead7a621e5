//! `protocols`: the official clients of MCP, A2A and AG-UI against our server. `oidc`: tokens of a real OpenID provider.
//!
//! The tests are ours (`protocols/`), the clients and the provider are not: they check the form and the order of what the server
//! sends, and sign as providers do.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use free_ports::free_port;
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of, root};
use lexopt::prelude::*;
use serde_json::json;

use crate::graphs::GraphSet;
use crate::junit::SuiteResults;
use crate::server_process::TestServer;

/// What was typed after `protocols`, `oidc` or `mcp-conformance`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ProtocolsArgs {
    /// Only tests whose names match this regular expression, or contain this text for `mcp-conformance`.
    pub(crate) only: Option<String>,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    pub(crate) json: bool,
}

impl ProtocolsArgs {
    /// Reads what was typed after the command; `None` if that asks for help.
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut args = Self::default();
        while let Some(arg) = parser.next()? {
            match arg {
                Long("only") => args.only = Some(parser.value()?.string()?),
                Long("store") => args.store = Some(parser.value()?.string()?),
                Long("json") => args.json = true,
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(args))
    }
}

/// Runs the official clients.
pub(crate) fn run(args: &ProtocolsArgs) -> anyhow::Result<()> {
    let suite = install()?;
    let folder = tempfile::tempdir()?;
    let server = TestServer {
        folder: folder.path(),
        store: args.store.as_deref(),
        graphs: GraphSet::Lab,
        policy: None,
    };
    let tests = NodeTests {
        args,
        suite: &suite,
        junit: folder.path().join("clients.xml"),
    };
    let results = server.run(|address| {
        let mut node = tests.command(address);
        tests.results_of(node.args(CLIENTS))
    })?;
    results.report("protocols", "official clients", args.json, None)
}

/// Runs the tests with tokens of an OpenID provider.
pub(crate) fn run_oidc(args: &ProtocolsArgs) -> anyhow::Result<()> {
    let suite = install()?;
    let folder = tempfile::tempdir()?;
    let issuer_port = free_port().to_string();
    let policy = folder.path().join("policy.json");
    let issuer = json!({
        "issuer": format!("http://127.0.0.1:{issuer_port}"),
        "audience": "superstep",
        "roles_claim": "roles",
        "roles": { "operator": ["read", "run"], "viewer": ["read"] },
        "leeway_seconds": 0,
        "refetch_seconds": 1,
    });
    fs::write(&policy, json!({ "issuers": [issuer] }).to_string())?;
    let server = TestServer {
        folder: folder.path(),
        store: args.store.as_deref(),
        graphs: GraphSet::Lab,
        policy: Some(&policy),
    };
    let tests = NodeTests {
        args,
        suite: &suite,
        junit: folder.path().join("oidc.xml"),
    };
    let results = server.run(|address| {
        let mut node = tests.command(address);
        tests.results_of(node.env("ISSUER_PORT", &issuer_port).arg(OIDC))
    })?;
    results.report("oidc", "OpenID provider", args.json, None)
}

/// A run of test files with Node.
struct NodeTests<'a> {
    args: &'a ProtocolsArgs,
    suite: &'a Path,
    /// Where the results go.
    junit: PathBuf,
}

impl NodeTests<'_> {
    /// Returns the command, to which the files have to be added.
    fn command(&self, address: &str) -> Command {
        let mut node = node(self.suite);
        node.args(["--test", "--test-timeout=60000"])
            .args(["--test-reporter=spec", "--test-reporter-destination=stdout"])
            .arg("--test-reporter=junit")
            .arg(format!(
                "--test-reporter-destination={}",
                self.junit.display()
            ))
            .env("SERVER_URL", format!("http://{address}"))
            // Standard output is for the results.
            .stdout(io::stderr());
        if let Some(only) = &self.args.only {
            node.arg(format!("--test-name-pattern={only}"));
        }
        node
    }

    /// Runs the command, and reads which tests passed.
    fn results_of(&self, node: &mut Command) -> anyhow::Result<SuiteResults> {
        let status = node.status();
        let status = status.with_context(|| format!("cannot start `{}`", in_words(node)))?;
        let junit = fs::read_to_string(&self.junit).context("Node wrote no results")?;
        let mut results = SuiteResults::default();
        match self.args.only {
            // Those that were not asked for are in the list as skipped.
            Some(_) => results.add_selected(&junit)?,
            None => results.add(&junit)?,
        }
        // What fails outside of a test is in no list.
        ensure!(
            status.success() || results.passed() < results.of(),
            "`{}` failed ({status})",
            in_words(node)
        );
        Ok(results)
    }
}

/// Returns Node in the folder of the suite. Many machines have one that is too old for some of the packages.
pub(crate) fn node(suite: &Path) -> Command {
    let mut node = Command::new(suite.join("node_modules/node/bin/node"));
    node.current_dir(suite);
    node
}

/// Installs the packages that are missing, and copies the tests. Returns the folder of both. Waits for another process that does
/// the same.
pub(crate) fn install() -> anyhow::Result<PathBuf> {
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
    for file in CLIENTS.iter().chain(&[OIDC, "issuer.mjs"]) {
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

const CLIENTS: [&str; 3] = ["mcp.test.mjs", "a2a.test.mjs", "ag_ui.test.mjs"];
const OIDC: &str = "oidc.test.mjs";

/// What the tests run with.
const PACKAGES: [&str; 6] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/conformance@0.1.16",
    "@a2a-js/sdk@1.3.0",
    "@ag-ui/client@1.0.0",
    "oidc-provider@9.13.3",
    "node@22",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";
