//! A database with a defect: memory that says of itself what a SQL database would.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use superstep_conformance::forward;
use superstep_conformance::sql::{Costs, Database};
use superstep_core::ThreadId;
use superstep_core::checkpoint::{
    Answer, BoxFuture, CheckpointResult, Checkpointer, Commit, Memory, Saved, ThreadQuery,
    ThreadRow,
};
use superstep_core::error::CheckpointError;

/// What is wrong with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseDefect {
    None,
    NoThreadToldAsNotOpen,
    RowsOutliveTheirThread,
    /// What a term finds is not looked at again.
    TermsTrusted,
    EveryFieldATerm,
    PagesWithoutEnd,
    Bloated,
}

/// A database with a defect.
pub(crate) struct BrokenDatabase {
    store: Tables,
}

/// The store in it.
struct Tables {
    inner: Memory,
    defect: DatabaseDefect,
    bytes: AtomicU64,
    terms_collide: AtomicBool,
}

impl BrokenDatabase {
    pub(crate) fn new(defect: DatabaseDefect) -> Self {
        Self {
            store: Tables {
                inner: Memory::new(),
                defect,
                bytes: AtomicU64::new(0),
                terms_collide: AtomicBool::new(false),
            },
        }
    }
}

impl Tables {
    fn is(&self, defect: DatabaseDefect) -> bool {
        self.defect == defect
    }
}

impl Checkpointer for Tables {
    fn save<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, CheckpointResult<Saved>> {
        let bytes = commit.entry.as_ref().map_or(0, Vec::len) as u64;
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
        self.inner.save(commit)
    }

    fn answer<'a>(
        &'a self,
        thread: &'a ThreadId,
        answers: &'a [Answer],
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let is_there = self.inner.load(thread).await?.is_some();
            if is_there || self.is(DatabaseDefect::NoThreadToldAsNotOpen) {
                return self.inner.answer(thread, answers).await;
            }
            let thread = thread.clone();
            Err(CheckpointError::NoThread { thread })
        })
    }

    fn threads<'a>(
        &'a self,
        query: &'a ThreadQuery,
    ) -> BoxFuture<'a, CheckpointResult<Vec<ThreadRow>>> {
        Box::pin(async move {
            let mut query = query.clone();
            if !self.is(DatabaseDefect::PagesWithoutEnd) {
                query.page.limit = query.page.limit.min(1_000);
            }
            let collide = self.terms_collide.load(Ordering::SeqCst);
            if self.is(DatabaseDefect::TermsTrusted) && collide {
                query.values.clear();
            }
            self.inner.threads(&query).await
        })
    }

    forward! {
        record load load_at entries glance request_cancel unfinished interrupts overdue
        copy delete prune expire export import
    }
}

impl Database for BrokenDatabase {
    fn store(&self) -> &dyn Checkpointer {
        &self.store
    }

    fn execute<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        // The only statement there is makes every term one of every thread.
        self.store.terms_collide.store(true, Ordering::SeqCst);
        Box::pin(async {})
    }

    fn rows<'a>(&'a self, _: &'a str) -> BoxFuture<'a, u64> {
        let rows = match self.store.defect {
            DatabaseDefect::RowsOutliveTheirThread => 1,
            DatabaseDefect::EveryFieldATerm => 200,
            _ => 0,
        };
        Box::pin(async move { rows })
    }

    fn bytes(&self) -> BoxFuture<'_, u64> {
        let bytes = self.store.bytes.load(Ordering::SeqCst);
        let each = match self.store.is(DatabaseDefect::Bloated) {
            true => 10,
            false => 1,
        };
        Box::pin(async move { bytes * each })
    }

    fn listing_table(&self) -> &'static str {
        "listing"
    }

    fn costs(&self) -> Costs {
        Costs {
            parked_thread: 1_024,
            entries_of_108_000_bytes: 110_000,
        }
    }
}
