//! The data keys of one tenant: how they are stored, checked and unwrapped.
//!
//! A keyring is one item in the long-term store of the database that it protects, so a backup of the database has the keys that its
//! data needs, wrapped. Every change of it is a compare-and-swap of the whole item ([`Store::put_if`](superstep_core::store::Store)), so processes that race for
//! a tenant's first key agree on one. Everything in it is authenticated with a key that is itself wrapped: an attacker who can write
//! the database, and has no key, can delete a keyring or bring back an older one, and nothing else.

use std::collections::BTreeMap;

use hmac::Mac as _;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use superstep_core::Timestamp;
use superstep_core::store::{Namespace, PutItem, Store};

use crate::cipher::{DataKey, KeyId, Place, Secret, derive, from_hex, mac, random_secret, to_hex};
use crate::erasure::ErasureReceipt;
use crate::error::EncryptionError;
use crate::key_encryption::{KeyEncryption, UnwrappedKey, WrappedKey};

/// A tenant's data keys, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Keyring {
    version: u32,
    /// Who owns the keys; part of what is authenticated, so a keyring cannot be given to another tenant.
    tenant: String,
    /// The key that names are hashed with, and this keyring authenticated. It is never rotated. `None` if the keys were destroyed.
    pub(crate) root: Option<WrappedKey>,
    /// Newest first. The first one encrypts, all decrypt.
    pub(crate) keys: Vec<StoredKey>,
    /// Whether everything of the tenant is encrypted, so that plain data is refused from now on.
    pub(crate) is_encrypted: bool,
    /// What was destroyed before, newest last.
    pub(crate) erased: Vec<ErasureReceipt>,
    /// Authenticates everything else.
    mac: String,
}

/// A wrapped data key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredKey {
    pub(crate) id: KeyId,
    pub(crate) created: i64,
    pub(crate) wrapped: WrappedKey,
}

const VERSION: u32 = 1;

/// A tenant's data keys, unwrapped.
pub(crate) struct TenantKeys {
    root: Secret,
    current: KeyId,
    keys: BTreeMap<KeyId, DataKey>,
    pub(crate) is_encrypted: bool,
}

impl TenantKeys {
    /// Returns the key that encrypts.
    pub(crate) fn current(&self) -> &DataKey {
        &self.keys[&self.current]
    }

    /// Returns a key by its id.
    pub(crate) fn find(&self, id: KeyId) -> Option<&DataKey> {
        self.keys.get(&id)
    }

    /// Whether there are keys besides the current one, so that something may be encrypted with them.
    pub(crate) fn has_older(&self) -> bool {
        self.keys.len() > 1
    }

    /// Returns a name that stands for another one: the same for the same name, and without the key no way back.
    pub(crate) fn hide_name(&self, name: &str) -> String {
        let mut mac = mac(&derive(&self.root, b"superstep 1: names"));
        mac.update(name.as_bytes());
        to_hex(&mac.finalize().into_bytes()[..16])
    }
}

impl Keyring {
    /// Creates a keyring with one key.
    pub(crate) async fn create(
        tenant: &str,
        is_encrypted: bool,
        erased: Vec<ErasureReceipt>,
        now: Timestamp,
        kek: &dyn KeyEncryption,
    ) -> Result<Self, EncryptionError> {
        let root = random_secret()?;
        let mut keyring = Self {
            version: VERSION,
            tenant: tenant.to_owned(),
            root: Some(kek.wrap(&root, &root_context(tenant)).await?),
            keys: Vec::new(),
            is_encrypted,
            erased,
            mac: String::new(),
        };
        keyring.add_key(now, kek).await?;
        keyring.mac = keyring.computed_mac(&root);
        Ok(keyring)
    }

    /// Returns what is left of a keyring whose keys are destroyed.
    pub(crate) fn erased(tenant: &str, erased: Vec<ErasureReceipt>) -> Self {
        Self {
            version: VERSION,
            tenant: tenant.to_owned(),
            root: None,
            keys: Vec::new(),
            is_encrypted: true,
            erased,
            mac: String::new(),
        }
    }

    pub(crate) fn from_json(tenant: &str, json: &Json) -> Result<Self, EncryptionError> {
        let keyring: Self =
            serde_json::from_value(json.clone()).map_err(|_| invalid(tenant, "not a keyring"))?;
        if keyring.version != VERSION {
            return Err(invalid(tenant, "a newer program wrote them"));
        }
        if keyring.tenant != tenant {
            return Err(invalid(tenant, "they are those of another tenant"));
        }
        Ok(keyring)
    }

    pub(crate) fn to_json(&self) -> Json {
        serde_json::to_value(self).expect("plain data in memory always encodes")
    }

    /// Adds a new key, which encrypts from now on.
    async fn add_key(
        &mut self,
        now: Timestamp,
        kek: &dyn KeyEncryption,
    ) -> Result<(), EncryptionError> {
        let (id, secret) = (KeyId::random()?, random_secret()?);
        let wrapped = kek.wrap(&secret, &key_context(&self.tenant, id)).await?;
        let key = StoredKey {
            id,
            created: now.0,
            wrapped,
        };
        self.keys.insert(0, key);
        Ok(())
    }

    /// Returns the keyring with a change, authenticated again.
    pub(crate) async fn changed(
        mut self,
        change: KeyringChange,
        now: Timestamp,
        kek: &dyn KeyEncryption,
    ) -> Result<Self, EncryptionError> {
        let root = self.open_root(kek).await?;
        match change {
            KeyringChange::AddKey => self.add_key(now, kek).await?,
            KeyringChange::AddKeyIfBefore(before) => {
                let newest = self.keys.first();
                if newest.is_none_or(|newest| newest.created < before.0) {
                    self.add_key(now, kek).await?;
                }
            }
            KeyringChange::IsEncrypted => self.is_encrypted = true,
            KeyringChange::Rewrap => self.rewrap(&root, kek).await?,
        }
        self.mac = self.computed_mac(&root);
        Ok(self)
    }

    /// Whether a key other than the current key-encryption key has wrapped any of the keys.
    pub(crate) fn needs_rewrap(&self, kek: &dyn KeyEncryption) -> bool {
        let current = kek.current();
        let keys = self.keys.iter().map(|key| &key.wrapped);
        let mut all = keys.chain(&self.root);
        all.any(|wrapped| wrapped.by != current)
    }

    async fn rewrap(
        &mut self,
        root: &Secret,
        kek: &dyn KeyEncryption,
    ) -> Result<(), EncryptionError> {
        let tenant = self.tenant.clone();
        self.root = Some(kek.wrap(root, &root_context(&tenant)).await?);
        for key in &mut self.keys {
            let context = key_context(&tenant, key.id);
            let secret = open(&tenant, &key.wrapped, &context, kek).await?;
            key.wrapped = kek.wrap(&secret, &context).await?;
        }
        Ok(())
    }

    /// Unwraps the keys, after it has checked that they are as they were stored.
    pub(crate) async fn open(
        &self,
        kek: &dyn KeyEncryption,
    ) -> Result<TenantKeys, EncryptionError> {
        let root = self.open_root(kek).await?;
        let mut keys = BTreeMap::new();
        for key in &self.keys {
            let context = key_context(&self.tenant, key.id);
            let secret = open(&self.tenant, &key.wrapped, &context, kek).await?;
            keys.insert(key.id, DataKey::new(key.id, &secret));
        }
        let newest = self.keys.first().map(|key| key.id);
        let current = newest.ok_or_else(|| invalid(&self.tenant, "there is no key"))?;
        Ok(TenantKeys {
            root,
            current,
            keys,
            is_encrypted: self.is_encrypted,
        })
    }

    async fn open_root(&self, kek: &dyn KeyEncryption) -> Result<Secret, EncryptionError> {
        let Some(root) = &self.root else {
            return Err(EncryptionError::Erased {
                tenant: self.tenant.clone(),
            });
        };
        let root = open(&self.tenant, root, &root_context(&self.tenant), kek).await?;
        let stored = from_hex(&self.mac).unwrap_or_default();
        match self.hasher(&root).verify_slice(&stored) {
            Ok(()) => Ok(root),
            Err(_) => Err(invalid(&self.tenant, "they were changed")),
        }
    }

    fn computed_mac(&self, root: &Secret) -> String {
        to_hex(&self.hasher(root).finalize().into_bytes())
    }

    /// Returns the hash over everything but itself, in one order of the fields.
    fn hasher(&self, root: &Secret) -> hmac::Hmac<sha2::Sha256> {
        let whole = Self {
            mac: String::new(),
            ..self.clone()
        };
        let bytes = serde_json::to_vec(&whole).expect("plain data in memory always encodes");
        let mut mac = mac(&derive(root, b"superstep 1: keyring"));
        mac.update(&bytes);
        mac
    }
}

/// A change of a keyring.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyringChange {
    /// A new key, which encrypts from now on.
    AddKey,
    /// The same, unless a process has added one at this time or later.
    AddKeyIfBefore(Timestamp),
    /// Nothing of the tenant is plain.
    IsEncrypted,
    /// Every key is wrapped by the current key-encryption key.
    Rewrap,
}

/// The tenant in whose part of the store the keys are. No thread or item of users can be there.
pub(crate) const KEYS_TENANT: &str = "superstep.data-keys";

/// Whether a tenant's name stands for the part of the store that holds the data keys of all tenants. A program that deletes everything
/// of a tenant by its name refuses this one.
pub fn is_reserved_tenant(tenant: &str) -> bool {
    tenant == KEYS_TENANT
}

/// Returns the key of a tenant's item. The unnamed tenant has one, too, and a registry takes any text for a tenant.
fn key_of(tenant: &str) -> String {
    if Namespace::of_tenant(tenant, ["any"]).is_ok() {
        return format!("tenant:{tenant}");
    }
    format!("hash:{}", to_hex(&Sha256::digest(tenant.as_bytes())))
}

fn namespace() -> Result<Namespace, EncryptionError> {
    Ok(Namespace::of_tenant(KEYS_TENANT, ["keyrings"])?)
}

/// Returns a tenant's keyring, and what is stored of it, to be compared when it is replaced.
pub(crate) async fn load(
    store: &dyn Store,
    tenant: &str,
    now: Timestamp,
) -> Result<Option<(Json, Keyring)>, EncryptionError> {
    let key = key_of(tenant);
    let Some(item) = store.get(&namespace()?, &key, now).await? else {
        return Ok(None);
    };
    let keyring = Keyring::from_json(tenant, &item.value)?;
    Ok(Some((item.value, keyring)))
}

/// Stores a keyring if the stored one is still the one that was seen.
pub(crate) async fn replace(
    store: &dyn Store,
    tenant: &str,
    seen: Option<&Json>,
    keyring: &Keyring,
    now: Timestamp,
) -> Result<bool, EncryptionError> {
    let put = PutItem {
        namespace: namespace()?,
        key: key_of(tenant),
        value: keyring.to_json(),
        ttl: None,
    };
    Ok(store.put_if(seen, &put, now).await?)
}

async fn open(
    tenant: &str,
    wrapped: &WrappedKey,
    context: &[u8],
    kek: &dyn KeyEncryption,
) -> Result<Secret, EncryptionError> {
    match kek.unwrap(wrapped, context).await? {
        UnwrappedKey::Key(key) => Ok(key),
        UnwrappedKey::Unknown => Err(EncryptionError::KeyEncryptionKey {
            tenant: tenant.to_owned(),
            wanted: wrapped.by.clone(),
        }),
        UnwrappedKey::Refused => Err(invalid(tenant, "a wrapped key was changed")),
    }
}

fn root_context(tenant: &str) -> Vec<u8> {
    Place::new("root key", tenant).as_bytes().to_vec()
}

fn key_context(tenant: &str, id: KeyId) -> Vec<u8> {
    let place = Place::new("data key", tenant).text(&id.to_string());
    place.as_bytes().to_vec()
}

fn invalid(tenant: &str, why: &str) -> EncryptionError {
    EncryptionError::Keyring {
        tenant: tenant.to_owned(),
        why: why.to_owned(),
    }
}
