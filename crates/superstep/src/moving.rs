//! Threads that move from one store to another. `docs/moving.md` says how that is done safely.

use superstep_core::ThreadId;
use superstep_core::checkpoint::Archive;

use crate::drive::DriveError;
use crate::runtime::Runtime;

impl Runtime {
    /// Everything a thread is, as of one moment, to be kept or to be moved to another store with [`Runtime::import`].
    ///
    /// The thread stays where it is and may go on there. Before you move it, stop the workers that run it, for instance with
    /// [`Runtime::drain`].
    pub async fn export(&self, thread: &ThreadId) -> Result<Archive, DriveError> {
        Ok(self.local.store().export(thread).await?)
    }

    /// Makes a thread out of an archive. It is called as before, waits for the same answers, and continues with the next
    /// [`Thread::resume`](crate::Thread::resume), [`Thread::answer`](crate::Thread::answer) or [`Runtime::recover`];
    /// what was done before the move is not done again.
    ///
    /// The thread is named so that an archive from outside cannot choose whose it becomes; for one that is trusted, give
    /// `&archive.thread`. A thread of that name that is there is not changed: if it is the very same, that is fine, and any
    /// other is refused.
    pub async fn import(&self, thread: &ThreadId, archive: &Archive) -> Result<(), DriveError> {
        Ok(self.local.store().import(thread, archive).await?)
    }
}
