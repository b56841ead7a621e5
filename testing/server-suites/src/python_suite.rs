//! `python`: the integration suite of the official Python SDK, unmodified, against our server.
//!
//! The suite comes from the source distribution of the SDK, and runs in a Python of its own; both are installed into the cache
//! folder, once. One of its files has the address of the server built in, so it runs in a network namespace of its own, with
//! a server that has this address there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use free_ports::free_port;
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of};
use services::make_python;

use crate::graphs::GraphSet;
use crate::junit::SuiteResults;
use crate::namespace::{BuiltInAddress, FIXED_PORT, fixed_address, open_built_in_address};
use crate::server_process::ServerProcess;

/// What was typed after `python`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonArgs {
    /// Only tests whose names match this expression of pytest.
    pub(crate) only: Option<String>,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    /// How many tests must pass. Default: all.
    pub(crate) expect: Option<usize>,
    pub(crate) json: bool,
}

/// What a part of the suite runs with. Inside of the namespace, this program gets it on its command line, apart from the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PartArgs {
    pub(crate) only: Option<String>,
    pub(crate) store: String,
    /// Where the results and the log of the server go.
    pub(crate) folder: PathBuf,
}

/// Runs the suite, and reports which tests passed.
pub(crate) fn run(args: &PythonArgs) -> anyhow::Result<()> {
    let suite = PythonSuite::install()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("suite.db").display().to_string();
    let run = PartArgs {
        only: args.only.clone(),
        store: args.store.clone().unwrap_or(file),
        folder: folder.path().to_owned(),
    };
    let mut results = SuiteResults::default();
    let address = format!("127.0.0.1:{}", free_port());
    suite.run_part(Part::AnyAddress, &address, &run)?;
    results.add(&run.results_of(Part::AnyAddress)?)?;
    run_at_fixed_address(&suite, &run)?;
    results.add(&run.results_of(Part::FixedAddress)?)?;
    if results.passed() < results.of() {
        run.print_logs();
    }
    results.report("python", SDK, args.json, args.expect)
}

/// Runs the file with the built-in address.
fn run_at_fixed_address(suite: &PythonSuite, run: &PartArgs) -> anyhow::Result<()> {
    let server = BuiltInAddress {
        store: &run.store,
        graphs: GraphSet::Python,
        port: FIXED_PORT,
        policy: None,
        log: &run.log(Part::FixedAddress),
        folder: &run.folder,
    };
    let inside = |command: &mut Command| {
        command
            .args([NAMESPACE_COMMAND, "--folder"])
            .arg(&run.folder);
        if let Some(only) = &run.only {
            command.args(["--only", only]);
        }
    };
    server.run(inside, || {
        suite.test(Part::FixedAddress, &fixed_address(), run)
    })
}

/// Name of the command that runs inside of the namespace.
pub(crate) const NAMESPACE_COMMAND: &str = "python-in-namespace";

/// Runs inside of the namespace.
pub(crate) fn run_in_namespace(run: &PartArgs, socket: PathBuf) -> anyhow::Result<()> {
    open_built_in_address(socket, FIXED_PORT)?;
    let suite = PythonSuite::install()?;
    suite.test(Part::FixedAddress, &fixed_address(), run)
}

/// A part of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The files that take the address of the server from the environment.
    AnyAddress,
    /// The file that does not.
    FixedAddress,
}

impl Part {
    const ALL: [Self; 2] = [Self::AnyAddress, Self::FixedAddress];

    const fn name(self) -> &'static str {
        match self {
            Self::AnyAddress => "any-address",
            Self::FixedAddress => "fixed-address",
        }
    }

    /// Returns the arguments of pytest that select the files.
    fn files(self) -> Vec<String> {
        match self {
            Self::AnyAddress => vec![TESTS.to_owned(), format!("--ignore={FIXED_ADDRESS_TESTS}")],
            Self::FixedAddress => vec![FIXED_ADDRESS_TESTS.to_owned()],
        }
    }
}

impl PartArgs {
    fn junit(&self, part: Part) -> PathBuf {
        self.folder.join(format!("{}.xml", part.name()))
    }

    fn log(&self, part: Part) -> PathBuf {
        self.folder.join(format!("{}.log", part.name()))
    }

    fn results_of(&self, part: Part) -> anyhow::Result<String> {
        let results = fs::read_to_string(self.junit(part));
        results.with_context(|| format!("pytest wrote no results of the part `{}`", part.name()))
    }

    /// Prints the last lines of the servers, for a person who wants to know why tests failed.
    fn print_logs(&self) {
        for part in Part::ALL {
            let log = fs::read_to_string(self.log(part)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("the end of the server's log, part `{}`:", part.name());
            for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
                eprintln!("  {line}");
            }
        }
    }
}

/// The suite, installed.
#[derive(Debug)]
struct PythonSuite {
    folder: PathBuf,
}

impl PythonSuite {
    /// Installs what is missing. Waits for another process that does the same.
    fn install() -> anyhow::Result<Self> {
        let suites = cache()?.join("server-suites");
        fs::create_dir_all(&suites)
            .with_context(|| format!("cannot create `{}`", suites.display()))?;
        let lock = File::create(suites.join("lock"))?;
        lock.lock()?;
        let suite = Self {
            folder: suites.join("python-sdk"),
        };
        let wanted = PACKAGES.join("\n");
        let installed = fs::read_to_string(suite.folder.join(INSTALLED));
        if installed.is_ok_and(|installed| installed == wanted) {
            return Ok(suite);
        }
        eprintln!("server-suites: installing {SDK} and its test suite with pip (about 20 s)");
        replace_folder(&suite.folder, |unfinished| {
            install_into(unfinished)?;
            fs::write(unfinished.join(INSTALLED), &wanted)?;
            Ok(())
        })?;
        Ok(suite)
    }

    fn python(&self) -> PathBuf {
        self.folder.join("venv/bin/python")
    }

    /// Returns the folder of the SDK's sources.
    fn sources(&self) -> PathBuf {
        self.folder.join(SOURCES)
    }

    /// Starts a server, runs a part of the suite against it, and stops it.
    fn run_part(&self, part: Part, address: &str, run: &PartArgs) -> anyhow::Result<()> {
        let log = run.log(part);
        let server = ServerProcess::start(address, &run.store, GraphSet::Python, &log)?;
        let tested = self.test(part, address, run);
        let stopped = server.stop();
        tested?;
        stopped.with_context(|| fs::read_to_string(&log).unwrap_or_default())
    }

    fn test(&self, part: Part, address: &str, run: &PartArgs) -> anyhow::Result<()> {
        let junit = run.junit(part);
        let mut pytest = Command::new(self.python());
        pytest
            .current_dir(self.sources())
            .args(["-m", "pytest", "-q", "-m", "integration"])
            // Instead of the SDK's own, which leave this suite out.
            .args(["-o", "addopts=--strict-markers --strict-config"])
            .args(["-p", "no:cacheprovider", "--timeout", TEST_SECONDS])
            .arg("--junitxml")
            .arg(&junit)
            .args(part.files())
            .env("LANGGRAPH_INTEGRATION_URL", format!("http://{address}"))
            .env("LANGSMITH_TRACING", "false")
            .env("NO_PROXY", "127.0.0.1,localhost")
            // Standard output is for the results.
            .stdout(io::stderr());
        if let Some(only) = &run.only {
            pytest.args(["-k", only]);
        }
        let child = pytest.spawn();
        let child = child.with_context(|| format!("cannot start `{}`", in_words(&pytest)))?;
        // Its exit status says less than its results.
        wait_for_results(child, &junit)
    }
}

/// Installs what the suite runs with, if it is missing, and returns its Python.
pub(crate) fn install_python() -> anyhow::Result<PathBuf> {
    Ok(PythonSuite::install()?.python())
}

fn install_into(folder: &Path) -> anyhow::Result<()> {
    let python = make_python("server-suites", "python3", &folder.join("venv"))?;
    let pip = |words: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "--disable-pip-version-check", "-q"]);
        command.args(words);
        command
    };
    let unreachable = "pip has to reach a registry of Python packages";
    output_of(pip(&["install"]).args(PACKAGES)).context(unreachable)?;
    // Its build tools may be binary; the package itself must not be, for only its sources have the tests.
    let download = ["download", "--no-deps", "--no-binary", SDK_NAME, SDK, "-d"];
    output_of(pip(&download).arg(folder)).context(unreachable)?;
    let archive = folder.join(format!("{SOURCES}.tar.gz"));
    let mut unpack = Command::new(&python);
    output_of(
        unpack
            .args(["-m", "tarfile", "-e"])
            .arg(archive)
            .arg(folder),
    )?;
    let tests = folder.join(SOURCES).join(FIXED_ADDRESS_TESTS);
    ensure!(tests.is_file(), "the sources of {SDK} have no tests");
    Ok(())
}

/// Waits until a test runner has ended. One that has written its results and does not end has a thread that waits for a server that
/// will not answer any more.
pub(crate) fn wait_for_results(mut runner: Child, junit: &Path) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut written: Option<Instant> = None;
    loop {
        if runner.try_wait()?.is_some() {
            return Ok(());
        }
        // Some runners create the file when they start.
        let has_results = || fs::metadata(junit).is_ok_and(|file| file.len() > 0);
        if written.is_none() && has_results() {
            written = Some(Instant::now());
        }
        let is_stuck = written.is_some_and(|written| written.elapsed() > EXIT_MAX);
        let is_late = started.elapsed() > SUITE_MAX;
        if is_stuck || is_late {
            runner.kill()?;
            runner.wait()?;
            match is_stuck {
                true => return Ok(()),
                false => bail!("the tests did not end within {} s", SUITE_MAX.as_secs()),
            }
        }
        sleep(POLL);
    }
}

const SDK_NAME: &str = "langgraph-sdk";
const SDK: &str = "langgraph-sdk==0.4.14";
/// Folder in the source distribution of the SDK.
const SOURCES: &str = "langgraph_sdk-0.4.14";
const TESTS: &str = "tests/integration";
const FIXED_ADDRESS_TESTS: &str = "tests/integration/test_remote_graph_v3.py";

/// What the suite runs with. The SDK itself does not exclude websockets 17, whose client it was not made for.
const PACKAGES: [&str; 9] = [
    SDK,
    "langgraph==1.2.20",
    "langchain-core==1.7.2",
    "langchain-protocol==0.0.20",
    "httpx==0.28.1",
    "websockets==16.1.1",
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "pytest-timeout==2.4.0",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";

/// How long a test may take. A test whose stream never ends would otherwise take forever.
const TEST_SECONDS: &str = "30";
const SUITE_MAX: Duration = Duration::from_secs(420);
const EXIT_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
const LOG_LINES: usize = 40;
