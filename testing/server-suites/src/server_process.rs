//! The server as a process of its own: this program with `serve`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use free_ports::free_port;
use rustix::process::{Pid, Signal, kill_process};

use crate::graphs::GraphSet;

/// The server of one test run.
#[derive(Debug)]
pub(crate) struct TestServer<'a> {
    /// Where its log goes, and its SQLite file if it has no other store.
    pub(crate) folder: &'a Path,
    pub(crate) store: Option<&'a str>,
    pub(crate) graphs: GraphSet,
    /// The policy file of a server that authenticates its callers.
    pub(crate) policy: Option<&'a Path>,
}

impl TestServer<'_> {
    /// Starts the server on a free port, passes its address to `test`, and stops it. An error has what the server reported.
    pub(crate) fn run<T>(&self, test: impl FnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let address = format!("127.0.0.1:{}", free_port());
        let file = self.folder.join("suite.db").display().to_string();
        let store = self.store.unwrap_or(&file);
        let log = self.folder.join("server.log");
        let server =
            ServerProcess::start_with_policy(&address, store, self.graphs, &log, self.policy)?;
        let tested = test(&address);
        let stopped = server.stop();
        let reported = || fs::read_to_string(&log).unwrap_or_default();
        let tested = tested.with_context(reported)?;
        stopped.with_context(reported)?;
        Ok(tested)
    }
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts a server, and waits until it listens. It writes what it reports to the file `log`.
    pub(crate) fn start(
        address: &str,
        store: &str,
        graphs: GraphSet,
        log: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_with_policy(address, store, graphs, log, None)
    }

    /// Starts a server that authenticates its callers if there is a policy file.
    pub(crate) fn start_with_policy(
        address: &str,
        store: &str,
        graphs: GraphSet,
        log: &Path,
        policy: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let written = File::create(log);
        let written = written.with_context(|| format!("cannot create `{}`", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--address", address, "--store", store])
            .args(["--graphs", graphs.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(written);
        if let Some(policy) = policy {
            command.arg("--auth").arg(policy);
        }
        let child = command.spawn().context("the server cannot be started")?;
        let mut server = Self {
            child,
            log: log.to_owned(),
        };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            let reported = fs::read_to_string(&self.log)?;
            if reported.contains("listening on ") {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server stopped at once ({status}): {}", reported.trim());
            }
            if started.elapsed() > START_MAX {
                bail!("the server does not listen: {}", reported.trim());
            }
            sleep(POLL);
        }
    }

    /// Asks the server to stop, and waits until it has. Fails if it does not, or stops with an error.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server stopped early ({status})");
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let asked = Instant::now();
        while asked.elapsed() < STOP_MAX {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the server stopped with an error ({status})"),
                None => sleep(POLL),
            }
        }
        bail!("the server does not stop")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail for a server that has stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
