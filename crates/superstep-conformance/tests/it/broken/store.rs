//! A long-term store with a defect.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::Value as Json;
use superstep_conformance::give_way;
use superstep_core::Timestamp;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{
    Item, MemoryStore, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult, Ttl,
};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreDefect {
    None,
    PrefixAsText,
    ExpiredFound,
    CreatedForgotten,
    ReadDoesNotProlong,
    SweepTakesAll,
    FiltersIgnored,
    LimitsIgnored,
    /// What was seen is not compared.
    PutIfAlways,
    /// What was seen is compared, and stored a moment later.
    PutIfTorn,
    /// Whoever comes too late is told that it was stored.
    LoserToldStored,
    PutIfSeesExpired,
    PutIfForgetsCreated,
    ReadShortensLife,
    /// A life that ends after the last timestamp ends at once.
    EndlessLifeWraps,
    PagedBeforeFiltered,
    NamespacesPagedBeforeCut,
    DeletedIsAlwaysToldThere,
    /// What had expired lends its age to what takes its place.
    ExpiredLendsItsAge,
    SweepTellsNothing,
    NamespacesBackwards,
    SuffixIgnored,
    /// All tenants have the same items.
    TenantForgotten,
}

/// A store with a defect.
pub(crate) struct BrokenStore {
    inner: MemoryStore,
    defect: StoreDefect,
    last_put: Mutex<Option<PutItem>>,
    first_put_at: Mutex<Option<Timestamp>>,
}

impl BrokenStore {
    pub(crate) fn new(defect: StoreDefect) -> Self {
        Self {
            inner: MemoryStore::new(),
            defect,
            last_put: Mutex::default(),
            first_put_at: Mutex::default(),
        }
    }

    fn is(&self, defect: StoreDefect) -> bool {
        self.defect == defect
    }

    fn bent(&self, namespace: &Namespace) -> Namespace {
        match self.is(StoreDefect::TenantForgotten) {
            true => Namespace::new(namespace.segments()).expect("it was one of a tenant"),
            false => namespace.clone(),
        }
    }
}

impl Store for BrokenStore {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(async move {
            if self.is(StoreDefect::ReadShortensLife) {
                let last = self.last_put.lock().expect("no clause panics").clone();
                if let Some(put) = last.filter(|put| put.key == key) {
                    self.inner.put(&put, now).await?;
                }
            }
            let now = match self.is(StoreDefect::ExpiredFound) {
                true => Timestamp(0),
                false => now,
            };
            let mut found = self.inner.get(&self.bent(namespace), key, now).await?;
            let first = *self.first_put_at.lock().expect("no clause panics");
            if let (Some(item), Some(first)) = (&mut found, first)
                && self.is(StoreDefect::ExpiredLendsItsAge)
            {
                item.created = first;
            }
            Ok(found)
        })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let mut put = put.clone();
            put.namespace = self.bent(&put.namespace);
            if self.is(StoreDefect::LimitsIgnored) && put.check().is_err() {
                return Ok(());
            }
            if self.is(StoreDefect::CreatedForgotten) {
                self.inner.delete(&put.namespace, &put.key).await?;
            }
            if self.is(StoreDefect::ReadDoesNotProlong) {
                put.ttl = put.ttl.map(|ttl| Ttl {
                    refresh_on_read: false,
                    ..ttl
                });
            }
            if self.is(StoreDefect::EndlessLifeWraps) {
                put.ttl = put.ttl.map(|ttl| Ttl {
                    ms: u64::try_from(ttl.ms.cast_signed()).unwrap_or(0),
                    ..ttl
                });
            }
            self.first_put_at
                .lock()
                .expect("no clause panics")
                .get_or_insert(now);
            *self.last_put.lock().expect("no clause panics") = Some(put.clone());
            self.inner.put(&put, now).await
        })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let (namespace, key) = (&put.namespace, &put.key);
            match self.defect {
                StoreDefect::PutIfAlways => {
                    self.inner.put(put, now).await?;
                    Ok(true)
                }
                StoreDefect::PutIfTorn => {
                    let found = self.inner.get(namespace, key, now).await?;
                    give_way().await;
                    if found.map(|item| item.value).as_ref() != seen {
                        return Ok(false);
                    }
                    self.inner.put(put, now).await?;
                    Ok(true)
                }
                StoreDefect::LoserToldStored => {
                    self.inner.put_if(seen, put, now).await?;
                    Ok(true)
                }
                StoreDefect::PutIfSeesExpired => {
                    let found = self.inner.get(namespace, key, Timestamp(0)).await?;
                    if found.map(|item| item.value).as_ref() != seen {
                        return Ok(false);
                    }
                    self.inner.put(put, now).await?;
                    Ok(true)
                }
                StoreDefect::PutIfForgetsCreated => {
                    let stored = self.inner.put_if(seen, put, now).await?;
                    if stored {
                        self.inner.delete(namespace, key).await?;
                        self.inner.put(put, now).await?;
                    }
                    Ok(stored)
                }
                _ => self.inner.put_if(seen, put, now).await,
            }
        })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            let was_there = self.inner.delete(&self.bent(namespace), key).await?;
            Ok(was_there || self.is(StoreDefect::DeletedIsAlwaysToldThere))
        })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(async move {
            let mut search = search.clone();
            if self.is(StoreDefect::TenantForgotten) {
                search.tenant.clear();
            }
            if self.is(StoreDefect::FiltersIgnored) {
                search.filters.clear();
            }
            if self.is(StoreDefect::PagedBeforeFiltered) {
                let filters = std::mem::take(&mut search.filters);
                let mut items = self.inner.search(&search, now).await?;
                items.retain(|item| filters.iter().all(|filter| filter.matches(&item.value)));
                return Ok(items);
            }
            if !self.is(StoreDefect::PrefixAsText) {
                return self.inner.search(&search, now).await;
            }
            let prefix = std::mem::take(&mut search.prefix).join(".");
            let mut items = self.inner.search(&search, now).await?;
            items.retain(|item| item.namespace.segments().join(".").starts_with(&prefix));
            Ok(items)
        })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        Box::pin(async move {
            let mut bent = query.clone();
            match self.defect {
                StoreDefect::NamespacesPagedBeforeCut => bent.depth_max = None,
                StoreDefect::SuffixIgnored => bent.suffix.clear(),
                StoreDefect::TenantForgotten => bent.tenant.clear(),
                _ => {}
            }
            let found = self.inner.namespaces(&bent, now).await?;
            let cut: BTreeSet<_> = found.iter().map(|found| query.cut(found)).collect();
            let mut cut: Vec<_> = cut.into_iter().collect();
            if self.is(StoreDefect::NamespacesBackwards) {
                cut.reverse();
            }
            Ok(cut)
        })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        Box::pin(async move {
            let limit = match self.is(StoreDefect::SweepTakesAll) {
                true => u32::MAX,
                false => limit,
            };
            let swept = self.inner.sweep(now, limit).await?;
            Ok(match self.is(StoreDefect::SweepTellsNothing) {
                true => 0,
                false => swept,
            })
        })
    }
}
