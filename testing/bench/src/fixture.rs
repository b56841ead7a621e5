//! What every bench is made with: a folder that goes away, a tokio runtime, fresh databases.

use std::cell::Cell;
use std::path::PathBuf;

use superstep::Runtime;
use superstep_sqlite::Sqlite;
use tempfile::TempDir;

#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) quick: bool,
    folder: TempDir,
    tokio: tokio::runtime::Runtime,
    files: Cell<u32>,
}

impl Fixture {
    pub(super) fn new(quick: bool) -> anyhow::Result<Self> {
        Ok(Self {
            quick,
            folder: TempDir::with_prefix("superstep-bench-")?,
            tokio: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?,
            files: Cell::new(0),
        })
    }

    /// A size for a full run, or the one for CI.
    pub(super) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.tokio.block_on(work)
    }

    /// The path of a file that is not there yet.
    pub(super) fn path(&self) -> PathBuf {
        self.files.set(self.files.get() + 1);
        self.folder.path().join(format!("{}.db", self.files.get()))
    }

    pub(super) fn sqlite(&self) -> anyhow::Result<Sqlite> {
        Ok(Sqlite::open(self.path())?)
    }

    /// A runtime over a fresh database.
    pub(super) fn runtime(&self) -> anyhow::Result<Runtime> {
        Ok(Runtime::new(self.sqlite()?))
    }
}
