//! Moving threads from one store to another. `docs/moving.md` explains how to do so safely.

use superstep_core::ThreadId;
use superstep_core::checkpoint::Archive;

use crate::drive::DriveError;
use crate::runtime::Runtime;

impl Runtime {
    /// Exports everything a thread is, as of one moment, to keep it or to move it to another store with [`Runtime::import`].
    ///
    /// The thread stays in this store and may continue to run. Before you move it, stop the workers that run it, for example
    /// with [`Runtime::drain`].
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, RunOptions, Seq};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Refund { order: String, cents: u64, receipt: Option<String> }
    /// # async fn example(laptop: Runtime, server: Runtime, id: superstep::ThreadId) -> Result<(), DriveError> {
    /// let archive = laptop.export(&id).await?;
    /// server.import(&id, &archive).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export(&self, thread: &ThreadId) -> Result<Archive, DriveError> {
        Ok(self.local.store().export(thread).await?)
    }

    /// Creates a thread from an archive. It waits for the same answers, and continues with the next
    /// [`Thread::resume`](crate::Thread::resume), [`Thread::answer`](crate::Thread::answer) or [`Runtime::recover`]; what was
    /// done before the move is not done again.
    ///
    /// The caller names the thread, so an archive from outside cannot choose which thread it becomes; if you trust the archive,
    /// pass `&archive.thread`. An existing thread is never changed: importing the same thread again succeeds, and any other is
    /// refused.
    pub async fn import(&self, thread: &ThreadId, archive: &Archive) -> Result<(), DriveError> {
        Ok(self.local.store().import(thread, archive).await?)
    }
}
