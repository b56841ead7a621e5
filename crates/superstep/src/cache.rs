//! The node cache in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use superstep_core::__private::lock;
use superstep_core::Timestamp;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult};
use superstep_core::driver::NodeCache;
use superstep_core::graph::CacheKey;

/// Cache of node results that lives as long as the process. Nodes opt in with
/// [`GraphBuilder::cache`](crate::GraphBuilder::cache).
#[derive(Debug, Default)]
pub struct MemoryCache(Mutex<CachedResults>);

/// Result bytes and their expiry time, by key.
type CachedResults = BTreeMap<String, (Vec<u8>, Option<Timestamp>)>;

impl MemoryCache {
    fn lock(&self) -> MutexGuard<'_, CachedResults> {
        // Every change is a single call, so a panic cannot leave the map half changed.
        lock(&self.0)
    }
}

impl NodeCache for MemoryCache {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>> {
        let mut kept = self.lock();
        if kept
            .get(key)
            .is_some_and(|(_, expires)| expires.is_some_and(|expires| expires <= now))
        {
            kept.remove(key);
        }
        let found = kept.get(key).map(|(bytes, _)| bytes.clone());
        Box::pin(async move { Ok(found) })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        self.lock().insert(key.to_owned(), (bytes, expires));
        Box::pin(async { Ok(()) })
    }

    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>> {
        self.lock().retain(|key, _| !key.starts_with(prefix));
        Box::pin(async { Ok(()) })
    }

    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        let mut kept = self.lock();
        let before = kept.len();
        kept.retain(|key, _| CacheKey::tenant_of(key) != Some(tenant));
        let cleared = (before - kept.len()) as u64;
        Box::pin(async move { Ok(cleared) })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        let mut swept = 0;
        self.lock().retain(|_, (_, expires)| {
            let goes = swept < limit && expires.is_some_and(|expires| expires <= now);
            swept += u32::from(goes);
            !goes
        });
        Box::pin(async move { Ok(u64::from(swept)) })
    }
}
