//! A long-term store that stores ciphertext and returns what was stored.
//!
//! It encrypts the values of items, apart from searchable fields. Namespaces, keys and times stay in clear: the inner store finds and
//! sorts items by them. The part of the store that holds the data keys cannot be reached through this one.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;
use superstep_core::Timestamp;
use superstep_core::checkpoint::BoxFuture;
use superstep_core::store::{Item, Namespace, NamespaceQuery, PutItem, Search, Store, StoreResult};

use crate::cipher::Place;
use crate::encryption::{Encryption, Reader};
use crate::error::EncryptionError;
use crate::fields::{canonical, hide_json, show_json};
use crate::keyring::{KEYS_TENANT, TenantKeys};

/// A [`Store`] in front of another one, which gets nothing but ciphertext of the values.
#[derive(Clone)]
pub struct EncryptedStore {
    inner: Arc<dyn Store>,
    encryption: Encryption,
}

impl EncryptedStore {
    /// Creates a store that encrypts what it stores in another one.
    pub fn new(inner: Arc<dyn Store>, encryption: Encryption) -> Self {
        Self { inner, encryption }
    }

    fn hide(&self, keys: &TenantKeys, namespace: &Namespace, key: &str, value: &Json) -> Json {
        let place = place(namespace, key);
        hide_json(keys, self.encryption.searchable(), &place, value)
    }

    async fn hide_put(&self, put: &PutItem) -> StoreResult<PutItem> {
        // What is encrypted is never null.
        put.check()?;
        let keys = self
            .encryption
            .keys_to_write(put.namespace.tenant())
            .await?;
        Ok(PutItem {
            value: self.hide(&keys, &put.namespace, &put.key, &put.value),
            ..put.clone()
        })
    }

    async fn put_if_hidden(
        &self,
        seen: Option<&Json>,
        put: &PutItem,
        now: Timestamp,
    ) -> StoreResult<bool> {
        let hidden = self.hide_put(put).await?;
        let (namespace, key) = (&put.namespace, &put.key);
        let Some(seen) = seen else {
            return self.inner.put_if(None, &hidden, now).await;
        };
        let keys = self.encryption.keys_to_write(namespace.tenant()).await?;
        let hidden_seen = self.hide(&keys, namespace, key, seen);
        if self.inner.put_if(Some(&hidden_seen), &hidden, now).await? {
            return Ok(true);
        }
        // Is what the caller saw there under an older key, or with other searchable fields?
        let Some(stored) = self.inner.get(namespace, key, now).await? else {
            return Ok(false);
        };
        let show = |reader: &Reader<'_>| show_item(reader, &stored);
        let shown = self.encryption.read(namespace.tenant(), show).await?;
        let is_same = canonical(&shown.value) == canonical(seen);
        if !is_same || stored.value == hidden_seen {
            return Ok(false);
        }
        self.inner.put_if(Some(&stored.value), &hidden, now).await
    }
}

fn place(namespace: &Namespace, key: &str) -> Place {
    let segments = namespace.segments();
    let place = Place::new("item", namespace.tenant()).number(segments.len() as u64);
    let place = segments.iter().fold(place, |place, part| place.text(part));
    place.text(key)
}

fn show_item(reader: &Reader<'_>, item: &Item) -> Result<Item, EncryptionError> {
    let what = format!("item `{}` in {:?}", item.key, item.namespace.segments());
    let place = place(&item.namespace, &item.key);
    Ok(Item {
        value: show_json(reader, reader.searchable, &place, &item.value, &what)?,
        ..item.clone()
    })
}

/// Refuses calls that name the part of the store with the data keys.
fn check(tenant: &str) -> Result<(), EncryptionError> {
    match tenant {
        KEYS_TENANT => Err(EncryptionError::Reserved {
            tenant: tenant.to_owned(),
        }),
        _ => Ok(()),
    }
}

impl Store for EncryptedStore {
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>> {
        Box::pin(async move {
            check(namespace.tenant())?;
            let Some(item) = self.inner.get(namespace, key, now).await? else {
                return Ok(None);
            };
            let show = |reader: &Reader<'_>| show_item(reader, &item);
            Ok(Some(self.encryption.read(namespace.tenant(), show).await?))
        })
    }

    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let hidden = self.hide_put(put).await?;
            self.inner.put(&hidden, now).await
        })
    }

    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(self.put_if_hidden(seen, put, now))
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>> {
        Box::pin(async move {
            check(namespace.tenant())?;
            self.inner.delete(namespace, key).await
        })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>> {
        Box::pin(async move {
            check(&search.tenant)?;
            for filter in &search.filters {
                self.encryption.searchable().check(&filter.field)?;
            }
            let items = self.inner.search(search, now).await?;
            let show = |reader: &Reader<'_>| {
                let shown = items.iter().map(|item| show_item(reader, item));
                shown.collect::<Result<Vec<_>, _>>()
            };
            Ok(self.encryption.read(&search.tenant, show).await?)
        })
    }

    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>> {
        Box::pin(async move {
            check(&query.tenant)?;
            self.inner.namespaces(query, now).await
        })
    }

    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>> {
        self.inner.sweep(now, limit)
    }
}

impl fmt::Debug for EncryptedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedStore")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}
