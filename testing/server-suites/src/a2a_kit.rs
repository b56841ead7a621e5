//! `a2a-kit`: A2A's compatibility kit, unmodified, against our server, compared with a table of its tests that fail.
//!
//! The kit is in no registry, so it needs a checkout. Its tests run there with Python packages of our choice, without its own
//! program, which only groups them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of};
use lexopt::prelude::*;
use services::make_python;

use crate::expected::ExpectedResults;
use crate::graphs::GraphSet;
use crate::junit::SuiteResults;
use crate::python_suite::wait_for_results;
use crate::server_process::TestServer;

/// Which tests fail, and why.
pub(crate) const TABLE: &str = "protocols/a2a_kit.json";

/// What was typed after `a2a-kit`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct A2aKitArgs {
    /// Folder of a checkout of a2a-tck.
    pub(crate) checkout: PathBuf,
    /// Only tests whose names match this expression of pytest.
    pub(crate) only: Option<String>,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    /// Whether the table is printed, instead of compared.
    pub(crate) is_record: bool,
    pub(crate) json: bool,
}

impl A2aKitArgs {
    /// Reads what was typed after `a2a-kit`; `None` if that asks for help.
    pub(crate) fn parse(mut parser: lexopt::Parser) -> Result<Option<Self>, lexopt::Error> {
        let mut checkout: Option<PathBuf> = None;
        let (mut only, mut store, mut is_record, mut json) = (None, None, false, false);
        while let Some(arg) = parser.next()? {
            match arg {
                Long("checkout") => checkout = Some(parser.value()?.into()),
                Long("only") => only = Some(parser.value()?.string()?),
                Long("store") => store = Some(parser.value()?.string()?),
                Long("record") => is_record = true,
                Long("json") => json = true,
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(Self {
            checkout: checkout.ok_or("`a2a-kit` needs `--checkout`, a checkout of a2a-tck")?,
            only,
            store,
            is_record,
            json,
        }))
    }
}

/// Runs the kit, and reports which of its tests differ from the table.
pub(crate) fn run(args: &A2aKitArgs) -> anyhow::Result<()> {
    let checkout = fs::canonicalize(&args.checkout);
    let checkout = checkout.with_context(|| format!("no folder `{}`", args.checkout.display()))?;
    ensure!(
        checkout.join("tests/mandatory").is_dir(),
        "`{}` is not a checkout of a2a-tck",
        args.checkout.display()
    );
    let python = install()?;
    let folder = tempfile::tempdir()?;
    let server = TestServer {
        folder: folder.path(),
        store: args.store.as_deref(),
        graphs: GraphSet::Conformance,
        policy: None,
    };
    let junit = folder.path().join("kit.xml");
    server.run(|address| {
        let mut pytest = pytest(args, &python, address, &junit);
        pytest.current_dir(&checkout);
        let child = pytest.spawn();
        let child = child.with_context(|| format!("cannot start `{}`", in_words(&pytest)))?;
        // Its exit status says less than its results.
        wait_for_results(child, &junit)
    })?;
    let written = fs::read_to_string(&junit).context("pytest wrote no results")?;
    let (mut all, mut selected) = (SuiteResults::default(), SuiteResults::default());
    all.add(&written)?;
    selected.add_selected(&written)?;
    let mut expected = ExpectedResults::read(TABLE)?;
    if args.only.is_some() {
        expected.keep(|test| selected.tests().contains_key(test));
    }
    match args.is_record {
        true => expected.print_recorded(selected.tests()),
        false => {
            let skipped = all.of() - selected.of();
            expected.report("a2a-kit", selected.tests(), skipped, args.json)
        }
    }
}

fn pytest(args: &A2aKitArgs, python: &Path, address: &str, junit: &Path) -> Command {
    // The kit takes addresses of this machine for internal ones, except for this name.
    let address = address.replace("127.0.0.1", "localhost");
    let mut pytest = Command::new(python);
    pytest
        // Nothing is written into the checkout.
        .args(["-B", "-m", "pytest", "-p", "no:cacheprovider"])
        .args(["tests/mandatory", "tests/optional", "-q", "--tb=line"])
        .arg(format!("--sut-url=http://{address}/a2a/{AGENT}"))
        .args(["--test-scope=all", "--transports=jsonrpc"])
        .arg("--junitxml")
        .arg(junit)
        .env("NO_PROXY", "127.0.0.1,localhost")
        // Standard output is for the results.
        .stdout(io::stderr());
    if let Some(only) = &args.only {
        pytest.args(["-k", only]);
    }
    pytest
}

/// The agent that the kit tests. Its card is the server's, because its graph is the first one by name.
const AGENT: &str = "a2a_agent";

/// Installs what is missing, and returns the Python that the kit runs with. Waits for another process that does the same.
fn install() -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let folder = suites.join("a2a-kit");
    let wanted = PACKAGES.join("\n");
    let installed = fs::read_to_string(folder.join(INSTALLED));
    if !installed.is_ok_and(|installed| installed == wanted) {
        eprintln!("server-suites: installing what the kit imports with pip (about 30 s)");
        replace_folder(&folder, |unfinished| {
            let python = make_python("server-suites", "python3", &unfinished.join("venv"))?;
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "--disable-pip-version-check", "-q", "install"]);
            output_of(pip.args(PACKAGES))
                .context("pip has to reach a registry of Python packages")?;
            fs::write(unfinished.join(INSTALLED), &wanted)?;
            Ok(())
        })?;
    }
    Ok(folder.join("venv/bin/python"))
}

/// What the kit imports, also for the protocols that the server does not speak.
const PACKAGES: [&str; 14] = [
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "httpx==0.28.1",
    "requests==2.34.2",
    "responses==0.26.3",
    "deepdiff==9.1.0",
    "jsonschema==4.26.0",
    "packaging==26.3",
    "python-dotenv==1.2.4",
    "grpcio==1.85.1",
    "grpcio-status==1.85.1",
    "googleapis-common-protos==1.76.0",
    "pyOpenSSL==26.4.0",
    "aiohttp==3.14.5",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";
