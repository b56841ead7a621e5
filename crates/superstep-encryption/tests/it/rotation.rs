//! Rotation that is killed at every point: keys stay readable, and the next process finishes what the last one began.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{SystemTime, UNIX_EPOCH};

use superstep_conformance::block_on;
use superstep_conformance::sample::Owner;
use superstep_core::Checkpointer;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{
    Item, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult,
};
use superstep_core::{ThreadId, Timestamp};
use superstep_encryption::{Encryption, LocalKeys, PlainData, check_unencrypted};

use crate::kit::{KEY, Kit, OTHER_KEY};

/// A store whose process is killed at a call: the call does not return, whether it had its effect or not.
struct Killed {
    store: Arc<MemoryStore>,
    /// Calls until the kill.
    left: AtomicUsize,
    /// Whether the last call has its effect.
    has_effect: bool,
}

impl Killed {
    async fn at<T>(&self, call: BoxFuture<'_, StoreResult<T>>) -> StoreResult<T> {
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return call.await;
        }
        if self.has_effect {
            // Its effect is there, and nobody is left to see the result.
            let _ = call.await;
        }
        pending().await
    }
}

impl Store for Killed {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(self.at(self.store.get(namespace, key, now)))
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(self.at(self.store.put(put, now)))
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a serde_json::Value>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.at(self.store.put_if(seen, put, now)))
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.at(self.store.delete(namespace, key)))
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(self.at(self.store.search(search, now)))
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        Box::pin(self.at(self.store.namespaces(query, now)))
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(self.at(self.store.sweep(now, limit)))
    }
}

/// Runs a future until it is done (`true`) or waits for what never comes: the stores are in memory, so nothing else makes it wait.
fn runs_to_its_end<T>(future: impl Future<Output = T>) -> bool {
    block_on(async {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
    })
}

/// Returns the encryption of a process that is killed at a call, with these keys.
fn killed(kit: &Kit, keys: &str, at: usize, has_effect: bool) -> Encryption {
    let store = Killed {
        store: kit.plain_store.clone(),
        left: AtomicUsize::new(at),
        has_effect,
    };
    Encryption::new(LocalKeys::from_text(keys).unwrap(), Arc::new(store))
}

/// Threads of so many tenants, with keys that `KEY` wraps.
fn with_tenants(count: usize) -> (Kit, Vec<ThreadId>) {
    let kit = Kit::new();
    let id = |n| ThreadId::of_tenant(&format!("tenant-{n}"), "t").unwrap();
    let threads: Vec<ThreadId> = (0..count).map(id).collect();
    for id in &threads {
        block_on(Owner::started_at(&kit.db, id)).unwrap();
    }
    (kit, threads)
}

fn assert_readable(kit: &Kit, keys: &str, threads: &[ThreadId], when: &str) {
    let process = kit.with_keys(keys);
    for id in threads {
        let loaded = block_on(process.db.load(id));
        assert!(loaded.is_ok_and(|loaded| loaded.is_some()), "{id}: {when}");
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(since.as_millis().try_into().unwrap())
}

/// Returns a time after that of everything so far: keys have the time of their creation in milliseconds.
fn later() -> Timestamp {
    let begun = now();
    loop {
        let now = now();
        if now > begun {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// New key first, the old one still readable.
fn both() -> String {
    format!("{OTHER_KEY}\n{KEY}")
}

#[test]
fn a_key_encryption_key_is_replaced_wherever_the_process_is_killed() {
    let mut kills = 0;
    for has_effect in [false, true] {
        for at in 0.. {
            let (kit, threads) = with_tenants(24);
            let first = killed(&kit, &both(), at, has_effect);
            if runs_to_its_end(first.rewrap_all(|_| {})) {
                break;
            }
            kills += 1;
            let when = format!("killed at {at}, the effect: {has_effect}");
            assert_readable(&kit, &both(), &threads, &when);
            let next = kit.with_keys(&both()).encryption;
            let done = block_on(next.rewrap_all(|_| {})).unwrap();
            assert!(done.is_complete, "{when}");
            assert_eq!(done.tenants, threads.len());
            assert_readable(&kit, OTHER_KEY, &threads, &when);
        }
    }
    assert!(kills >= 200, "only {kills} kills");
}

/// Each process is killed a call later than the last one.
#[test]
fn a_key_encryption_key_is_replaced_although_process_after_process_is_killed() {
    let (kit, threads) = with_tenants(210);
    let mut kills = 0;
    let is_done = |at: usize| {
        let process = killed(&kit, &both(), at, at.is_multiple_of(2));
        runs_to_its_end(process.rewrap_all(|_| {}))
    };
    while !is_done(kills) {
        assert_readable(
            &kit,
            &both(),
            &threads[kills % 207..][..3],
            "between two kills",
        );
        kills += 1;
    }
    assert!(kills >= 200, "only {kills} kills");
    assert_readable(&kit, OTHER_KEY, &threads, "at the end, without the old key");
}

#[test]
fn a_key_that_another_process_still_wraps_with_is_found() {
    let (kit, threads) = with_tenants(2);
    let new = kit.with_keys(&both());
    let old = kit.with_keys(&format!("{KEY}\n{OTHER_KEY}"));
    block_on(async {
        // It wraps with the old key again what the other one has just wrapped.
        let fight = |tenant: &str| {
            assert!(block_on(old.encryption.rewrap(tenant)).unwrap());
        };
        let done = new.encryption.rewrap_all(fight).await.unwrap();
        assert!(!done.is_complete, "{done:?}");
        let done = new.encryption.rewrap_all(|_| {}).await.unwrap();
        assert!(done.is_complete, "{done:?}");
        let by = new.encryption.wrapped_by("tenant-0").await.unwrap();
        assert_eq!(by, [new.encryption.current_key()]);
    });
    assert_readable(&kit, OTHER_KEY, &threads, "at the end");
}

#[test]
fn data_keys_are_rotated_once_each_wherever_the_process_is_killed() {
    let mut kills = 0;
    for has_effect in [false, true] {
        for at in 0.. {
            let (kit, threads) = with_tenants(34);
            let before = later();
            let first = killed(&kit, KEY, at, has_effect);
            if runs_to_its_end(first.rotate_keys_before(before, |_, _| {})) {
                break;
            }
            kills += 1;
            let when = format!("killed at {at}, the effect: {has_effect}");
            assert_readable(&kit, KEY, &threads, &when);
            let next = kit.with_keys(KEY).encryption;
            block_on(next.rotate_keys_before(before, |_, _| {})).unwrap();
            for id in &threads {
                let keys = block_on(next.data_keys(id.tenant())).unwrap();
                assert_eq!(keys.len(), 2, "{id}: {when}");
            }
            assert_readable(&kit, KEY, &threads, &when);
        }
    }
    assert!(kills >= 200, "only {kills} kills");
}

#[test]
fn a_rotation_that_starts_again_leaves_out_what_is_rotated() {
    let (kit, threads) = with_tenants(5);
    block_on(async {
        let data_keys = async || {
            let mut all = Vec::new();
            for id in &threads {
                all.push(kit.encryption.data_keys(id.tenant()).await.unwrap());
            }
            all
        };
        let old = data_keys().await;
        let before = later();
        let some = &["tenant-1", "tenant-3"];
        for tenant in some {
            let rotated = kit.encryption.rotate_key_before(tenant, before).await;
            assert!(rotated.unwrap().is_some());
        }
        let mut rest = Vec::new();
        let all = kit
            .encryption
            .rotate_keys_before(before, |tenant, _| rest.push(tenant.to_owned()));
        assert_eq!(all.await.unwrap(), 3);
        assert_eq!(rest, ["tenant-0", "tenant-2", "tenant-4"]);
        for (old, new) in old.iter().zip(data_keys().await) {
            assert_eq!((new.len(), new[1]), (2, old[0]));
        }
    });
    assert_readable(&kit, KEY, &threads, "with the older keys");
}

#[test]
fn a_database_is_opened_with_its_keys_and_with_no_others() {
    let (kit, _) = with_tenants(1);
    let check = |keys: &str| {
        let process = kit.with_keys(keys);
        block_on(process.encryption.check_database(&kit.plain, None))
    };
    check(KEY).unwrap();
    check(&both()).unwrap();
    let error = check(OTHER_KEY).unwrap_err();
    assert_eq!(error.code(), "encryption-key-encryption-key");
    let without = block_on(check_unencrypted(&*kit.plain_store)).unwrap_err();
    assert_eq!(without.code(), "encryption-no-key-given");

    let empty = Kit::new();
    block_on(check_unencrypted(&*empty.plain_store)).unwrap();
    block_on(empty.encryption.check_database(&empty.plain, None)).unwrap();

    let plain = Kit::new();
    let id = ThreadId::of_tenant("acme", "t").unwrap();
    block_on(Owner::started_at(&plain.plain, &id)).unwrap();
    block_on(check_unencrypted(&*plain.plain_store)).unwrap();
    let error = block_on(plain.encryption.check_database(&plain.plain, None)).unwrap_err();
    assert_eq!(error.code(), "encryption-plain-database");
    let accepting = plain.again(|with| with.with_plain_data(PlainData::AcceptUntilEncrypted));
    block_on(accepting.encryption.check_database(&plain.plain, None)).unwrap();
}
