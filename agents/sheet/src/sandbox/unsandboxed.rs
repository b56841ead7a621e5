//! Runs code without a sandbox: the code can do whatever the person can. Only used if the person asks for it.

use superstep::checkpoint::BoxFuture;
use tokio::process::Command;

use super::{Job, Kind, Outcome, Python, RUNNER, Sandbox, SandboxError, process};

/// Runs Python without isolation. Only the limits on wall-clock time and written bytes are enforced.
#[derive(Debug)]
pub struct Unsandboxed {
    python: Python,
}

impl Unsandboxed {
    /// Creates a runner for this Python.
    pub fn new(python: Python) -> Self {
        Self { python }
    }
}

impl Sandbox for Unsandboxed {
    fn kind(&self) -> Kind {
        Kind::Unsandboxed
    }

    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, SandboxError>> {
        Box::pin(async move {
            let mut command = Command::new(&self.python.program);
            command
                .args(["-I", "-X", "utf8"])
                .arg(job.given.join(RUNNER))
                .args([&job.given, &job.writable])
                .current_dir(&job.writable);
            Ok(process::watch(command, job).await?)
        })
    }
}
