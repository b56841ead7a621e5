//! A database with a defect: memory that says of itself what a SQL database would.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value as Json;
use superstep_conformance::forward;
use superstep_conformance::sql::{Costs, Database};
use superstep_core::checkpoint::{
    Answer, BoxFuture, CheckpointResult, Checkpointer, Commit, Memory, Saved, ThreadQuery,
    ThreadRow,
};
use superstep_core::error::CheckpointError;
use superstep_core::store::{
    Item, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store, StoreError, StoreResult,
};
use superstep_core::{ThreadId, Timestamp};

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
    /// A damaged item is loaded as it is.
    ItemsUnchecked,
    /// A damaged item is left out, as if nobody had stored it.
    DamagedItemsLeftOut,
}

/// A database with a defect.
pub(crate) struct BrokenDatabase {
    store: Tables,
    items: Items,
}

/// The long-term store in it.
struct Items {
    inner: MemoryStore,
    defect: DatabaseDefect,
    damaged: Mutex<Option<String>>,
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
            items: Items {
                inner: MemoryStore::new(),
                defect,
                damaged: Mutex::default(),
            },
        }
    }
}

impl Items {
    /// What becomes of an item that is read: given, left out or refused.
    fn read(&self, item: Item) -> StoreResult<Option<Item>> {
        let damaged = self.damaged.lock().expect("no clause panics");
        if damaged.as_ref() != Some(&item.key) {
            return Ok(Some(item));
        }
        match self.defect {
            DatabaseDefect::ItemsUnchecked => Ok(Some(item)),
            DatabaseDefect::DamagedItemsLeftOut => Ok(None),
            _ => Err(StoreError::Damaged {
                namespace: item.namespace.segments().to_vec(),
                key: item.key,
            }),
        }
    }
}

impl Store for Items {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(async move {
            let found = self.inner.get(namespace, key, now).await?;
            found.map_or(Ok(None), |item| self.read(item))
        })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        self.damaged
            .lock()
            .expect("no clause panics")
            .take_if(|damaged| *damaged == put.key);
        self.inner.put(put, now)
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let found = self.get(&put.namespace, &put.key, now).await?;
            match found.map(|item| item.value).as_ref() == seen {
                true => self.inner.put_if(seen, put, now).await,
                false => Ok(false),
            }
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        self.inner.delete(namespace, key)
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(async move {
            let found = self.inner.search(search, now).await?;
            let read = found.into_iter().map(|item| self.read(item));
            Ok(read
                .collect::<StoreResult<Vec<_>>>()?
                .into_iter()
                .flatten()
                .collect())
        })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        self.inner.namespaces(query, now)
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        self.inner.sweep(now, limit)
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
                query.page.limit = query.page.limit.min(1_001);
            }
            let collide = self.terms_collide.load(Ordering::SeqCst);
            if self.is(DatabaseDefect::TermsTrusted) && collide {
                query.values.clear();
            }
            self.inner.threads(&query).await
        })
    }

    forward! {
        create annotate record load load_at entries glance request_cancel unfinished renew count_threads sizes interrupts
        overdue copy delete forget prune expire expired export import
    }
}

impl Database for BrokenDatabase {
    fn store(&self) -> &dyn Checkpointer {
        &self.store
    }

    fn items(&self) -> &dyn Store {
        &self.items
    }

    fn flip_byte_of_item<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()> {
        *self.items.damaged.lock().expect("no clause panics") = Some(key.to_owned());
        Box::pin(async {})
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
