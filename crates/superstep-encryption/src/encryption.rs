//! The handle that every wrapped store shares: whose keys are where, which are at hand, and what stays readable.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;
use superstep_core::Timestamp;
use superstep_core::checkpoint::{Checkpointer, Page, SizeQuery};
use superstep_core::registry::{AssistantQuery, Registry};
use superstep_core::store::{Item, Search, Store};

use crate::cipher::{KeyId, Place};
use crate::error::EncryptionError;
use crate::fields::SearchableFields;
use crate::key_encryption::KeyEncryption;
use crate::keyring::{self, KEYS_TENANT, Keyring, KeyringChange, TenantKeys};

/// Encrypts and decrypts what stores hold, with keys per tenant. A clone is another handle to the same keys.
///
/// The keys are in a [`Store`], wrapped by a [`KeyEncryption`]; give it the store of the same database, not wrapped itself.
#[derive(Clone)]
pub struct Encryption(Arc<Inner>);

struct Inner {
    kek: Arc<dyn KeyEncryption>,
    store: Arc<dyn Store>,
    searchable: SearchableFields,
    plain: PlainData,
    cache: Mutex<BTreeMap<String, Cached>>,
}

/// What to do about data that is not encrypted although it has to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlainData {
    /// Refuse it: nothing was ever stored without encryption, or all of it was encrypted since. Default.
    #[default]
    Refuse,
    /// Accept it until everything of its tenant is encrypted ([`Encryption::is_encrypted`]): for a database that was in use before
    /// encryption was turned on.
    ///
    /// An attacker who can write the database can delete the keyring of a tenant, and its plain data is accepted again. So return to
    /// [`PlainData::Refuse`] once every tenant is encrypted.
    AcceptUntilEncrypted,
}

#[derive(Clone)]
struct Cached {
    found: Found,
    at: Instant,
}

/// The keys of a tenant, if it has any.
#[derive(Clone)]
enum Found {
    Keys(Arc<TenantKeys>),
    Erased,
    Nothing,
}

impl Encryption {
    /// How long a process caches the keys of a tenant. For this long, another process may continue to use keys that were rotated or
    /// destroyed.
    pub const KEYS_CACHED: Duration = Duration::from_secs(60);

    /// Creates an encryption whose data keys are in this store, wrapped by these keys.
    pub fn new(kek: impl KeyEncryption, store: Arc<dyn Store>) -> Self {
        Self(Arc::new(Inner {
            kek: Arc::new(kek),
            store,
            searchable: SearchableFields::default(),
            plain: PlainData::default(),
            cache: Mutex::default(),
        }))
    }

    /// Sets which fields of metadata, listed states and items stay in clear, to be searched. Default: none.
    #[must_use]
    pub fn with_searchable(self, searchable: SearchableFields) -> Self {
        self.changed(|inner| inner.searchable = searchable)
    }

    /// Sets what to do about data that is not encrypted. Default: refuse it.
    #[must_use]
    pub fn with_plain_data(self, plain: PlainData) -> Self {
        self.changed(|inner| inner.plain = plain)
    }

    fn changed(self, change: impl FnOnce(&mut Inner)) -> Self {
        let inner = &self.0;
        let mut inner = Inner {
            kek: inner.kek.clone(),
            store: inner.store.clone(),
            searchable: inner.searchable.clone(),
            plain: inner.plain,
            cache: Mutex::default(),
        };
        change(&mut inner);
        Self(Arc::new(inner))
    }

    pub(crate) fn searchable(&self) -> &SearchableFields {
        &self.0.searchable
    }

    /// Returns the keys with which to write. Creates the tenant's first one.
    pub(crate) async fn keys_to_write(
        &self,
        tenant: &str,
    ) -> Result<Arc<TenantKeys>, EncryptionError> {
        if tenant == KEYS_TENANT {
            return Err(EncryptionError::Reserved {
                tenant: tenant.to_owned(),
            });
        }
        if let Found::Keys(keys) = self.find(tenant).await? {
            return Ok(keys);
        }
        loop {
            let stored = self.stored_keyring(tenant).await?;
            let (seen, erased) = match stored {
                Some((_, keyring)) if keyring.root.is_some() => {
                    return Ok(self.remember(tenant, keyring.open(&*self.0.kek).await?));
                }
                Some((seen, keyring)) => (Some(seen), keyring.erased),
                None => (None, Vec::new()),
            };
            // After an erasure nothing plain is left either.
            let is_encrypted = self.0.plain == PlainData::Refuse || seen.is_some();
            let keyring =
                Keyring::create(tenant, is_encrypted, erased, now(), &*self.0.kek).await?;
            if self
                .replace_keyring(tenant, seen.as_ref(), &keyring)
                .await?
            {
                return Ok(self.remember(tenant, keyring.open(&*self.0.kek).await?));
            }
            // Another process was first: use its key.
        }
    }

    /// Returns the keys with which to write if this process has them, without a call to the store. They may be older than
    /// [`Encryption::KEYS_CACHED`].
    pub(crate) fn keys_at_hand(&self, tenant: &str) -> Option<Arc<TenantKeys>> {
        match self.cache().get(tenant).map(|cached| cached.found.clone()) {
            Some(Found::Keys(keys)) => Some(keys),
            _ => None,
        }
    }

    /// Decrypts with the keys at hand, and once more with those that are stored if a key is missing: another process may have
    /// created or rotated it meanwhile.
    pub(crate) async fn read<T>(
        &self,
        tenant: &str,
        work: impl Fn(&Reader<'_>) -> Result<T, EncryptionError>,
    ) -> Result<T, EncryptionError> {
        let found = self.find(tenant).await?;
        let read = work(&self.reader(tenant, &found));
        let is_missing = matches!(
            read,
            Err(EncryptionError::NoKeys { .. } | EncryptionError::UnknownKey { .. })
        );
        if !is_missing {
            return read;
        }
        self.forget(tenant);
        let found = self.find(tenant).await?;
        work(&self.reader(tenant, &found))
    }

    fn reader<'a>(&'a self, tenant: &'a str, found: &'a Found) -> Reader<'a> {
        let is_encrypted = match found {
            Found::Keys(keys) => keys.is_encrypted,
            Found::Erased => true,
            Found::Nothing => false,
        };
        Reader {
            tenant,
            found,
            searchable: &self.0.searchable,
            accepts_plain: self.0.plain == PlainData::AcceptUntilEncrypted && !is_encrypted,
        }
    }

    /// Checks that the keys of a tenant can be unwrapped, if it has any.
    async fn open_stored(&self, tenant: &str) -> Result<(), EncryptionError> {
        match self.stored_keyring(tenant).await? {
            Some((_, keyring)) if keyring.root.is_some() => {
                keyring.open(&*self.0.kek).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Returns the keys at hand, or reads them.
    async fn find(&self, tenant: &str) -> Result<Found, EncryptionError> {
        let cached = self.cache().get(tenant).cloned();
        if let Some(cached) = cached.filter(|cached| cached.at.elapsed() < Self::KEYS_CACHED) {
            return Ok(cached.found);
        }
        let found = match self.stored_keyring(tenant).await? {
            None => Found::Nothing,
            Some((_, keyring)) if keyring.root.is_none() => Found::Erased,
            Some((_, keyring)) => {
                let keys = self.remember(tenant, keyring.open(&*self.0.kek).await?);
                return Ok(Found::Keys(keys));
            }
        };
        self.insert(tenant, found.clone());
        Ok(found)
    }

    fn remember(&self, tenant: &str, keys: TenantKeys) -> Arc<TenantKeys> {
        let keys = Arc::new(keys);
        self.insert(tenant, Found::Keys(keys.clone()));
        keys
    }

    fn insert(&self, tenant: &str, found: Found) {
        /// From so many tenants on, those whose time is over make room.
        const MANY: usize = 10_000;
        let mut cache = self.cache();
        if cache.len() >= MANY {
            cache.retain(|_, cached| cached.at.elapsed() < Self::KEYS_CACHED);
        }
        let at = Instant::now();
        cache.insert(tenant.to_owned(), Cached { found, at });
    }

    /// Forgets the keys of a tenant, so that they are read again.
    pub(crate) fn forget(&self, tenant: &str) {
        self.cache().remove(tenant);
    }

    fn cache(&self) -> MutexGuard<'_, BTreeMap<String, Cached>> {
        // An entry is inserted as a whole, so a poisoned lock still guards sound data.
        (self.0.cache.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a tenant's keyring, and what is stored of it, to be compared when it is replaced.
    pub(crate) async fn stored_keyring(
        &self,
        tenant: &str,
    ) -> Result<Option<(Json, Keyring)>, EncryptionError> {
        keyring::load(&*self.0.store, tenant, now()).await
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    /// Stores a keyring if the stored one is still the one that was seen.
    async fn replace_keyring(
        &self,
        tenant: &str,
        seen: Option<&Json>,
        keyring: &Keyring,
    ) -> Result<bool, EncryptionError> {
        keyring::replace(&*self.0.store, tenant, seen, keyring, now()).await
    }

    /// Changes a tenant's keyring, and returns it; `None` if the tenant has no keys.
    pub(crate) async fn change_keyring(
        &self,
        tenant: &str,
        change: KeyringChange,
    ) -> Result<Option<Keyring>, EncryptionError> {
        loop {
            let Some((seen, keyring)) = self.stored_keyring(tenant).await? else {
                return Ok(None);
            };
            if keyring.root.is_none() {
                return Ok(None);
            }
            let changed = keyring.changed(change, now(), &*self.0.kek).await?;
            let is_stored = self.replace_keyring(tenant, Some(&seen), &changed).await?;
            self.forget(tenant);
            if is_stored {
                return Ok(Some(changed));
            }
        }
    }

    /// Adds a data key to those of a tenant, and returns its id: what is written from now on is encrypted with it. Existing data
    /// stays as it is, and is decrypted with the older keys. `None` if the tenant has no keys.
    ///
    /// Other processes use the new key within [`Encryption::KEYS_CACHED`].
    pub async fn rotate_key(&self, tenant: &str) -> Result<Option<KeyId>, EncryptionError> {
        let changed = self.change_keyring(tenant, KeyringChange::AddKey).await?;
        Ok(changed.and_then(|keyring| keyring.keys.first().map(|key| key.id)))
    }

    /// Adds a data key to those of a tenant if its newest one was created before a time, and returns its id; `None` if there is
    /// nothing to do. A program that rotates the keys of many tenants, and is killed, so rotates each once when it starts again.
    pub async fn rotate_key_before(
        &self,
        tenant: &str,
        before: Timestamp,
    ) -> Result<Option<KeyId>, EncryptionError> {
        let stored = self.stored_keyring(tenant).await?;
        let newest = stored.and_then(|(_, keyring)| keyring.keys.into_iter().next());
        let Some(newest) = newest.filter(|newest| newest.created < before.0) else {
            return Ok(None);
        };
        let change = KeyringChange::AddKeyIfBefore(before);
        let changed = self.change_keyring(tenant, change).await?;
        let id = changed.and_then(|keyring| keyring.keys.first().map(|key| key.id));
        Ok(id.filter(|id| *id != newest.id))
    }

    /// Adds a data key to those of every tenant whose newest one was created before a time, calls `progress` with the tenant and the new
    /// id, and returns how many tenants that were. Can be stopped at any point, and called again with the same time.
    pub async fn rotate_keys_before(
        &self,
        before: Timestamp,
        mut progress: impl FnMut(&str, KeyId),
    ) -> Result<usize, EncryptionError> {
        let mut rotated = 0;
        for tenant in self.tenants().await? {
            if let Some(id) = self.rotate_key_before(&tenant, before).await? {
                rotated += 1;
                progress(&tenant, id);
            }
        }
        Ok(rotated)
    }

    /// Wraps the data keys of a tenant with the current key-encryption key. Returns whether any needed it.
    pub async fn rewrap(&self, tenant: &str) -> Result<bool, EncryptionError> {
        let Some((_, keyring)) = self.stored_keyring(tenant).await? else {
            return Ok(false);
        };
        if keyring.root.is_none() || !keyring.needs_rewrap(&*self.0.kek) {
            return Ok(false);
        }
        let changed = self.change_keyring(tenant, KeyringChange::Rewrap).await?;
        Ok(changed.is_some())
    }

    /// Wraps the data keys of every tenant with the current key-encryption key, and calls `progress` after each tenant that needed it.
    ///
    /// Can be stopped at any point, and continues when it is called again: each tenant's keys change at once, and are readable before
    /// and after with both key-encryption keys.
    pub async fn rewrap_all(
        &self,
        mut progress: impl FnMut(&str),
    ) -> Result<RewrappedKeys, EncryptionError> {
        let mut total = RewrappedKeys::default();
        for _ in 0..PASSES_MAX {
            let tenants = self.tenants().await?;
            total.tenants = tenants.len();
            let mut changed = 0;
            for tenant in &tenants {
                if self.rewrap(tenant).await? {
                    changed += 1;
                    progress(tenant);
                }
            }
            total.rewrapped += changed;
            // A process that still has the old key in front may have created a keyring meanwhile.
            if changed == 0 {
                total.is_complete = true;
                break;
            }
        }
        Ok(total)
    }

    /// Checks before the first use of a database that these keys are its keys, and that it has no data that this encryption would lock
    /// out.
    ///
    /// Opens the keys of a hundred tenants: the others are checked when they are used. Fails with
    /// [`EncryptionError::KeyEncryptionKey`] for other keys, and with [`EncryptionError::PlainDatabase`] for a database that was in use
    /// without encryption, unless [`PlainData::AcceptUntilEncrypted`] says so: the first write would refuse what is there.
    pub async fn check_database(
        &self,
        checkpointer: &dyn Checkpointer,
        registry: Option<&dyn Registry>,
    ) -> Result<(), EncryptionError> {
        let keyrings = keyring_items(self.store(), CHECKED_TENANTS, 0).await?;
        for tenant in keyrings.iter().filter_map(tenant_of) {
            match self.open_stored(&tenant).await {
                // The keys of one tenant were changed: that is its problem, and is reported where they are used.
                Err(EncryptionError::Keyring { .. }) => {}
                opened => opened?,
            }
        }
        if !keyrings.is_empty() || self.0.plain == PlainData::AcceptUntilEncrypted {
            return Ok(());
        }
        let failed = |source| EncryptionError::Database {
            source: Box::new(source),
        };
        let threads = SizeQuery {
            page: ONE,
            ..SizeQuery::default()
        };
        let threads = checkpointer.sizes(&threads).await.map_err(failed)?;
        let assistants = AssistantQuery {
            page: ONE,
            ..AssistantQuery::default()
        };
        let has_assistants = match registry {
            Some(registry) => {
                let found = registry.assistants(&assistants).await;
                !found.map_err(failed)?.is_empty()
            }
            None => false,
        };
        let items = Search {
            page: ONE,
            ..Search::default()
        };
        let items = self.0.store.search(&items, now()).await?;
        match threads.is_empty() && !has_assistants && items.is_empty() {
            true => Ok(()),
            false => Err(EncryptionError::PlainDatabase),
        }
    }

    /// Returns the tenants that have keys, or had.
    pub async fn tenants(&self) -> Result<Vec<String>, EncryptionError> {
        let mut tenants = Vec::new();
        let mut offset = 0;
        loop {
            let page = keyring_items(self.store(), TENANTS_AT_ONCE, offset).await?;
            if page.is_empty() {
                tenants.sort();
                tenants.dedup();
                return Ok(tenants);
            }
            offset = offset.saturating_add(page.len().try_into().unwrap_or(u32::MAX));
            tenants.extend(page.iter().filter_map(tenant_of));
        }
    }

    /// Returns the ids of the key-encryption keys that wrap a tenant's data keys, without repetitions; empty if it has none.
    pub async fn wrapped_by(&self, tenant: &str) -> Result<Vec<String>, EncryptionError> {
        let Some((_, keyring)) = self.stored_keyring(tenant).await? else {
            return Ok(Vec::new());
        };
        let keys = keyring.keys.iter().map(|key| &key.wrapped);
        let ids: BTreeSet<&String> = keys.chain(&keyring.root).map(|key| &key.by).collect();
        Ok(ids.into_iter().cloned().collect())
    }

    /// Returns the id of the key-encryption key that wraps new data keys.
    pub fn current_key(&self) -> String {
        self.0.kek.current()
    }

    /// Returns the ids of a tenant's data keys, the one that encrypts first; empty if it has none.
    pub async fn data_keys(&self, tenant: &str) -> Result<Vec<KeyId>, EncryptionError> {
        let keyring = self.stored_keyring(tenant).await?;
        let keys = keyring.map_or_else(Vec::new, |(_, keyring)| keyring.keys);
        Ok(keys.into_iter().map(|key| key.id).collect())
    }

    /// Declares that everything of a tenant is encrypted: from now on, plain data of it is refused, also with
    /// [`PlainData::AcceptUntilEncrypted`]. Returns whether the tenant has keys. There is no way back.
    pub async fn refuse_plain(&self, tenant: &str) -> Result<bool, EncryptionError> {
        let changed = self
            .change_keyring(tenant, KeyringChange::IsEncrypted)
            .await?;
        Ok(changed.is_some())
    }

    /// Whether everything of a tenant is encrypted, so that plain data of it is refused.
    pub async fn is_encrypted(&self, tenant: &str) -> Result<bool, EncryptionError> {
        let keyring = self.stored_keyring(tenant).await?;
        Ok(keyring.is_some_and(|(_, keyring)| keyring.is_encrypted))
    }
}

/// What [`Encryption::rewrap_all`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrappedKeys {
    /// Tenants that have keys, or had.
    pub tenants: usize,
    /// Tenants whose keys were wrapped again.
    pub rewrapped: usize,
    /// Whether a last pass found nothing that another key had wrapped, so that the other keys are not needed for this database. If not,
    /// another process still wraps with an old one.
    pub is_complete: bool,
}

/// Fails with [`EncryptionError::NoKeyGiven`] if data in this store is encrypted: for a process that has no key-encryption key, which
/// would read ciphertext and store plain data next to it.
pub async fn check_unencrypted(store: &dyn Store) -> Result<(), EncryptionError> {
    match keyring_items(store, 1, 0).await?.is_empty() {
        true => Ok(()),
        false => Err(EncryptionError::NoKeyGiven),
    }
}

/// Returns stored keyrings, newest first.
async fn keyring_items(
    store: &dyn Store,
    limit: u32,
    offset: u32,
) -> Result<Vec<Item>, EncryptionError> {
    let search = Search {
        tenant: KEYS_TENANT.to_owned(),
        page: Page { limit, offset },
        ..Search::default()
    };
    Ok(store.search(&search, now()).await?)
}

fn tenant_of(item: &Item) -> Option<String> {
    item.value["tenant"].as_str().map(str::to_owned)
}

const TENANTS_AT_ONCE: u32 = 500;
const CHECKED_TENANTS: u32 = 100;
const PASSES_MAX: u32 = 10;
const ONE: Page = Page {
    limit: 1,
    offset: 0,
};

/// Returns the time, for what is shown to people.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    Timestamp(ms.try_into().unwrap_or(i64::MAX))
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption")
            .field("key", &self.0.kek.current())
            .field("searchable", &self.0.searchable)
            .field("plain", &self.0.plain)
            .finish_non_exhaustive()
    }
}

/// Decrypts what belongs to one tenant.
pub(crate) struct Reader<'a> {
    pub(crate) tenant: &'a str,
    found: &'a Found,
    pub(crate) searchable: &'a SearchableFields,
    accepts_plain: bool,
}

impl Reader<'_> {
    /// Decrypts what was encrypted for a place.
    pub(crate) fn decrypt(
        &self,
        place: &Place,
        encrypted: &[u8],
        what: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, EncryptionError> {
        let tenant = self.tenant.to_owned();
        let Some(key) = KeyId::of(encrypted) else {
            return Err(EncryptionError::Refused { what: what() });
        };
        let keys = match self.found {
            Found::Keys(keys) => keys,
            Found::Erased => return Err(EncryptionError::Erased { tenant }),
            Found::Nothing => return Err(EncryptionError::NoKeys { tenant }),
        };
        let Some(key) = keys.find(key) else {
            return Err(EncryptionError::UnknownKey { tenant, key });
        };
        let plain = key.decrypt(place, encrypted);
        plain.ok_or_else(|| EncryptionError::Refused { what: what() })
    }

    /// Refuses data that is not encrypted, unless it is accepted.
    pub(crate) fn check_plain(&self, what: impl FnOnce() -> String) -> Result<(), EncryptionError> {
        match self.accepts_plain {
            true => Ok(()),
            false => Err(EncryptionError::Plain { what: what() }),
        }
    }
}
