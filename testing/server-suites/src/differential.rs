//! `differential`: the same calls to our server and to LangGraph's, and the answers compared.
//!
//! The scripts of calls are Python, in the folder `differential`, as are the graphs for the reference. Its answers are recorded in
//! files, so a comparison needs only our server; `--live` starts the reference too, and `--record` writes the files.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use free_ports::free_port;
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of, root};
use services::make_python;

use crate::graphs::GraphSet;
use crate::server_process::ServerProcess;

/// What was typed after `differential`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DifferentialArgs {
    /// Only scripts whose names contain this.
    pub(crate) only: Option<String>,
    /// How many comparisons must be equal. Default: all.
    pub(crate) expect: Option<usize>,
    pub(crate) json: bool,
    pub(crate) reference: ReferenceSource,
}

/// Where the reference's answers come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ReferenceSource {
    /// From the files.
    #[default]
    Recorded,
    /// From a reference that is started for it.
    Live,
    /// As `Live`; they become the files, and ours is not asked.
    Record,
}

/// Runs the scripts, and reports which answers differ.
pub(crate) fn run(args: &DifferentialArgs) -> anyhow::Result<()> {
    let python = install(args.reference)?;
    let folder = tempfile::tempdir()?;
    let scripts = Scripts {
        python,
        folder: root().join("testing/server-suites/differential"),
    };
    let reference = match args.reference {
        ReferenceSource::Recorded => None,
        ReferenceSource::Live | ReferenceSource::Record => {
            Some(ReferenceProcess::start(&scripts, folder.path())?)
        }
    };
    if args.reference == ReferenceSource::Record {
        return scripts.run("record", args, None, reference.as_ref());
    }
    if reference.is_none() {
        // Whether a comparison would see a difference at all.
        scripts.run("check", args, None, None)?;
    }
    let address = format!("127.0.0.1:{}", free_port());
    let store = folder.path().join("differential.db").display().to_string();
    let log = folder.path().join("ours.log");
    let ours = ServerProcess::start(&address, &store, GraphSet::Lab, &log)?;
    let compared = scripts.run("compare", args, Some(&address), reference.as_ref());
    let stopped = ours.stop();
    compared?;
    stopped.with_context(|| fs::read_to_string(&log).unwrap_or_default())
}

/// The scripts, and the Python that runs them.
#[derive(Debug)]
struct Scripts {
    python: PathBuf,
    folder: PathBuf,
}

impl Scripts {
    fn run(
        &self,
        command: &str,
        args: &DifferentialArgs,
        ours: Option<&str>,
        reference: Option<&ReferenceProcess>,
    ) -> anyhow::Result<()> {
        let mut python = Command::new(&self.python);
        // Compiled files would lie in the sources.
        python
            .arg("-B")
            .arg(self.folder.join("differential.py"))
            .arg(command)
            .env("NO_PROXY", "127.0.0.1,localhost");
        if let Some(ours) = ours {
            python.args(["--ours", &format!("http://{ours}")]);
            if let Some(expect) = args.expect {
                python.args(["--expect", &expect.to_string()]);
            }
            if args.json {
                python.arg("--json");
            }
        }
        if let Some(reference) = reference {
            python.args(["--reference", &format!("http://{}", reference.address)]);
        }
        if let Some(only) = &args.only {
            python.args(["--only", only]);
        }
        let status = python.status();
        let status = status.with_context(|| format!("cannot start `{}`", in_words(&python)))?;
        ensure!(status.success(), "`{command}`: {status}");
        Ok(())
    }
}

/// LangGraph's development server, which runs until this is dropped.
#[derive(Debug)]
struct ReferenceProcess {
    child: Child,
    address: String,
}

impl ReferenceProcess {
    /// Starts the server with the graphs of the scripts, and waits until it listens.
    fn start(scripts: &Scripts, folder: &Path) -> anyhow::Result<Self> {
        // It stores its data next to the graphs.
        let graphs = folder.join("reference");
        fs::create_dir(&graphs)?;
        for name in ["graphs.py", "langgraph.json"] {
            fs::copy(scripts.folder.join(name), graphs.join(name))?;
        }
        let port = free_port();
        let log = folder.join("reference.log");
        let mut command = Command::new(&scripts.python);
        command
            .current_dir(&graphs)
            .args([
                "-m",
                "langgraph_cli",
                "dev",
                "--no-browser",
                "--no-reload",
                "--port",
                &port.to_string(),
                "--n-jobs-per-worker",
                "10",
            ])
            .env("LANGSMITH_TRACING", "false")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(Stdio::null());
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start `{}`", in_words(&command)))?;
        let mut reference = Self {
            child,
            address: format!("127.0.0.1:{port}"),
        };
        reference.wait_until_it_listens(&log)?;
        Ok(reference)
    }

    fn wait_until_it_listens(&mut self, log: &Path) -> anyhow::Result<()> {
        let started = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            let reported = || fs::read_to_string(log).unwrap_or_default();
            if let Some(status) = self.child.try_wait()? {
                bail!("the reference stopped at once ({status}): {}", reported());
            }
            if started.elapsed() > START_MAX {
                bail!("the reference does not listen: {}", reported());
            }
            sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for ReferenceProcess {
    fn drop(&mut self) {
        // Both fail for a server that has stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Installs what is missing: the client that scripts need, or the reference with it. Waits for another process that does the same.
fn install(reference: ReferenceSource) -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let (name, packages) = match reference {
        ReferenceSource::Recorded => ("differential", CLIENT.as_slice()),
        ReferenceSource::Live | ReferenceSource::Record => ("reference", REFERENCE.as_slice()),
    };
    let folder = suites.join(name);
    let wanted = packages.join("\n");
    let installed = fs::read_to_string(folder.join(INSTALLED));
    if installed.is_ok_and(|installed| installed == wanted) {
        return Ok(folder.join("venv/bin/python"));
    }
    eprintln!("server-suites: installing {} with pip", packages.join(", "));
    replace_folder(&folder, |unfinished| {
        let python = make_python("server-suites", "python3", &unfinished.join("venv"))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--disable-pip-version-check", "-q", "install"]);
        output_of(pip.args(packages)).context("pip has to reach a registry of Python packages")?;
        fs::write(unfinished.join(INSTALLED), &wanted)?;
        Ok(())
    })?;
    Ok(folder.join("venv/bin/python"))
}

const CLIENT: [&str; 1] = ["httpx==0.28.1"];

/// The reference, in the versions whose answers are recorded.
const REFERENCE: [&str; 7] = [
    "httpx==0.28.1",
    "langgraph-cli[inmem]==0.4.40",
    "langgraph-api==0.16.7",
    "langgraph-runtime-inmem==0.36.7",
    "langgraph==1.2.22",
    "langchain-core==1.7.2",
    "langgraph-sdk==0.4.14",
];

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";

const START_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(100);
