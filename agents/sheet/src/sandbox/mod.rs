//! Where the planner's code runs: a process that can read what it is given, write one folder, and nothing else.
//!
//! [`Sandbox::run`] is the whole of it: a job (a folder to read, a folder to write, limits) becomes an [`Outcome`]. Two of them:
//! [`Bubblewrap`], with walls, and [`Unsandboxed`], which has none and is only taken by whoever says so.

mod bubblewrap;
mod process;
mod python;
mod seccomp;
mod unlinked;
mod unsandboxed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use archie_agent::user_folder::{FileName, FolderError, UserFolder};
use serde::{Deserialize, Serialize};
use superstep::checkpoint::BoxFuture;

pub use bubblewrap::Bubblewrap;
pub use python::{MODULES, NoPython, Python, VARIABLE};
pub use unsandboxed::Unsandboxed;

/// Something that runs code.
pub trait Sandbox: std::fmt::Debug + Send + Sync {
    /// Which of them.
    fn kind(&self) -> Kind;

    /// Runs a job to its end, or to the limit that ends it. An error is one of the machine, never one of the code.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, SandboxError>>;
}

/// Which sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// bubblewrap: no network, a read-only system, one writable folder.
    #[default]
    Bubblewrap,
    /// None at all.
    Unsandboxed,
}

/// What is to be run, and what it may take.
#[derive(Debug)]
pub struct Job {
    /// What it can read. Its `runner.py` is what runs.
    pub given: PathBuf,
    /// What it can write.
    pub writable: PathBuf,
    /// What it may take.
    pub limits: Limits,
    folder: tempfile::TempDir,
}

impl Job {
    /// A job with folders of its own, which are gone when it is dropped.
    pub fn new(limits: Limits) -> std::io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let only_mine = std::fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new()
            .prefix("archie-sheet-")
            .permissions(only_mine)
            .tempdir()?;
        let job = Self {
            given: folder.path().join("in"),
            writable: folder.path().join("data"),
            limits,
            folder,
        };
        std::fs::create_dir(&job.given)?;
        std::fs::create_dir(&job.writable)?;
        std::fs::write(job.given.join(RUNNER), RUNNER_TEXT)?;
        Ok(job)
    }

    /// Gives it a file to read.
    pub fn give(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        std::fs::write(self.given.join(name), bytes)
    }

    /// A file that it left. A link or a pipe is none: what the code made of it could lead anywhere.
    pub fn left(&self, name: &str) -> std::io::Result<Option<Vec<u8>>> {
        let name = FileName::new(name).map_err(FolderError::from)?;
        let read = self.written()?.read(&name.into(), self.limits.file_bytes);
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(FolderError::NotAFile { .. } | FolderError::TooLarge { .. }) => Ok(None),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of the files that it left, in order.
    pub fn names(&self) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.written()?.entries(NAMES_MAX)?.entries {
            // A name that is no text is nothing that we asked for.
            names.extend(entry.name.as_os_str().to_str().map(str::to_owned));
        }
        Ok(names)
    }

    /// The folder that strange code has written, so that nothing in it is followed.
    fn written(&self) -> Result<UserFolder, FolderError> {
        UserFolder::open(&self.writable)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// What a job may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From its start to its end, in milliseconds.
    pub time_ms: u64,
    /// Of a processor, in seconds.
    pub cpu_s: u64,
    /// Of memory.
    pub memory_bytes: u64,
    /// Of any one file.
    pub file_bytes: u64,
    /// Of all that it leaves.
    pub folder_bytes: u64,
    /// Threads; other processes it cannot make at all.
    pub threads: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time_ms: 120_000,
            cpu_s: 120,
            memory_bytes: 3 << 30,
            file_bytes: 256 << 20,
            folder_bytes: 512 << 20,
            threads: 32,
        }
    }
}

impl Limits {
    fn time(self) -> Duration {
        Duration::from_millis(self.time_ms)
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How.
    pub end: End,
    /// The end of what it wrote to its standard error.
    pub said: String,
    /// How long it took.
    pub took: Duration,
}

/// Why a job is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It came to its end by itself, with this status.
    Exited(i32),
    /// It took longer than it may.
    Time,
    /// It took more of a processor than it may.
    Cpu,
    /// It wrote more than it may.
    Disk,
    /// Something killed it: the system for want of memory or at the last limit of the processor, or the code itself.
    Killed,
}

impl End {
    /// In words for the planner and the person; nothing if it ended by itself.
    pub fn says(self, limits: &Limits) -> Option<String> {
        Some(match self {
            Self::Exited(_) => return None,
            Self::Time => format!(
                "stopped: it took longer than {} s",
                limits.time_ms as f64 / 1000.0
            ),
            Self::Cpu => format!(
                "stopped: it took more than {} s of processor time",
                limits.cpu_s
            ),
            Self::Disk => format!(
                "stopped: it wrote more than {} MB",
                limits.folder_bytes >> 20
            ),
            Self::Killed => {
                "stopped: it was killed, for it took too much memory or processor time".to_owned()
            }
        })
    }
}

/// What is wrong with the machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A program is missing.
    #[error("`{program}` is not installed; {mend}")]
    Missing {
        /// Which.
        program: &'static str,
        /// What to do.
        mend: &'static str,
    },
    /// No Python that will do.
    #[error(transparent)]
    Python(#[from] NoPython),
    /// The walls could not be put up, so nothing was run.
    #[error("the sandbox could not be set up, so nothing was run: {says}")]
    Walls {
        /// What bubblewrap said.
        says: String,
    },
    /// A filter of system calls could not be made.
    #[error("the filter of system calls could not be made")]
    Filter(#[source] seccompiler::BackendError),
    /// Files or processes.
    #[error("the sandbox could not be run")]
    Io(#[from] std::io::Error),
}

/// What runs in it.
pub const RUNNER: &str = "runner.py";
const RUNNER_TEXT: &str = include_str!("runner.py");
const NAMES_MAX: usize = 1_000;
