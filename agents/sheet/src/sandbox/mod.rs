//! Runs the planner's code in a process that can read its input, write to one folder, and do nothing else.
//!
//! [`Sandbox::run`] turns a job (a folder to read, a folder to write, limits) into an [`Outcome`]. There are two
//! implementations: [`Bubblewrap`], which isolates the code, and [`Unsandboxed`], which does not and is only used if the person
//! asks for it.

mod bubblewrap;
pub mod environment;
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
pub(crate) use python::IMPORTS;
pub use python::{MODULES, NoPython, Python, VARIABLE};
pub use unsandboxed::Unsandboxed;

/// Runs the code of a [`Job`].
pub trait Sandbox: std::fmt::Debug + Send + Sync {
    /// Returns the kind of this sandbox.
    fn kind(&self) -> Kind;

    /// Runs a job until it ends or reaches a limit. An error means that this machine failed, never the code.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<Outcome, SandboxError>>;
}

/// Kind of sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// bubblewrap: no network, a read-only system, one writable folder.
    #[default]
    Bubblewrap,
    /// No isolation at all.
    Unsandboxed,
}

/// One run of code: its folders and limits.
#[derive(Debug)]
pub struct Job {
    /// Folder that the code can read. The sandbox runs the `runner.py` in it.
    pub given: PathBuf,
    /// Folder that the code can write to.
    pub writable: PathBuf,
    /// Resource limits.
    pub limits: Limits,
    folder: tempfile::TempDir,
}

impl Job {
    /// Creates a job with its own temporary folders, which are removed when it is dropped.
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

    /// Adds a file that the code can read.
    pub fn give(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        std::fs::write(self.given.join(name), bytes)
    }

    /// Returns a file that the code left behind, or `None` if it is missing, too large or not a regular file. Links are not
    /// followed, because the code could point them anywhere.
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

    /// Returns the names of up to 1,000 entries that the code left behind, in order.
    pub fn names(&self) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.written()?.entries(NAMES_MAX)?.entries {
            // We asked for no file whose name is not text.
            names.extend(entry.name.as_os_str().to_str().map(str::to_owned));
        }
        Ok(names)
    }

    /// Opens the output folder. Untrusted code filled it, so no link in it is followed.
    fn written(&self) -> Result<UserFolder, FolderError> {
        UserFolder::open(&self.writable)
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Resource limits of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Wall-clock time, in milliseconds.
    pub time_ms: u64,
    /// Processor time, in seconds.
    pub cpu_s: u64,
    /// Address space, in bytes.
    pub memory_bytes: u64,
    /// Size of any one file, in bytes.
    pub file_bytes: u64,
    /// Size of all files that it writes, in bytes.
    pub folder_bytes: u64,
    /// Number of threads. The code cannot start other processes.
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
    /// Why it ended.
    pub end: End,
    /// The beginning of its standard error, at least 16 KiB if there is that much.
    pub said: String,
    /// Wall-clock time from start to end.
    pub took: Duration,
}

/// Why a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited on its own, with this status.
    Exited(i32),
    /// It exceeded the wall-clock time.
    Time,
    /// It exceeded the processor time.
    Cpu,
    /// It wrote too many bytes or files, or hid its open files from inspection.
    Disk,
    /// A signal killed it: the kernel for lack of memory or at the hard limit of processor time, or the code itself.
    Killed,
}

impl End {
    /// Returns the reason as text for the planner and the person, or `None` if the job exited on its own.
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

/// Why code cannot run on this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A required program is not installed.
    #[error("`{program}` is not installed; {remedy}")]
    Missing {
        /// Name of the program.
        program: &'static str,
        /// How to install it.
        remedy: &'static str,
    },
    /// There is no suitable Python.
    #[error(transparent)]
    Python(#[from] NoPython),
    /// bubblewrap could not set up the isolation, so nothing was run.
    #[error(
        "the sandbox could not be set up, so nothing was run: {says}; `archie doctor` reports what to do"
    )]
    Walls {
        /// Error output of bubblewrap.
        says: String,
    },
    /// A trial run in the sandbox failed. If root started the program, most often because other users cannot read the Python.
    #[error(
        "`{python}` does not work in the sandbox: {why}; set ARCHIE_PYTHON to a Python with pandas and openpyxl that all users can read, or unset it and run `archie demo`, which makes such an environment",
        python = python.display()
    )]
    Trial {
        /// Path of the interpreter.
        python: PathBuf,
        /// What the trial run said.
        why: String,
    },
    /// The system call filter could not be compiled.
    #[error("the filter of system calls could not be made")]
    Filter(#[source] seccompiler::BackendError),
    /// A file operation failed, or a process could not be started.
    #[error("the sandbox could not be run")]
    Io(#[from] std::io::Error),
}

/// File name of the script that runs the code inside the sandbox.
pub const RUNNER: &str = "runner.py";
const RUNNER_TEXT: &str = include_str!("runner.py");
const NAMES_MAX: usize = 1_000;
