//! Marks the threads that a living process on this machine runs.
//!
//! A thread whose process was killed stays `running` in the store. Before recovering it, a process must know that the owner is
//! dead; otherwise it would take the thread from a process that is still working. A mark is a locked file next to the store:
//! the operating system releases the lock when the process ends, for whatever reason.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use archie_agent::private_file;
use superstep::ThreadId;

use crate::app::App;
use crate::cli::settings::{Engine, Store};

/// Marks a thread as run by this process until it is dropped.
#[derive(Debug)]
pub(crate) struct RunningMark {
    /// Holds the lock.
    _file: File,
    path: PathBuf,
}

impl RunningMark {
    /// Marks a thread. Returns `None` if another process has marked it, if a cluster runs it, or if the file cannot be written.
    /// The run continues anyway, because marks only guard recovery.
    pub(crate) fn set(app: &App, thread: &ThreadId) -> Option<Self> {
        let path = path(app, thread)?;
        private_file::folder(path.parent()?).ok()?;
        for _ in 0..ATTEMPTS {
            match lock(&path) {
                Ok(Some(file)) => return Some(Self { _file: file, path }),
                Ok(None) => std::thread::sleep(WAIT),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for RunningMark {
    fn drop(&mut self) {
        // A file left behind is unlocked, and so has no effect.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns whether a living process on this machine runs a thread.
pub(crate) fn is_running_here(app: &App, thread: &ThreadId) -> bool {
    let Some(path) = path(app, thread) else {
        return false;
    };
    match File::open(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(_) => false,
    }
}

/// Locks the file. Returns `None` if another process holds the lock or has just removed the file.
fn lock(path: &PathBuf) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    // The owner may have removed the file after we opened it and before we locked it; other processes would not see this lock.
    let is_current = match std::fs::metadata(path) {
        Ok(current) => current.ino() == file.metadata()?.ino(),
        Err(_) => false,
    };
    Ok(is_current.then_some(file))
}

/// Returns the path of a thread's mark; `None` with a cluster, which tracks its own executions.
fn path(app: &App, thread: &ThreadId) -> Option<PathBuf> {
    if app.settings.engine != Engine::Local {
        return None;
    }
    let folder = match &app.settings.store {
        Store::Sqlite(path) => {
            let mut folder = path.clone().into_os_string();
            folder.push(".running");
            PathBuf::from(folder)
        }
        Store::Postgres(_) => app.settings.home.join("running"),
    };
    let name = xxhash_rust::xxh3::xxh3_128(thread.to_string().as_bytes());
    Some(folder.join(format!("{name:032x}.lock")))
}

/// Another process that checks the mark locks it for a moment, so try again.
const ATTEMPTS: usize = 10;
const WAIT: Duration = Duration::from_millis(2);
