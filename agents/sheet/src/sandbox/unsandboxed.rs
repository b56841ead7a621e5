//! No sandbox: the code can do what the person can. Only for whoever says so, and it is said each time.

use superstep::checkpoint::BoxFuture;
use tokio::process::Command;

use super::{Job, Kind, Outcome, Python, RUNNER, Sandbox, SandboxError, process};

/// A Python without walls. The limit of time holds; nothing else does.
#[derive(Debug)]
pub struct Unsandboxed {
    python: Python,
}

impl Unsandboxed {
    /// With this Python.
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
