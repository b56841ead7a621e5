//! Helpers for reading the threads of any agent.

use anyhow::Context;
use superstep::{AnyThread, HistoryEntry, Seq, State};

/// Returns the latest state of a thread, decoded as `S`. Fails if the thread has no state yet.
pub async fn state_of<S: State>(thread: &dyn AnyThread) -> anyhow::Result<S> {
    let state = thread.state(None).await?;
    let state = state.context("the thread has no state yet")?;
    Ok(state.values.decode()?)
}

/// Calls `each` with every entry of a thread after the sequence number `after`, oldest first. Reads one page at a time.
pub async fn each_entry(
    thread: &dyn AnyThread,
    mut after: Seq,
    mut each: impl FnMut(&HistoryEntry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let page = thread.history(after, ENTRIES_PER_PAGE).await?;
        for past in &page {
            each(past)?;
            after = past.seq;
        }
        if page.len() < ENTRIES_PER_PAGE as usize {
            return Ok(());
        }
    }
}

const ENTRIES_PER_PAGE: u32 = 500;
