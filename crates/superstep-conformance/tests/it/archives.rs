//! The checkpointer over a store that only keeps bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use superstep_conformance::sample::Owner;
use superstep_conformance::{block_on, checkpointer, give_way};
use superstep_core::ThreadId;
use superstep_core::checkpoint::{
    ArchiveCheckpointer, ArchiveStore, ArchiveStoreResult, Checkpointer, Memory, NewThread,
};

/// Archives in memory. Another task gets its turn before each write, so that racing writers do race.
#[derive(Clone, Default)]
struct Archives(Arc<Mutex<HashMap<ThreadId, Vec<u8>>>>);

impl Archives {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Vec<u8>>> {
        self.0.lock().expect("no test panics with the lock")
    }
}

impl ArchiveStore for Archives {
    async fn read(&self, thread: &ThreadId) -> ArchiveStoreResult<Option<Vec<u8>>> {
        Ok(self.lock().get(thread).cloned())
    }

    async fn replace(
        &self,
        thread: &ThreadId,
        expected: Option<&[u8]>,
        archive: &[u8],
    ) -> ArchiveStoreResult<bool> {
        give_way().await;
        let mut archives = self.lock();
        let is_expected = archives.get(thread).map(Vec::as_slice) == expected;
        if is_expected {
            archives.insert(thread.clone(), archive.to_vec());
        }
        Ok(is_expected)
    }

    async fn read_all(&self) -> ArchiveStoreResult<Vec<Vec<u8>>> {
        Ok(self.lock().values().cloned().collect())
    }
}

#[test]
fn archives_keep_every_clause() {
    let report = block_on(checkpointer(async || {
        ArchiveCheckpointer::new(Archives::default())
    }));
    report.assert();
    let memory = block_on(checkpointer(async || Memory::new()));
    assert_eq!(report.passed.len(), memory.passed.len());
}

/// A store that takes every write: the suite shall notice that nothing was compared.
struct Careless(Archives);

impl ArchiveStore for Careless {
    async fn read(&self, thread: &ThreadId) -> ArchiveStoreResult<Option<Vec<u8>>> {
        self.0.read(thread).await
    }

    async fn replace(
        &self,
        thread: &ThreadId,
        _: Option<&[u8]>,
        archive: &[u8],
    ) -> ArchiveStoreResult<bool> {
        give_way().await;
        let mut archives = self.0.lock();
        archives.insert(thread.clone(), archive.to_vec());
        Ok(true)
    }

    async fn read_all(&self) -> ArchiveStoreResult<Vec<Vec<u8>>> {
        self.0.read_all().await
    }
}

#[test]
fn a_store_that_does_not_compare_is_noticed() {
    let report = block_on(checkpointer(async || {
        ArchiveCheckpointer::new(Careless(Archives::default()))
    }));
    assert!(!report.failed.is_empty());
}

#[test]
fn a_forgotten_thread_is_an_empty_archive_which_the_store_may_drop() {
    let archives = Archives::default();
    let store = ArchiveCheckpointer::new(archives.clone());
    let (kept, dropped) = (
        ThreadId::new("kept").unwrap(),
        ThreadId::new("dropped").unwrap(),
    );
    for thread in [&kept, &dropped] {
        block_on(store.save(&Owner::new(thread).start())).unwrap();
        block_on(store.delete(thread)).unwrap();
        assert!(!archives.lock()[thread].is_empty());
        block_on(store.forget(thread)).unwrap();
        assert!(archives.lock()[thread].is_empty());
    }
    archives.lock().remove(&dropped);
    for thread in [&kept, &dropped] {
        assert!(block_on(store.load(thread)).unwrap().is_none());
        assert!(block_on(store.create(thread, &NewThread::default())).unwrap());
    }
}

#[test]
fn the_archive_of_another_thread_is_refused() {
    let archives = Archives::default();
    let store = ArchiveCheckpointer::new(archives.clone());
    let (here, there) = (
        ThreadId::new("here").unwrap(),
        ThreadId::new("there").unwrap(),
    );
    block_on(store.save(&Owner::new(&here).start())).unwrap();
    let bytes = archives.lock()[&here].clone();
    archives.lock().insert(there.clone(), bytes);
    let refused = block_on(store.load(&there)).unwrap_err();
    assert_eq!(refused.code(), "checkpoint-other-thread");
    archives.lock().get_mut(&here).unwrap().pop();
    let refused = block_on(store.load(&here)).unwrap_err();
    assert_eq!(refused.code(), "checkpoint-format");
}
