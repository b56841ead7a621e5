//! The reference store: the rules of [`Store`] over a map in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value as Json;

use crate::checkpoint::BoxFuture;
use crate::ids::Timestamp;
use crate::lock::lock;
use crate::store::{Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult, Ttl};

/// Stores facts in memory. A clone is another handle to the same facts.
#[derive(Clone, Default)]
pub struct MemoryStore {
    items: Arc<Mutex<Items>>,
}

type Items = BTreeMap<(Namespace, String), Stored>;

#[derive(Clone)]
struct Stored {
    item: Item,
    ttl: Option<Ttl>,
}

impl Stored {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.item.expires.is_some_and(|expires| expires <= now)
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the items. Every change is a single insert or removal, so a poisoned lock still guards sound data.
    fn lock(&self) -> MutexGuard<'_, Items> {
        lock(&self.items)
    }
}

fn insert(items: &mut Items, put: &PutItem, now: Timestamp) {
    let address = (put.namespace.clone(), put.key.clone());
    let former = items
        .get(&address)
        .filter(|stored| !stored.has_expired(now));
    let item = Item {
        namespace: put.namespace.clone(),
        key: put.key.clone(),
        value: put.value.clone(),
        created: former.map_or(now, |stored| stored.item.created),
        updated: now,
        expires: put.ttl.map(|ttl| now.plus_ms(ttl.ms)),
    };
    items.insert(address, Stored { item, ttl: put.ttl });
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("items", &self.lock().len())
            .finish()
    }
}

impl Store for MemoryStore {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(async move {
            let mut items = self.lock();
            let found = items.get_mut(&(namespace.clone(), key.to_owned()));
            let Some(stored) = found.filter(|stored| !stored.has_expired(now)) else {
                return Ok(None);
            };
            if let Some(ttl) = stored.ttl.filter(|ttl| ttl.refresh_on_read) {
                // A clock that was set back must not shorten a lifetime.
                stored.item.expires = stored.item.expires.max(Some(now.plus_ms(ttl.ms)));
            }
            Ok(Some(stored.item.clone()))
        })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            put.check()?;
            insert(&mut self.lock(), put, now);
            Ok(())
        })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            put.check()?;
            let mut items = self.lock();
            let found = items.get(&(put.namespace.clone(), put.key.clone()));
            let found = found.filter(|stored| !stored.has_expired(now));
            if found.map(|stored| &stored.item.value) != seen {
                return Ok(false);
            }
            insert(&mut items, put, now);
            Ok(true)
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            Ok(self
                .lock()
                .remove(&(namespace.clone(), key.to_owned()))
                .is_some())
        })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(async move {
            let items = self.lock();
            let mut found: Vec<&Item> = items
                .values()
                .filter(|stored| !stored.has_expired(now))
                .map(|stored| &stored.item)
                .filter(|item| item.namespace.tenant() == search.tenant)
                .filter(|item| item.namespace.starts_with(&search.prefix))
                .filter(|item| {
                    search
                        .filters
                        .iter()
                        .all(|filter| filter.matches(&item.value))
                })
                .collect();
            // The sort is stable, so items of the same age stay in the order of their addresses.
            found.sort_by_key(|item| Reverse(item.updated));
            let page = found.into_iter().skip(search.page.offset as usize);
            Ok(page.take(search.page.limit as usize).cloned().collect())
        })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        Box::pin(async move {
            let items = self.lock();
            let found: BTreeSet<Namespace> = items
                .iter()
                .filter(|((namespace, _), stored)| {
                    !stored.has_expired(now) && query.matches(namespace)
                })
                .map(|((namespace, _), _)| query.cut(namespace))
                .collect();
            let page = found.into_iter().skip(query.page.offset as usize);
            Ok(page.take(query.page.limit as usize).collect())
        })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(async move {
            let mut items = self.lock();
            let expired = items.iter().filter(|(_, stored)| stored.has_expired(now));
            let addresses: Vec<_> = expired
                .map(|(address, _)| address.clone())
                .take(limit as usize)
                .collect();
            for address in &addresses {
                items.remove(address);
            }
            Ok(addresses.len() as u64)
        })
    }
}
