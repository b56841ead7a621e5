//! Finds overdue interrupts, again and again, without reading each time what it found before.

use std::collections::{HashMap, HashSet};
use std::fmt;

use superstep_core::checkpoint::OverdueCursor;
use superstep_core::error::CheckpointError;
use superstep_core::run::OpenInterrupt;
use superstep_core::{InterruptId, ThreadId, Timestamp};

use super::OverdueThread;
use crate::drive::DriveError;
use crate::runtime::Runtime;

/// Finds the interrupts that are to be answered because their deadline has passed, for a program that looks again and again.
///
/// Interrupts that wait beyond their deadline, and those whose threads cannot resume, stay in the store's list of overdue interrupts.
/// Each scan therefore begins where everything before has been dealt with. Every 30 seconds a scan begins at the front, and finds
/// what failed and what another process left.
///
/// ```
/// use superstep::{DeadlineScan, DriveError};
///
/// async fn answer(scan: &mut DeadlineScan) -> Result<(), DriveError> {
///     for overdue in scan.next(100).await? {
///         let thread = overdue.thread().clone();
///         if overdue.expire().await.is_err() {
///             scan.defer(thread);
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct DeadlineScan {
    runtime: Runtime,
    /// Everything up to here is dealt with until the next scan of the whole list.
    settled: Option<OverdueCursor>,
    /// When the next scan of the whole list is due.
    whole_at: Timestamp,
    deferred: HashSet<ThreadId>,
    /// The unreadable interrupts that are in the log.
    reported: HashSet<(ThreadId, InterruptId)>,
}

impl DeadlineScan {
    /// Creates a scan of all threads of a runtime's store.
    pub fn new(runtime: &Runtime) -> Self {
        Self {
            runtime: runtime.clone(),
            settled: None,
            whole_at: Timestamp(i64::MIN),
            deferred: HashSet::new(),
            reported: HashSet::new(),
        }
    }

    /// Returns at most this many threads with interrupts that are to be answered now, earliest deadline first. Leaves out threads
    /// that this runtime is working on. An interrupt that cannot be read is logged once.
    pub async fn next(&mut self, threads_max: usize) -> Result<Vec<OverdueThread>, DriveError> {
        let found = self.scan(threads_max).await?;
        for row in found.unreadable {
            if self.reported.insert((row.thread.clone(), row.interrupt)) {
                let UnreadableInterrupt {
                    thread,
                    interrupt,
                    error,
                } = row;
                tracing::warn!(%thread, %interrupt, ?error, "an overdue interrupt cannot be read");
            }
        }
        Ok(found.threads)
    }

    /// Leaves a thread out until the next scan of the whole list, because it could not resume.
    pub fn defer(&mut self, thread: ThreadId) {
        self.deferred.insert(thread);
    }

    pub(super) async fn scan(&mut self, threads_max: usize) -> Result<FoundOverdue, DriveError> {
        let now = self.runtime.now();
        self.begin_again_if_due(now);
        let mut found = FoundOverdue::default();
        let mut after = self.settled.clone();
        let mut is_settled = true;
        // The deadline of an unreadable interrupt is unknown, so the next page begins before those that end this one.
        let mut unreadable_at_end = 0_u32;
        loop {
            let limit = PAGE.saturating_add(unreadable_at_end);
            let store = self.runtime.local.store();
            let page = store.overdue(now, after.as_ref(), limit).await?;
            let is_last = page.len() < limit as usize;
            unreadable_at_end = 0;
            for row in page {
                let (thread, interrupt) = (row.thread.clone(), row.id);
                let open = match OpenInterrupt::read(row) {
                    Ok(open) => open,
                    Err(error) => {
                        unreadable_at_end = unreadable_at_end.saturating_add(1);
                        found.unreadable.push(UnreadableInterrupt {
                            thread,
                            interrupt,
                            error: CheckpointError::from(error).into(),
                        });
                        continue;
                    }
                };
                unreadable_at_end = 0;
                let cursor = OverdueCursor {
                    deadline: open.interrupt.deadline.unwrap_or(now),
                    thread,
                    id: interrupt,
                };
                match self.sort(open, now, threads_max, &mut found) {
                    // An interrupt whose commit took long can still appear before those of the last seconds.
                    Sorted::Settled => is_settled &= cursor.deadline.plus_ms(GRACE_MS) <= now,
                    Sorted::Later => is_settled = false,
                    Sorted::Full => return Ok(found),
                }
                if is_settled {
                    self.settled = Some(cursor.clone());
                }
                after = Some(cursor);
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    fn begin_again_if_due(&mut self, now: Timestamp) {
        let next = now.plus_ms(WHOLE_EVERY_MS);
        // The second comparison is for a clock that was set back.
        if now >= self.whole_at || self.whole_at > next {
            self.settled = None;
            self.deferred.clear();
            self.whole_at = next;
        }
    }

    /// Adds an interrupt to its thread, if it is to be answered now.
    fn sort(
        &self,
        open: OpenInterrupt,
        now: Timestamp,
        threads_max: usize,
        found: &mut FoundOverdue,
    ) -> Sorted {
        let thread = &open.row.thread;
        if open.interrupt.answer_at_deadline().is_none() || self.deferred.contains(thread) {
            return Sorted::Settled;
        }
        if let Some(at) = found.index.get(thread) {
            let taken = &mut found.threads[*at];
            if taken.due.len() >= OF_THREAD_MAX {
                return Sorted::Later;
            }
            taken.due.push(open);
            return Sorted::Settled;
        }
        if found.threads.len() >= threads_max {
            return Sorted::Full;
        }
        let id = thread.clone();
        // What another call has taken, it answers; if that fails, the next scan of the whole list finds it.
        if let Some(taken) = OverdueThread::take(&self.runtime, open, now) {
            found.index.insert(id, found.threads.len());
            found.threads.push(taken);
        }
        Sorted::Settled
    }
}

impl fmt::Debug for DeadlineScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineScan")
            .field("settled", &self.settled)
            .field("whole_at", &self.whole_at)
            .field("deferred", &self.deferred.len())
            .finish_non_exhaustive()
    }
}

/// What a scan found.
#[derive(Default)]
pub(super) struct FoundOverdue {
    pub(super) threads: Vec<OverdueThread>,
    /// Where each thread is among them.
    index: HashMap<ThreadId, usize>,
    /// May name an interrupt twice.
    pub(super) unreadable: Vec<UnreadableInterrupt>,
}

/// An interrupt whose stored form is damaged or of a later version.
pub(super) struct UnreadableInterrupt {
    thread: ThreadId,
    interrupt: InterruptId,
    pub(super) error: DriveError,
}

/// What becomes of an overdue interrupt.
enum Sorted {
    /// Nothing more, before the next scan of the whole list.
    Settled,
    /// The next scan has to find it again.
    Later,
    /// There is no room for its thread.
    Full,
}

/// Number of interrupts that are read at once.
const PAGE: u32 = 1_000;
/// Number of interrupts of one thread that are answered before the others of the store are looked for again.
const OF_THREAD_MAX: usize = 1_000;
/// How often a scan begins at the front.
const WHOLE_EVERY_MS: u64 = 30_000;
/// How long after its deadline an interrupt is read by every scan.
const GRACE_MS: u64 = 10_000;
