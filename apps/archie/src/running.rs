//! Marks the threads that a living process of this machine runs.
//!
//! A thread whose process was killed stays `running` in the store. Whoever wants to recover it has to know that its process is
//! dead, or they take the thread away from one that works. A mark is a locked file next to the store: the system unlocks it when
//! its process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use archie_agent::private_file;
use superstep::ThreadId;

use crate::app::App;
use crate::cli::settings::{Engine, Store};

/// A thread is run by this process while this lives.
#[derive(Debug)]
pub(crate) struct RunningMark {
    /// Locked.
    _file: File,
    path: PathBuf,
}

impl RunningMark {
    /// Marks a thread. None if another process has marked it, if a cluster runs it, or if nothing can be written: the run goes
    /// on all the same, for marks only guard recovery.
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
        // One that is left behind is unlocked, and so means nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns whether a living process of this machine runs a thread.
pub(crate) fn is_running_here(app: &App, thread: &ThreadId) -> bool {
    let Some(path) = path(app, thread) else {
        return false;
    };
    match File::open(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(_) => false,
    }
}

/// Locks the file. None if another process has it, or has just removed it.
fn lock(path: &PathBuf) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    if file.try_lock().is_err() {
        return Ok(None);
    }
    // Its owner may have removed it between our opening and our locking; then others would not see this lock.
    let is_current = match std::fs::metadata(path) {
        Ok(current) => current.ino() == file.metadata()?.ino(),
        Err(_) => false,
    };
    Ok(is_current.then_some(file))
}

/// Where the mark of a thread is; none on a cluster, which knows itself who runs what.
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

/// A look at the mark by another process locks it for a moment.
const ATTEMPTS: usize = 10;
const WAIT: Duration = Duration::from_millis(2);
