//! Reads the whole log of a thread: its entries, its interrupts, its trace. None of it needs the thread's graph.

use superstep_core::checkpoint::format::Entry;
use superstep_core::checkpoint::{InterruptQuery, InterruptRow, Page};
use superstep_core::error::CheckpointError;
use superstep_core::trace::Trace;
use superstep_core::{Seq, ThreadId};

use crate::drive::DriveError;
use crate::runtime::Runtime;
use crate::thread::HistoryEntry;

impl Runtime {
    /// Returns at most `limit` entries of a thread after a sequence number, oldest first.
    pub async fn entries_of(
        &self,
        thread: &ThreadId,
        after: Seq,
        limit: u32,
    ) -> Result<Vec<HistoryEntry>, DriveError> {
        let stored = self.local.store().entries(thread, after, limit).await?;
        let mut entries = Vec::with_capacity(stored.len());
        for body in stored {
            let entry = Entry::read(&body, thread).map_err(CheckpointError::from)?;
            entries.push(HistoryEntry {
                seq: body.seq,
                entry,
            });
        }
        Ok(entries)
    }

    /// Returns all entries of a thread, oldest first. Those that were pruned are missing.
    pub async fn log_of(&self, thread: &ThreadId) -> Result<Vec<HistoryEntry>, DriveError> {
        let mut entries: Vec<HistoryEntry> = Vec::new();
        loop {
            let after = entries.last().map_or(Seq(0), |past| past.seq);
            let more = self.entries_of(thread, after, LOG_PAGE).await?;
            let is_all = more.len() < LOG_PAGE as usize;
            entries.extend(more);
            if is_all {
                return Ok(entries);
            }
        }
    }

    /// Returns everything that happened on a thread, as a tree of spans with their times.
    pub async fn trace_of(&self, thread: &ThreadId) -> Result<Trace, DriveError> {
        let entries = self.log_of(thread).await?;
        let entries: Vec<_> = entries
            .into_iter()
            .map(|past| (past.seq, past.entry))
            .collect();
        let interrupts = self.all_interrupts_of(thread).await?;
        Ok(Trace::read(thread, &entries, &interrupts))
    }

    /// Returns all interrupts of a thread, answered ones included, as stored.
    pub async fn all_interrupts_of(
        &self,
        thread: &ThreadId,
    ) -> Result<Vec<InterruptRow>, DriveError> {
        let mut found = Vec::new();
        loop {
            let query = InterruptQuery {
                tenant: thread.tenant().to_owned(),
                thread: Some(thread.clone()),
                page: Page {
                    limit: LOG_PAGE,
                    offset: found.len() as u32,
                },
                ..InterruptQuery::default()
            };
            let more = self.local.store().interrupts(&query).await?;
            let is_all = more.len() < LOG_PAGE as usize;
            found.extend(more);
            if is_all {
                return Ok(found);
            }
        }
    }
}

/// Number of rows that are read at once.
const LOG_PAGE: u32 = 1_000;
