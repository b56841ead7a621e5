//! Reads and follows threads by their graph's definition, for callers that do not have its state type.

use std::sync::Arc;

use superstep_core::checkpoint::format::{Change, Entry};
use superstep_core::checkpoint::{History, StoredBody};
use superstep_core::error::CheckpointError;
use superstep_core::graph::Definition;
use superstep_core::run::{self, SubgraphState, ThreadState};
use superstep_core::{FramePath, Seq, ThreadId};

use crate::drive::DriveError;
use crate::event_reader::{LogPlace, WatchedThread};
use crate::events::{EventId, Events};
use crate::runtime::Runtime;

impl Runtime {
    /// Streams what happens on a thread of this graph after an item of its log, as
    /// [`Thread::events_after`](crate::Thread::events_after) does.
    pub fn events_of(&self, graph: &Arc<Definition>, thread: &ThreadId, after: EventId) -> Events {
        self.events_at(graph, thread, LogPlace::after_event(after))
    }

    pub(crate) fn events_at(
        &self,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        place: LogPlace,
    ) -> Events {
        let watched = WatchedThread {
            driver: self.local.clone(),
            graph: graph.clone(),
            thread: thread.clone(),
        };
        Events::new(watched, place)
    }

    /// Returns the state of a thread of this graph, now or at an entry; `None` if there is no such thread, or nothing has
    /// happened on it.
    pub async fn state_of(
        &self,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        at: Option<Seq>,
    ) -> Result<Option<ThreadState>, DriveError> {
        let Some(history) = self.history_of(thread, at).await? else {
            return Ok(None);
        };
        let state = run::read_state(graph, thread, &history)?;
        let Some(state) = state else {
            return Ok(None);
        };
        if !history.entries.is_empty() {
            return Ok(Some(state));
        }
        // A snapshot does not have the entry that it was taken with.
        let before = Seq(state.seq.0.saturating_sub(1));
        let entries = self.local.store().entries(thread, before, 1).await?;
        let stored = entries.first().filter(|stored| stored.seq == state.seq);
        let stored = stored.ok_or_else(|| CheckpointError::NoCheckpoint {
            thread: thread.clone(),
            seq: state.seq,
        })?;
        let entry = Entry::read(stored, thread).map_err(CheckpointError::from)?;
        Ok(Some(state.with_entry(&entry)))
    }

    /// Returns the states of the subgraphs that a thread of this graph is inside of, now or at an entry, parents first.
    pub async fn subgraphs_of(
        &self,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        at: Option<Seq>,
    ) -> Result<Vec<SubgraphState>, DriveError> {
        match self.history_of(thread, at).await? {
            Some(history) => Ok(run::read_subgraphs(graph, thread, &history)?),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the states at the newest `limit` entries before a sequence number, newest first; `None` for the newest of all.
    /// Entries that were pruned count as if they were there.
    #[doc(alias = "get_state_history")]
    pub async fn states_of(
        &self,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<Vec<ThreadState>, DriveError> {
        let Some(loaded) = self.local.store().load(thread).await? else {
            return Ok(Vec::new());
        };
        // Numbers have no gaps, so the window follows from the newest.
        let end = loaded.head.seq.next();
        let end = before.map_or(end, |before| before.min(end));
        let after = Seq(end.0.saturating_sub(1).saturating_sub(u64::from(limit)));
        let mut entries = self.local.store().entries(thread, after, limit).await?;
        // There are fewer before `end` than `limit` near the beginning, and others may have been written since the load.
        entries.retain(|stored| stored.seq < end);
        let mut states = Vec::with_capacity(entries.len());
        for part in parts_between_forks(&entries, thread)? {
            let Some(first) = part.first() else { continue };
            let history = self.local.store().load_at(thread, first.seq).await?;
            states.extend(run::read_states(graph, thread, &history, part)?);
        }
        states.reverse();
        Ok(states)
    }

    /// Returns at least the newest `limit` states of a subgraph before a sequence number, newest first, if there are so many;
    /// `None` for the newest of all. Values, step and next tasks are those of the subgraph, which may have ended. An entry has
    /// several if it entered the subgraph together with its first superstep.
    pub async fn subgraph_states_of(
        &self,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        frame: &FramePath,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<ThreadState>, DriveError> {
        let Some(loaded) = self.local.store().load(thread).await? else {
            return Ok(Vec::new());
        };
        let end = loaded.head.seq.next();
        let mut end = before.map_or(end, |before| before.min(end));
        let mut states = Vec::new();
        while end > Seq(1) && states.len() < limit {
            let after = Seq(end.0.saturating_sub(1 + u64::from(ENTRIES_AT_ONCE)));
            let store = self.local.store();
            let mut entries = store.entries(thread, after, ENTRIES_AT_ONCE).await?;
            entries.retain(|stored| stored.seq < end);
            let Some(first) = entries.first() else { break };
            end = first.seq;
            let mut found = Vec::new();
            for part in parts_between_forks(&entries, thread)? {
                found.extend(self.subgraph_part(graph, thread, frame, part).await?);
            }
            states.extend(found.into_iter().rev());
        }
        Ok(states)
    }

    /// Returns the states of a subgraph at entries that follow one another; only the first may be a fork.
    async fn subgraph_part(
        &self,
        graph: &Arc<Definition>,
        thread: &ThreadId,
        frame: &FramePath,
        part: &[StoredBody],
    ) -> Result<Vec<ThreadState>, DriveError> {
        let Some((first, rest)) = part.split_first() else {
            return Ok(Vec::new());
        };
        let store = self.local.store();
        let before = match is_fork(first, thread)? {
            // It continues from its own snapshot.
            true => None,
            false => match store.load_at(thread, Seq(first.seq.0 - 1)).await {
                Ok(history) => Some(history),
                // What came before was pruned.
                Err(CheckpointError::NoCheckpoint { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let (history, entries) = match before {
            Some(history) => (history, part),
            None => (store.load_at(thread, first.seq).await?, rest),
        };
        Ok(run::read_subgraph_states(
            graph, thread, frame, &history, entries,
        )?)
    }

    /// Returns the history of a thread up to an entry; `None` without an entry if there is no such thread.
    async fn history_of(
        &self,
        thread: &ThreadId,
        at: Option<Seq>,
    ) -> Result<Option<History>, DriveError> {
        let store = self.local.store();
        Ok(match at {
            Some(seq) => Some(store.load_at(thread, seq).await?),
            None => store.load(thread).await?.map(|loaded| loaded.history),
        })
    }
}

/// Splits entries before each fork: a fork continues from its own snapshot.
fn parts_between_forks<'a>(
    entries: &'a [StoredBody],
    thread: &ThreadId,
) -> Result<Vec<&'a [StoredBody]>, CheckpointError> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (index, stored) in entries.iter().enumerate() {
        if is_fork(stored, thread)? {
            parts.push(&entries[from..index]);
            from = index;
        }
    }
    parts.push(&entries[from..]);
    Ok(parts)
}

fn is_fork(stored: &StoredBody, thread: &ThreadId) -> Result<bool, CheckpointError> {
    let entry = Entry::read(stored, thread)?;
    let is_fork = |change: &Change| matches!(change, Change::Forked(_));
    Ok(entry.changes.iter().any(is_fork))
}

/// Number of entries that are read at once in search of those that changed a subgraph.
const ENTRIES_AT_ONCE: u32 = 256;
