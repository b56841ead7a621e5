//! A cache of nodes' results that stores ciphertext and returns what was stored.
//!
//! A key names its graph, node and tenant, and ends with what the node's cache function returned, which may be what a user wrote. That
//! end is replaced by a keyed hash of it; the rest stays, because caches clear by it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use superstep_core::Timestamp;
use superstep_core::checkpoint::{BoxFuture, CheckpointResult};
use superstep_core::driver::NodeCache;
use superstep_core::graph::CacheKey;

use crate::cipher::Place;
use crate::encryption::{Encryption, Reader};
use crate::keyring::TenantKeys;

/// A [`NodeCache`] in front of another one, which gets nothing but ciphertext of the results.
#[derive(Clone)]
pub struct EncryptedNodeCache {
    inner: Arc<dyn NodeCache>,
    encryption: Encryption,
}

impl EncryptedNodeCache {
    /// Creates a cache that encrypts what it stores in another one.
    pub fn new(inner: Arc<dyn NodeCache>, encryption: Encryption) -> Self {
        Self { inner, encryption }
    }
}

/// Begins an encrypted result. A plain one is a sealed body, which begins with the number of its format.
const ENCRYPTED_RESULT: &[u8] = b"\0superstep 1\0";

/// Returns the tenant of a key; a key that is of no node belongs to the unnamed one.
fn tenant_of(key: &str) -> &str {
    CacheKey::tenant_of(key).unwrap_or_default()
}

fn hide_key<'a>(keys: &TenantKeys, key: &'a str) -> Cow<'a, str> {
    if CacheKey::tenant_of(key).is_none() {
        return Cow::Borrowed(key);
    }
    let end = key.splitn(5, '/').last().map_or(0, str::len);
    let (scope, own) = key.split_at(key.len() - end);
    Cow::Owned(format!("{scope}{}", keys.hide_name(own)))
}

fn place(tenant: &str, key: &str) -> Place {
    Place::new("cached", tenant).text(key)
}

impl NodeCache for EncryptedNodeCache {
    fn get<'a>(
        &'a self,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, CheckpointResult<Option<Vec<u8>>>> {
        Box::pin(async move {
            let tenant = tenant_of(key);
            let keys = self.encryption.keys_to_write(tenant).await?;
            let Some(stored) = self.inner.get(&hide_key(&keys, key), now).await? else {
                return Ok(None);
            };
            let what = || "a cached result".to_owned();
            let show = |reader: &Reader<'_>| match stored.strip_prefix(ENCRYPTED_RESULT) {
                Some(encrypted) => reader.decrypt(&place(tenant, key), encrypted, what),
                None => reader.check_plain(what).map(|()| stored.clone()),
            };
            Ok(Some(self.encryption.read(tenant, show).await?))
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        bytes: Vec<u8>,
        expires: Option<Timestamp>,
    ) -> BoxFuture<'a, CheckpointResult<()>> {
        Box::pin(async move {
            let tenant = tenant_of(key);
            let keys = self.encryption.keys_to_write(tenant).await?;
            let encrypted = keys.current().encrypt(&place(tenant, key), &bytes);
            let hidden = [ENCRYPTED_RESULT, &encrypted].concat();
            let key = hide_key(&keys, key);
            self.inner.put(&key, hidden, expires).await
        })
    }

    /// Removes by prefixes that end before what a node's cache function returned: what is behind is hashed.
    fn clear<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, CheckpointResult<()>> {
        self.inner.clear(prefix)
    }

    fn clear_tenant<'a>(&'a self, tenant: &'a str) -> BoxFuture<'a, CheckpointResult<u64>> {
        self.inner.clear_tenant(tenant)
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, CheckpointResult<u64>> {
        self.inner.sweep(now, limit)
    }
}

impl fmt::Debug for EncryptedNodeCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedNodeCache")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}
