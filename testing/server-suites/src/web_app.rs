//! The web apps for LangGraph's server: built from their sources, once, and started.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use free_ports::free_port;
use harness::workspace::output_of;
use serde_json::Value as Json;

/// A web app that people use with LangGraph's server. All are Next.js projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebApp {
    AgentInbox,
    AgentChatUi,
    DeepAgentsUi,
}

impl WebApp {
    pub(crate) const ALL: [Self; 3] = [Self::AgentInbox, Self::AgentChatUi, Self::DeepAgentsUi];

    /// Returns the name of its repository, which is also that of its checkout and of the file with its drives.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AgentInbox => "agent-inbox",
            Self::AgentChatUi => "agent-chat-ui",
            Self::DeepAgentsUi => "deep-agents-ui",
        }
    }

    /// Installs its packages and builds it, unless that was done before. Returns its folder. `fonts` answers requests for web fonts,
    /// which the build would otherwise download.
    pub(crate) fn build(self, checkouts: &Path, fonts: &Path) -> anyhow::Result<PathBuf> {
        let (name, folder) = (self.name(), checkouts.join(self.name()));
        ensure!(
            folder.join("package.json").is_file(),
            "`{}` is not a checkout of {name}",
            folder.display()
        );
        // Next.js writes it last.
        if folder.join(".next/BUILD_ID").is_file() {
            return Ok(folder);
        }
        eprintln!("server-suites: installing the packages of {name} (about 1 min)");
        output_of(&mut install(&folder)).context("npm has to reach a registry of packages")?;
        eprintln!("server-suites: building {name} (about 1 min)");
        let mut build = next(&folder);
        build
            .arg("build")
            .args(bundler(&folder)?)
            .env("NEXT_FONT_GOOGLE_MOCKED_RESPONSES", fonts);
        output_of(&mut build)?;
        Ok(folder)
    }
}

/// Installs what the project's lock file names. npm reads those of Yarn too.
fn install(folder: &Path) -> Command {
    let is_pnpm = folder.join("pnpm-lock.yaml").is_file();
    let mut command = Command::new(if is_pnpm { "npx" } else { "npm" });
    command.current_dir(folder);
    match is_pnpm {
        true => command.args(["--yes", PNPM, "install", "--frozen-lockfile"]),
        // Some packages want others for parts of them that the app does not use.
        false => command.args(["install", "--legacy-peer-deps", "--no-audit", "--no-fund"]),
    };
    command
}

fn next(folder: &Path) -> Command {
    let mut command = Command::new("node");
    command
        .current_dir(folder)
        .arg("node_modules/next/dist/bin/next")
        .env("NEXT_TELEMETRY_DISABLED", "1");
    command
}

/// Returns the arguments that choose webpack, which is the only bundler that takes our fonts. Before version 16 it is the default.
fn bundler(folder: &Path) -> anyhow::Result<&'static [&'static str]> {
    let package = fs::read_to_string(folder.join("node_modules/next/package.json"))?;
    let package: Json = serde_json::from_str(&package)?;
    let version = package["version"].as_str().unwrap_or_default();
    let major = version.split('.').next().unwrap_or_default();
    let major: u32 = major
        .parse()
        .with_context(|| format!("`{version}` is not a version of Next.js"))?;
    let arguments: &[&str] = if major >= 16 { &["--webpack"] } else { &[] };
    Ok(arguments)
}

/// An app that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct AppProcess {
    child: Child,
    port: u16,
}

impl AppProcess {
    /// Starts the app of a folder, and waits until it listens. It writes what it reports to the file `log`.
    pub(crate) fn start(folder: &Path, log: &Path) -> anyhow::Result<Self> {
        let port = free_port();
        let written = File::create(log);
        let written = written.with_context(|| format!("cannot create `{}`", log.display()))?;
        let mut command = next(folder);
        command
            .args(["start", "-H", "127.0.0.1", "-p"])
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(written.try_clone()?)
            .stderr(written);
        let child = command.spawn().context("node cannot be started")?;
        let mut app = Self { child, port };
        app.wait_until_it_listens(log)?;
        Ok(app)
    }

    fn wait_until_it_listens(&mut self, log: &Path) -> anyhow::Result<()> {
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let reported = || fs::read_to_string(log).unwrap_or_default();
            if let Some(status) = self.child.try_wait()? {
                bail!("the app stopped at once ({status}): {}", reported().trim());
            }
            if started.elapsed() > START_MAX {
                bail!("the app does not listen: {}", reported().trim());
            }
            sleep(POLL);
        }
        Ok(())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for AppProcess {
    fn drop(&mut self) {
        // Both fail for an app that has stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the lock file of a project that names this version.
const PNPM: &str = "pnpm@10.5.1";

const START_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
