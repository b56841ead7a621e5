//! The checkpoints of a thread, for time travel: what the state was after each entry, and what would run next.

use superstep_core::checkpoint::format::{Change, Entry, EntryKind, Stop};
use superstep_core::error::CheckpointError;
use superstep_core::run::{LogFollower, StreamEvent, StreamEventBody};
use superstep_core::{NodeName, Seq, State, Value};

use crate::drive::DriveError;
use crate::event_reader::follower_at;
use crate::thread::Thread;

/// A thread as of one entry of its log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Checkpoint<S> {
    /// Sequence number of the entry: where the thread can be read, replayed and forked.
    pub seq: Seq,
    /// The entry that it follows.
    pub parent: Seq,
    /// What wrote the entry.
    pub kind: EntryKind,
    /// State of the root graph.
    pub state: S,
    /// Nodes of the root graph that run next.
    pub next: Vec<NodeName>,
    /// Why a run stopped here; `None` if none did.
    pub stop: Option<Stop>,
}

impl<S: State> Thread<S> {
    /// Returns the checkpoints at the next `limit` entries after a sequence number, oldest first, each with its state.
    ///
    /// ```
    /// # use superstep::prelude::*;
    /// # use superstep::{DriveError, Seq, Thread};
    /// # #[derive(Clone, Debug, Default, State)]
    /// # struct Draft { text: String }
    /// # async fn example(thread: Thread<Draft>) -> Result<(), DriveError> {
    /// let checkpoints = thread.checkpoints(Seq(0), 1_000).await?;
    /// let before_review = checkpoints.iter().find(|checkpoint| checkpoint.next == ["review"]);
    /// if let Some(checkpoint) = before_review {
    ///     thread.fork(checkpoint.seq).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "get_state_history")]
    pub async fn checkpoints(
        &self,
        after: Seq,
        limit: u32,
    ) -> Result<Vec<Checkpoint<S>>, DriveError> {
        let entries = self.store().entries(self.id(), after, limit).await?;
        let mut follower = self.follower_at(after).await?;
        let mut checkpoints = Vec::with_capacity(entries.len());
        for stored in entries {
            let entry = Entry::read(&stored, self.id()).map_err(CheckpointError::from)?;
            let is_fork = (entry.changes.iter()).any(|change| matches!(change, Change::Forked(_)));
            let found = match is_fork {
                // A fork names the entry from which the thread continues, not the state there.
                true => {
                    follower = self.follower_at(stored.seq).await?;
                    self.root_at(stored.seq).await?
                }
                false => root_of(follower.see(stored.seq, &entry)?),
            };
            if let Some((values, next)) = found {
                checkpoints.push(Checkpoint {
                    seq: stored.seq,
                    parent: entry.parent,
                    kind: entry.kind,
                    state: values.decode()?,
                    next,
                    stop: entry.stop,
                });
            }
        }
        Ok(checkpoints)
    }

    async fn root_at(&self, seq: Seq) -> Result<Option<(Value, Vec<NodeName>)>, DriveError> {
        let root = self.state_at(seq).await?.map(|state| {
            let tasks = state.next.into_iter().filter(|task| task.frame.is_root());
            (state.values, tasks.map(|task| task.node).collect())
        });
        Ok(root)
    }

    async fn follower_at(&self, seq: Seq) -> Result<LogFollower, DriveError> {
        follower_at(self.store(), self.definition(), self.id(), seq).await
    }
}

/// Returns the state of the root graph and the nodes that run next in it, of an entry's events.
fn root_of(events: Vec<StreamEvent>) -> Option<(Value, Vec<NodeName>)> {
    let bodies = events.into_iter().map(|event| event.what);
    let checkpoints = bodies.filter_map(|body| match body {
        StreamEventBody::Checkpoint { values, next, .. } => Some((values, next)),
        _ => None,
    });
    checkpoints.last()
}
