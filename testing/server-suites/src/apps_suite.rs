//! `apps`: the web apps for LangGraph's server, driven in a browser against ours as a person would, and `RemoteGraph` as a node of a
//! Python graph.
//!
//! The apps are built from checkouts of their repositories. The drives are JavaScript, in the folder `apps` of this package: what a
//! person does, what the page shows then, and what the server has stored.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use free_ports::free_port;
use harness::folder::replace_folder;
use harness::workspace::{cache, in_words, output_of, root};

use crate::graphs::GraphSet;
use crate::junit::SuiteResults;
use crate::python_suite::install_python;
use crate::server_process::ServerProcess;
use crate::web_app::{AppProcess, WebApp};

/// What was typed after `apps`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AppsArgs {
    /// Folder with the checkouts of the apps, each in a folder with the name of its repository.
    pub(crate) checkout: PathBuf,
    /// Only drives whose `APP: NAME` contains this text; `remote-graph` for `RemoteGraph`.
    pub(crate) only: Option<String>,
    /// Where pictures of the pages go. Default: none are taken.
    pub(crate) screenshots: Option<PathBuf>,
    /// Program of the browser.
    pub(crate) browser: PathBuf,
    /// Where the server stores its data. Default: a SQLite file that is deleted afterwards.
    pub(crate) store: Option<String>,
    /// How many drives must pass. Default: all.
    pub(crate) expect: Option<usize>,
    pub(crate) json: bool,
}

/// Program of the browser where packages of Linux distributions install it.
pub(crate) const BROWSER: &str = "/usr/bin/chromium";

/// Drives the apps, and reports which drives passed.
pub(crate) fn run(args: &AppsArgs) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("suite.db").display().to_string();
    let store = args.store.clone().unwrap_or(file);
    let suite = AppsSuite {
        args,
        address: format!("127.0.0.1:{}", free_port()),
        folder: folder.path().to_owned(),
    };
    let apps = suite.build()?;
    let python = suite.has_remote_graph().then(install_python).transpose()?;
    let log = suite.folder.join("server.log");
    let server = ServerProcess::start(&suite.address, &store, GraphSet::Apps, &log)?;
    let driven = suite.run(&apps, python.as_deref());
    let stopped = server.stop();
    let results = driven?;
    stopped.with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
    results.report("apps", "web apps", args.json, args.expect)
}

/// The drives, and what they need.
struct AppsSuite<'a> {
    args: &'a AppsArgs,
    /// Address of the server.
    address: String,
    /// Where results and logs go.
    folder: PathBuf,
}

/// An app, and the folder that it is built in.
type BuiltApp = (WebApp, PathBuf);

impl AppsSuite<'_> {
    /// Builds the apps that are driven, one after the other: a build uses all cores.
    fn build(&self) -> anyhow::Result<Vec<BuiltApp>> {
        let fonts = drives().join("fonts.cjs");
        let apps = WebApp::ALL.into_iter().filter(|app| self.has(app.name()));
        apps.map(|app| Ok((app, app.build(&self.args.checkout, &fonts)?)))
            .collect()
    }

    /// Whether drives of this app may be among those that are wanted.
    fn has(&self, name: &str) -> bool {
        let names = WebApp::ALL.map(WebApp::name);
        match &self.args.only {
            None => true,
            Some(only) if only == REMOTE_GRAPH => false,
            Some(only) if names.iter().any(|name| only.starts_with(name)) => only.starts_with(name),
            Some(_) => true,
        }
    }

    fn has_remote_graph(&self) -> bool {
        let only = self.args.only.as_deref();
        only.is_none_or(|only| only == REMOTE_GRAPH)
    }

    fn run(&self, apps: &[BuiltApp], python: Option<&Path>) -> anyhow::Result<SuiteResults> {
        let mut results = SuiteResults::default();
        if !apps.is_empty() {
            results.add(&self.drive(apps)?)?;
        }
        if let Some(python) = python {
            results.add(&self.test_remote_graph(python)?)?;
        }
        Ok(results)
    }

    /// Starts the apps, drives them, and returns the results.
    fn drive(&self, apps: &[BuiltApp]) -> anyhow::Result<String> {
        let started = apps.iter().map(|(app, folder)| {
            let log = self.folder.join(format!("{}.log", app.name()));
            anyhow::Ok((app, AppProcess::start(folder, &log)?))
        });
        let started: Vec<_> = started.collect::<Result<_, _>>()?;
        let junit = self.folder.join("drives.xml");
        let mut node = Command::new("node");
        node.arg(drives().join("drive.mjs"))
            .args(["--server", &self.url()])
            .arg("--packages")
            .arg(install_packages()?)
            .arg("--browser")
            .arg(&self.args.browser)
            .arg("--junit")
            .arg(&junit)
            // Standard output is for the results.
            .stdout(io::stderr());
        if let Some(screenshots) = &self.args.screenshots {
            node.arg("--screenshots").arg(screenshots);
        }
        if let Some(only) = &self.args.only {
            node.args(["--only", only]);
        }
        for (app, process) in &started {
            node.arg(format!("{}={}", app.name(), process.url()));
        }
        let status = node.status().context("node cannot be started")?;
        ensure!(status.success(), "`{}`: {status}", in_words(&node));
        fs::read_to_string(junit).context("the drives wrote no results")
    }

    fn test_remote_graph(&self, python: &Path) -> anyhow::Result<String> {
        let junit = self.folder.join("remote-graph.xml");
        let mut pytest = Command::new(python);
        pytest
            .current_dir(drives())
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
            .args(["--timeout", "60", "--junitxml"])
            .arg(&junit)
            .arg("test_remote_graph.py")
            .env("SERVER_URL", self.url())
            .env("LANGSMITH_TRACING", "false")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(io::stderr());
        // Its exit status says less than its results.
        pytest.status().context("pytest cannot be started")?;
        fs::read_to_string(junit).context("pytest wrote no results")
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Returns the folder of the drives.
fn drives() -> PathBuf {
    root().join("testing/server-suites/apps")
}

/// Installs what controls the browser, if it is missing. Returns its folder. Waits for another process that does the same.
fn install_packages() -> anyhow::Result<PathBuf> {
    let suites = cache()?.join("server-suites");
    fs::create_dir_all(&suites).with_context(|| format!("cannot create `{}`", suites.display()))?;
    let lock = File::create(suites.join("lock"))?;
    lock.lock()?;
    let folder = suites.join("browser-control");
    let installed = fs::read_to_string(folder.join(INSTALLED));
    if installed.is_ok_and(|installed| installed == PLAYWRIGHT) {
        return Ok(folder);
    }
    replace_folder(&folder, |unfinished| {
        fs::write(unfinished.join("package.json"), r#"{"private":true}"#)?;
        let mut npm = Command::new("npm");
        npm.current_dir(unfinished)
            .args(["install", "--save-exact", "--ignore-scripts"])
            .args(["--no-audit", "--no-fund", PLAYWRIGHT]);
        output_of(&mut npm).context("npm has to reach a registry of packages")?;
        fs::write(unfinished.join(INSTALLED), PLAYWRIGHT)?;
        Ok(())
    })?;
    Ok(folder)
}

/// Name of the tests of `RemoteGraph` on the command line.
const REMOTE_GRAPH: &str = "remote-graph";

const PLAYWRIGHT: &str = "playwright-core@1.65.1";

/// Lists what was installed; written last.
const INSTALLED: &str = "installed";

#[test]
fn only_the_apps_that_are_wanted_are_started() {
    let has = |only: Option<&str>| {
        let args = AppsArgs {
            checkout: PathBuf::from("apps"),
            only: only.map(str::to_owned),
            screenshots: None,
            browser: PathBuf::from(BROWSER),
            store: None,
            expect: None,
            json: false,
        };
        let suite = AppsSuite {
            args: &args,
            address: "127.0.0.1:1".to_owned(),
            folder: PathBuf::new(),
        };
        let apps = WebApp::ALL.map(|app| suite.has(app.name()));
        (apps, suite.has_remote_graph())
    };
    assert_eq!(has(None), ([true; 3], true));
    assert_eq!(has(Some("approves")), ([true; 3], false));
    assert_eq!(
        has(Some("agent-chat-ui: approves")),
        ([false, true, false], false)
    );
    assert_eq!(has(Some(REMOTE_GRAPH)), ([false; 3], true));
}
