//! The numbers of threads that this process writes, so that a commit need not look them up by name.
//!
//! A number may be wrong: the transaction that created the thread was rolled back, or another process forgot the thread and its
//! number went to another one. So a statement that uses a number compares the name too, inside the write. If it finds
//! no row, its caller looks the thread up. A tenant keeps its number, because tenants are never deleted.

use std::collections::HashMap;
use std::sync::Mutex;

use superstep_core::__private::lock;
use superstep_core::ThreadId;

use crate::read::StoredThread;

/// Number of a thread, and of its tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadNumber {
    pub(crate) id: i64,
    pub(crate) tenant: i64,
}

/// Cache of the numbers of threads.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    known: Mutex<HashMap<ThreadId, ThreadNumber>>,
}

impl Numbers {
    pub(crate) fn get(&self, thread: &ThreadId) -> Option<ThreadNumber> {
        lock(&self.known).get(thread).copied()
    }

    /// Remembers the number of a thread whose row was just read or created.
    pub(crate) fn learn(&self, thread: &ThreadId, stored: &StoredThread) -> ThreadNumber {
        let number = ThreadNumber {
            id: stored.id,
            tenant: stored.tenant,
        };
        let mut known = lock(&self.known);
        if known.get(thread) != Some(&number) {
            if known.len() >= KNOWN_MAX {
                // Rare, and the next commit of each thread looks it up again.
                known.clear();
            }
            known.insert(thread.clone(), number);
        }
        number
    }
}

/// Some 2 MB with names of usual length.
const KNOWN_MAX: usize = 10_000;
