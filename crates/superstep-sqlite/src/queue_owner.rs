//! Ownership of the queue of runs: at most one process executes the runs of a database.
//!
//! A second process would mistake the runs that the first one executes for those that a crash left, and execute them again. So
//! the owner holds a lock that the operating system releases when the process dies, however it dies: no lease to renew, no
//! clock to trust, no stale file to remove by hand.
//!
//! SQLite has such a lock on every system that it runs on, so no further dependency is needed: the one of a transaction that
//! was begun with `BEGIN EXCLUSIVE`. The owner holds it on a file of its own, because on the database it would keep every
//! other process from writing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use superstep_core::__private::lock;
use superstep_core::checkpoint::CheckpointResult;

use crate::Sqlite;
use crate::fault::Fault;
use crate::schema;

/// Ownership of the queue of a database; see [`Sqlite::try_own_queue`]. Dropping it releases the queue.
#[derive(Debug)]
#[must_use = "the queue is released when this is dropped"]
pub struct QueueOwner {
    held: HeldLock,
}

#[derive(Debug)]
enum HeldLock {
    /// Closing the connection ends its transaction. In a mutex, so that the owner can be shared between threads.
    File {
        _connection: Mutex<Connection>,
    },
    Memory {
        is_owned: Arc<AtomicBool>,
    },
}

impl Sqlite {
    /// Makes the caller the only owner of the queue of this database, until the returned value is dropped or the process dies.
    /// Returns `None` if the queue has an owner, in this process or another.
    ///
    /// Ownership keeps nothing else out: any process may still store, list and cancel runs. Take it before you execute runs,
    /// and before [`release_runs`](superstep_core::registry::Registry::release_runs).
    ///
    /// Blocks for up to a tenth of a second. Creates an empty file next to the database, with `-queue` after its name, and
    /// never deletes it: another process may be about to lock it.
    pub fn try_own_queue(&self) -> CheckpointResult<Option<QueueOwner>> {
        let held = match &self.path {
            Some(path) => lock_file(path)?,
            None => self.lock_memory(),
        };
        Ok(held.map(|held| QueueOwner { held }))
    }

    /// No other process can open a database in memory, so its handles only have to agree with each other.
    fn lock_memory(&self) -> Option<HeldLock> {
        let was_owned = self.is_queue_owned.swap(true, Ordering::AcqRel);
        (!was_owned).then(|| HeldLock::Memory {
            is_owned: self.is_queue_owned.clone(),
        })
    }
}

impl Drop for QueueOwner {
    fn drop(&mut self) {
        if let HeldLock::Memory { is_owned } = &self.held {
            is_owned.store(false, Ordering::Release);
        }
    }
}

fn lock_file(database: &Path) -> Result<Option<HeldLock>, Fault> {
    let path = lock_path(database)?;
    let locked = lock_exclusively(&path).map_err(|fault| fault.at(Some(&path)))?;
    Ok(locked.map(|connection| HeldLock::File {
        _connection: Mutex::new(connection),
    }))
}

/// Returns the path of the file to lock. Resolves links, so that two names of one database have one lock.
fn lock_path(database: &Path) -> Result<PathBuf, Fault> {
    let mut path = database.canonicalize()?.into_os_string();
    path.push("-queue");
    Ok(path.into())
}

/// Returns a connection that holds the lock; `None` if another one does.
fn lock_exclusively(path: &Path) -> Result<Option<Connection>, Fault> {
    // On Unix, closing a file releases every lock that the process has on it. `create_unless_there` closes a file that it has
    // created, so another thread must not lock it before that. SQLite itself takes care of the files that it opens.
    let _opening = lock(&OPENING);
    schema::create_unless_there(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    // The transaction writes nothing; without this mode it would still create a journal, which a dead process leaves behind.
    match connection.execute_batch("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE") {
        Ok(()) => Ok(Some(connection)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

static OPENING: Mutex<()> = Mutex::new(());

/// Two processes that try at the same moment hinder each other before one of them has the lock. Within this time one of them
/// gets it.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
