//! The store of one tenant.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::checkpoint::BoxFuture;
use crate::ids::{ThreadId, Timestamp};
use crate::store::{Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult};

/// The part of a store that belongs to one tenant. Every call through it uses that tenant, whichever one the namespace, the search
/// or the query names. So code that knows nothing of tenants cannot reach the facts of another.
#[derive(Clone)]
pub struct TenantStore {
    store: Arc<dyn Store>,
    tenant: Arc<str>,
}

impl TenantStore {
    /// Creates a view of the store for the tenant of a thread.
    pub fn new(store: Arc<dyn Store>, thread: &ThreadId) -> Self {
        Self {
            store,
            tenant: thread.tenant().into(),
        }
    }

    /// Returns the tenant; empty for the unnamed one.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    fn bind(&self, namespace: &Namespace) -> Namespace {
        Namespace {
            tenant: self.tenant.clone(),
            segments: namespace.segments.clone(),
        }
    }

    fn bind_put(&self, put: &PutItem) -> PutItem {
        PutItem {
            namespace: self.bind(&put.namespace),
            ..put.clone()
        }
    }
}

impl Store for TenantStore {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        let namespace = self.bind(namespace);
        Box::pin(async move { self.store.get(&namespace, key, now).await })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        let put = self.bind_put(put);
        Box::pin(async move { self.store.put(&put, now).await })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let put = self.bind_put(put);
        Box::pin(async move { self.store.put_if(seen, &put, now).await })
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        let namespace = self.bind(namespace);
        Box::pin(async move { self.store.delete(&namespace, key).await })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        let search = Search {
            tenant: self.tenant.to_string(),
            ..search.clone()
        };
        Box::pin(async move { self.store.search(&search, now).await })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        let query = NamespaceQuery {
            tenant: self.tenant.to_string(),
            ..query.clone()
        };
        Box::pin(async move { self.store.namespaces(&query, now).await })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        self.store.sweep(now, limit)
    }
}

impl fmt::Debug for TenantStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TenantStore")
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}
