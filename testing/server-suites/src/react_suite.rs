//! `react`: the browser suite of `libs/sdk-react` in langgraphjs, unmodified, against our server.
//!
//! The originals start a JavaScript server with their graphs in the process of the test runner, and get its address from there.
//! Here the address is that of our server, with the graphs ported; the tests, their components and the hooks are copied from a
//! checkout of langgraphjs next to the npm packages that they import, in the cache folder. Vitest runs them in Chromium.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use free_ports::free_port;
use harness::folder::{remove_folder, replace_folder};
use harness::workspace::{cache, in_words, output_of, root};
use lexopt::prelude::*;

use crate::apps_suite::BROWSER;
use crate::graphs::GraphSet;
use crate::junit::SuiteResults;
use crate::python_suite::wait_for_results;
use crate::server_process::ServerProcess;

/// What was typed after `react`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReactArgs {
    /// Folder of a checkout of langgraphjs.
    pub(crate) checkout: PathBuf,
    /// Only tests whose names match this regular expression.
    pub(crate) only: Option<String>,
    /// Program of the browser.
    pub(crate) browser: PathBuf,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    /// How many tests must pass. Default: all.
    pub(crate) expect: Option<usize>,
    pub(crate) json: bool,
}

impl ReactArgs {
    /// Reads what was typed after `react`; `None` if that asks for help.
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut checkout: Option<PathBuf> = None;
        let mut browser = PathBuf::from(BROWSER);
        let (mut only, mut store, mut expect, mut json) = (None, None, None, false);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("checkout") => checkout = Some(parser.value()?.into()),
                Long("only") => only = Some(parser.value()?.string()?),
                Long("browser") => browser = parser.value()?.into(),
                Long("store") => store = Some(parser.value()?.string()?),
                Long("expect") => expect = Some(parser.value()?.parse()?),
                Long("json") => json = true,
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        let checkout = checkout.ok_or("`react` needs `--checkout`, a checkout of langgraphjs")?;
        Ok(Some(Self {
            checkout,
            only,
            browser,
            store,
            expect,
            json,
        }))
    }
}

/// Runs the suite, and reports which tests passed.
pub(crate) fn run(args: &ReactArgs) -> anyhow::Result<()> {
    let suite = install(&args.checkout)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("suite.db").display().to_string();
    let store = args.store.clone().unwrap_or(file);
    let address = format!("127.0.0.1:{}", free_port());
    let log = folder.path().join("server.log");
    let junit = folder.path().join("react.xml");
    let server = ServerProcess::start(&address, &store, GraphSet::React, &log)?;
    let tested = test(args, &suite, &address, &junit);
    let stopped = server.stop();
    tested?;
    let reported = || fs::read_to_string(&log).unwrap_or_default();
    stopped.with_context(reported)?;
    let junit = fs::read_to_string(junit).context("vitest wrote no results")?;
    let mut results = SuiteResults::default();
    match args.only {
        // Those that were not asked for are in the list as skipped.
        Some(_) => results.add_selected(&junit)?,
        None => results.add(&junit)?,
    }
    if results.passed() < results.of() {
        eprintln!("the server's log:\n{}", reported());
    }
    results.report("react", "sdk-react", args.json, args.expect)
}

fn test(args: &ReactArgs, suite: &Path, address: &str, junit: &Path) -> anyhow::Result<()> {
    let mut vitest = Command::new("node");
    vitest
        .current_dir(suite)
        .args(["node_modules/vitest/vitest.mjs", "run"])
        .args(["--reporter=default", "--reporter=junit"])
        .arg(format!("--outputFile.junit={}", junit.display()))
        .env("SERVER_URL", format!("http://{address}"))
        .env("BROWSER", &args.browser)
        .env("LANGSMITH_TRACING", "false")
        // Standard output is for the results.
        .stdout(io::stderr());
    if let Some(only) = &args.only {
        vitest.args(["-t", only]);
    }
    let child = vitest.spawn();
    let child = child.with_context(|| format!("cannot start `{}`", in_words(&vitest)))?;
    // Its exit status says less than its results.
    wait_for_results(child, junit)
}

/// Installs the packages that are missing, and copies the tests. Returns the folder of both. Waits for another process that does
/// the same.
fn install(checkout: &Path) -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let suite = suites.join("sdk-react");
    let wanted = PACKAGES.join("\n");
    let installed = fs::read_to_string(suite.join(INSTALLED));
    if !installed.is_ok_and(|installed| installed == wanted) {
        eprintln!("server-suites: installing the packages of the suite with npm (about 20 s)");
        replace_folder(&suite, |unfinished| {
            install_packages(unfinished)?;
            fs::write(unfinished.join(INSTALLED), &wanted)?;
            Ok(())
        })?;
    }
    copy_tests(checkout, &suite)?;
    Ok(suite)
}

fn install_packages(folder: &Path) -> anyhow::Result<()> {
    fs::write(
        folder.join("package.json"),
        r#"{"private":true,"type":"module"}"#,
    )?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder)
        // Some packages want others for parts of them that no test uses.
        .args(["install", "--save-exact", "--legacy-peer-deps"])
        .args(["--ignore-scripts", "--no-audit", "--no-fund"])
        .args(PACKAGES);
    output_of(&mut npm).context("npm has to reach a registry of packages")?;
    Ok(())
}

fn copy_tests(checkout: &Path, suite: &Path) -> anyhow::Result<()> {
    let sources = checkout.join(LIBRARY).join("src");
    let copied = suite.join("src");
    remove_folder(&copied)?;
    output_of(Command::new("cp").arg("-r").args([&sources, &copied]))
        .context("`--checkout` names a checkout of langgraphjs")?;
    for file in ["vitest.config.mjs", "server_address.mjs"] {
        let from = root().join("testing/server-suites/react").join(file);
        fs::copy(&from, suite.join(file))
            .with_context(|| format!("`{}` cannot be copied", from.display()))?;
    }
    Ok(())
}

/// Folder of the suite in langgraphjs.
const LIBRARY: &str = "libs/sdk-react";

/// What the suite runs with.
const PACKAGES: [&str; 13] = [
    "@langchain/langgraph-sdk@1.9.31",
    "@langchain/langgraph@1.4.9",
    "@langchain/core@1.2.13",
    "langchain@1.5.4",
    "zod@4.6.7",
    "react@19.2.8",
    "react-dom@19.2.8",
    "vitest@4.1.10",
    "vitest-browser-react@2.2.0",
    "@vitest/browser@4.1.10",
    "@vitest/browser-playwright@4.1.10",
    "@vitejs/plugin-react@6.0.5",
    "playwright@1.65.1",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";
