//! Runtimes on the stores of the workloads.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::time::Duration;

use services::database::Database;
use superstep::{Memory, Runtime};
use superstep_postgres::Postgres;
use superstep_sqlite::Sqlite;
use tempfile::TempDir;

use crate::workload::Executor;

/// A runtime, and the place of its store, which is deleted with it.
pub(crate) struct Kept {
    /// Never dropped: freeing every thread of a store in memory is not part of what a unit costs.
    runtime: ManuallyDrop<Runtime>,
    _folder: Option<TempDir>,
    _database: Option<Database>,
}

/// Opens an empty store.
pub(crate) type OpenStore = fn(&Executor) -> anyhow::Result<Kept>;

impl Kept {
    fn new(runtime: Runtime) -> Self {
        Self {
            runtime: ManuallyDrop::new(runtime),
            _folder: None,
            _database: None,
        }
    }
}

impl Deref for Kept {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

pub(crate) fn memory(_: &Executor) -> anyhow::Result<Kept> {
    Ok(Kept::new(Runtime::new(Memory::default())))
}

pub(crate) fn sqlite(_: &Executor) -> anyhow::Result<Kept> {
    let folder = tempfile::tempdir()?;
    let mut options = superstep_sqlite::Options::default();
    // Every transaction is slow under callgrind. Without this, the time that one took would decide on which OS thread the next
    // one runs, and so the count.
    options.caller_write_max = Duration::MAX;
    let sqlite = Sqlite::open_with(folder.path().join("threads.db"), options)?;
    Ok(Kept {
        _folder: Some(folder),
        ..Kept::new(Runtime::new(sqlite))
    })
}

/// Counts the client only: the server is another process.
pub(crate) fn postgres(executor: &Executor) -> anyhow::Result<Kept> {
    let database = Database::create(0)?;
    let postgres = executor.block_on(Postgres::connect(database.url()))?;
    Ok(Kept {
        _database: Some(database),
        ..Kept::new(Runtime::new(postgres))
    })
}
