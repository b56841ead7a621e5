//! The newest part of a thread's trace. A log has no limit, and a reply has to have one.

use superstep::checkpoint::format::Entry;
use superstep::checkpoint::{CheckpointResult, Checkpointer, InterruptQuery, InterruptRow, Page};
use superstep::trace::Trace;
use superstep::{Seq, ThreadId};

/// The trace of the newest entries of a log.
pub(crate) struct NewestTrace {
    /// Without runs that began before these entries.
    pub(crate) trace: Trace,
    /// Whether these are all entries that the log has.
    pub(crate) is_complete: bool,
}

/// How much of a log is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceLimits {
    entries: usize,
    /// Of the entries as they are stored.
    bytes: usize,
    interrupts: usize,
}

impl TraceLimits {
    /// What a reply may take.
    pub(crate) const OF_REPLY: Self = Self {
        entries: 10_000,
        bytes: 64 * 1024 * 1024,
        interrupts: 10_000,
    };
}

/// Reads the newest entries of a thread, back from the end of its log until a limit is reached.
pub(crate) async fn newest_trace(
    store: &dyn Checkpointer,
    thread: &ThreadId,
    limits: TraceLimits,
) -> CheckpointResult<NewestTrace> {
    let loaded = store.load(thread).await?;
    let mut end = loaded.map_or(Seq(0), |loaded| loaded.head.seq);
    let (mut entries, mut bytes, mut is_complete) = (Vec::new(), 0, true);
    'log: while end.0 > 0 {
        let after = Seq(end.0.saturating_sub(u64::from(ENTRIES_AT_ONCE)));
        let mut page = store.entries(thread, after, ENTRIES_AT_ONCE).await?;
        page.retain(|stored| stored.seq <= end);
        if page.is_empty() {
            // Those before were pruned.
            break;
        }
        for stored in page.iter().rev() {
            bytes += stored.body.len();
            if entries.len() == limits.entries || bytes > limits.bytes {
                is_complete = false;
                break 'log;
            }
            entries.push((stored.seq, Entry::read(stored, thread)?));
        }
        end = after;
    }
    entries.reverse();
    let interrupts = interrupts(store, thread, limits.interrupts).await?;
    Ok(NewestTrace {
        trace: Trace::read(thread, &entries, &interrupts),
        is_complete,
    })
}

/// Reads the interrupts of a thread, oldest first. The trace knows only the times of answers from them: without one, a wait ends when
/// its run continues, which is a moment later.
async fn interrupts(
    store: &dyn Checkpointer,
    thread: &ThreadId,
    most: usize,
) -> CheckpointResult<Vec<InterruptRow>> {
    let mut found = Vec::new();
    while found.len() < most {
        let query = InterruptQuery {
            tenant: thread.tenant().to_owned(),
            thread: Some(thread.clone()),
            page: Page {
                limit: INTERRUPTS_AT_ONCE,
                offset: u32::try_from(found.len()).unwrap_or(u32::MAX),
            },
            ..InterruptQuery::default()
        };
        let more = store.interrupts(&query).await?;
        let is_all = more.len() < INTERRUPTS_AT_ONCE as usize;
        found.extend(more);
        if is_all {
            break;
        }
    }
    Ok(found)
}

/// Few, because entries may be large.
const ENTRIES_AT_ONCE: u32 = 100;
const INTERRUPTS_AT_ONCE: u32 = 1_000;

#[cfg(test)]
mod tests {
    use superstep::prelude::*;

    use super::*;

    #[derive(Clone, Debug, Default, State)]
    struct Note {
        #[state(append)]
        lines: Vec<String>,
    }

    async fn write(_: View<Note>, _: NodeCx) -> Result<NoteUpdate, NodeError> {
        Ok(NoteUpdate::default().lines("x".repeat(1_000)))
    }

    #[tokio::test]
    async fn the_newest_runs_of_a_long_log_are_read() {
        let graph = Graph::builder("note")
            .node("write", write)
            .edge(START, "write")
            .edge("write", END)
            .build()
            .unwrap();
        let runtime = Runtime::new(Memory::default());
        let thread = runtime.thread(&graph, "t").unwrap();
        for _ in 0..150 {
            thread.start(NoteUpdate::default()).await.unwrap();
        }
        let id: ThreadId = "t".parse().unwrap();
        let entries = runtime.log_of(&id).await.unwrap().len();
        assert!(entries > 2 * ENTRIES_AT_ONCE as usize, "{entries}");
        let read = async |entries, bytes| {
            let limits = TraceLimits {
                entries,
                bytes,
                interrupts: 10,
            };
            let store = runtime.checkpointer();
            let newest = newest_trace(&**store, &id, limits).await.unwrap();
            (newest.trace.runs.len(), newest.is_complete)
        };
        assert_eq!(read(entries, usize::MAX).await, (150, true));
        let of_run = entries / 150;
        assert_eq!(read(120 * of_run, usize::MAX).await, (120, false));
        assert_eq!(read(3 * of_run - 1, usize::MAX).await, (2, false));
        assert_eq!(read(0, usize::MAX).await, (0, false));
        let stored = runtime.checkpointer().entries(&id, Seq(0), 10_000);
        let bytes: usize = stored
            .await
            .unwrap()
            .iter()
            .map(|stored| stored.body.len())
            .sum();
        let (runs, is_complete) = read(entries, bytes / 2).await;
        assert!((1..150).contains(&runs) && !is_complete, "{runs}");
    }
}
