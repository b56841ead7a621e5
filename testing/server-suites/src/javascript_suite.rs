//! `javascript`: the API suite of langgraphjs, unmodified, against our server. `javascript-auth`: its suite for authentication.
//!
//! No npm package has its tests, so they are copied from a checkout of langgraphjs next to the npm packages that they import, in
//! the cache folder. They have the address of the server built in, so they run in a network namespace of their own, with a
//! server that has this address there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use harness::folder::{remove_folder, replace_folder};
use harness::workspace::{cache, in_words, output_of};

use crate::graphs::GraphSet;
use crate::junit::SuiteResults;
use crate::namespace::{BuiltInAddress, FIXED_PORT, open_built_in_address};
use crate::python_suite::wait_for_results;

/// Which tests of langgraphjs run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum JavaScriptTests {
    #[default]
    Api,
    /// Those for a server that authenticates its callers.
    Auth,
}

impl JavaScriptTests {
    /// Name of the command that runs them.
    fn command(self) -> &'static str {
        match self {
            Self::Api => "javascript",
            Self::Auth => "javascript-auth",
        }
    }

    fn files(self) -> &'static [&'static str] {
        match self {
            Self::Api => &["tests/api.test.mts", "tests/protocol-transport.test.mts"],
            Self::Auth => &["tests/auth.test.mts"],
        }
    }

    /// Port of the address that they have built in.
    fn port(self) -> u16 {
        match self {
            Self::Api => FIXED_PORT,
            Self::Auth => 2025,
        }
    }
}

/// What was typed after `javascript` or `javascript-auth`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JavaScriptArgs {
    pub(crate) tests: JavaScriptTests,
    /// Folder of a checkout of langgraphjs.
    pub(crate) checkout: PathBuf,
    /// Only tests whose names match this regular expression.
    pub(crate) only: Option<String>,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    /// How many tests must pass. Default: all.
    pub(crate) expect: Option<usize>,
    pub(crate) json: bool,
}

/// What the suite runs with. Inside of the namespace, this program gets it on its command line, apart from the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JavaScriptPart {
    pub(crate) tests: JavaScriptTests,
    pub(crate) only: Option<String>,
    pub(crate) store: String,
    /// Where the packages and the tests are.
    pub(crate) suite: PathBuf,
    /// Where the results and the log of the server go.
    pub(crate) folder: PathBuf,
}

/// Runs the suite, and reports which tests passed.
pub(crate) fn run(args: &JavaScriptArgs) -> anyhow::Result<()> {
    let suite = install(&args.checkout)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("suite.db").display().to_string();
    let part = JavaScriptPart {
        tests: args.tests,
        only: args.only.clone(),
        store: args.store.clone().unwrap_or(file),
        suite,
        folder: folder.path().to_owned(),
    };
    run_at_fixed_address(&part)?;
    let junit = fs::read_to_string(part.junit()).context("vitest wrote no results")?;
    let mut results = SuiteResults::default();
    match part.only {
        // Those that were not asked for are in the list as skipped.
        Some(_) => results.add_selected(&junit)?,
        None => results.add(&junit)?,
    }
    if results.passed() < results.of() {
        part.print_log();
    }
    results.report(args.tests.command(), "langgraphjs", args.json, args.expect)
}

/// Runs the suite in a namespace where that can be, and otherwise here if the port is free.
fn run_at_fixed_address(part: &JavaScriptPart) -> anyhow::Result<()> {
    // The original is a program, `tests/graphs/auth.mts`; this says the same.
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("auth/policy.json");
    let server = BuiltInAddress {
        store: &part.store,
        graphs: GraphSet::JavaScript,
        port: part.tests.port(),
        policy: (part.tests == JavaScriptTests::Auth).then_some(&*policy),
        log: &part.log(),
        folder: &part.folder,
    };
    let inside = |command: &mut Command| {
        command
            .args([
                NAMESPACE_COMMAND,
                "--tests",
                part.tests.command(),
                "--suite",
            ])
            .arg(&part.suite)
            .arg("--folder")
            .arg(&part.folder);
        if let Some(only) = &part.only {
            command.args(["--only", only]);
        }
    };
    server.run(inside, || part.test())
}

/// Name of the command that runs inside of the namespace.
pub(crate) const NAMESPACE_COMMAND: &str = "javascript-in-namespace";

/// Runs inside of the namespace.
pub(crate) fn run_in_namespace(part: &JavaScriptPart, socket: PathBuf) -> anyhow::Result<()> {
    open_built_in_address(socket, part.tests.port())?;
    part.test()
}

impl JavaScriptPart {
    fn junit(&self) -> PathBuf {
        self.folder.join("javascript.xml")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("javascript.log")
    }

    fn test(&self) -> anyhow::Result<()> {
        let junit = self.junit();
        let mut vitest = Command::new("node");
        // One of the tests is skipped without WebSockets, which Node has by default from version 22. Vitest starts processes, which
        // read the option from the environment.
        let websocket = output_of(Command::new("node").args(["-p", "typeof WebSocket"]))?;
        if websocket.trim() == "undefined" {
            vitest.env("NODE_OPTIONS", "--experimental-websocket");
        }
        vitest
            .current_dir(&self.suite)
            .args(["node_modules/vitest/vitest.mjs", "run"])
            .args(["--reporter=default", "--reporter=junit"])
            .arg(format!("--outputFile.junit={}", junit.display()))
            .args(self.tests.files())
            // With it, the tests start the JavaScript server.
            .env_remove("CI")
            .env("LANGSMITH_TRACING", "false")
            // Standard output is for the results.
            .stdout(io::stderr());
        if let Some(only) = &self.only {
            vitest.args(["-t", only]);
        }
        let child = vitest.spawn();
        let child = child.with_context(|| format!("cannot start `{}`", in_words(&vitest)))?;
        // Its exit status says less than its results.
        wait_for_results(child, &junit)
    }

    /// Prints the last lines of the server, for a person who wants to know why tests failed.
    fn print_log(&self) {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        eprintln!("the end of the server's log:");
        for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
            eprintln!("  {line}");
        }
    }
}

/// Installs the packages that are missing, and copies the tests. Returns the folder of both. Waits for another process that does
/// the same.
fn install(checkout: &Path) -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let suite = suites.join("langgraphjs");
    let wanted = PACKAGES.join("\n");
    let installed = fs::read_to_string(suite.join(INSTALLED));
    if installed.is_ok_and(|installed| installed == wanted) {
        copy_tests(checkout, &suite)?;
        return Ok(suite);
    }
    eprintln!("server-suites: installing the packages of the suite with npm (about 20 s)");
    replace_folder(&suite, |unfinished| {
        install_packages(unfinished)?;
        fs::write(unfinished.join(INSTALLED), &wanted)?;
        Ok(())
    })?;
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
    let library = checkout.join(LIBRARY);
    for folder in ["tests", "src"] {
        remove_folder(&suite.join(folder))?;
    }
    fs::create_dir(suite.join("tests"))?;
    fs::create_dir_all(suite.join("src/auth"))?;
    let all = [JavaScriptTests::Api, JavaScriptTests::Auth];
    let tests = all.iter().flat_map(|tests| tests.files());
    for file in tests.chain(&USED_BY_TESTS) {
        let from = library.join(file);
        fs::copy(&from, suite.join(file)).with_context(|| {
            format!(
                "`{}` cannot be copied; `--checkout` names a checkout of langgraphjs",
                from.display()
            )
        })?;
    }
    Ok(())
}

/// Folder of the suite in langgraphjs.
const LIBRARY: &str = "libs/langgraph-api";
const USED_BY_TESTS: [&str; 4] = [
    "src/auth/index.mts",
    "tests/utils.mts",
    "tests/schema-expectations.mts",
    "vitest.config.js",
];

/// What the suite runs with.
const PACKAGES: [&str; 9] = [
    "@langchain/langgraph-sdk@1.12.0",
    "@langchain/langgraph@1.4.18",
    "@langchain/core@1.2.13",
    "vitest@4.1.10",
    "wait-port@1.1.0",
    "postgres@3.4.9",
    "zod@4.6.7",
    "hono@4.13.18",
    "jose@6.2.17",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";

const LOG_LINES: usize = 40;
