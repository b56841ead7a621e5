//! Erasing a tenant by destroying its keys, and the receipt of it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use superstep_core::Timestamp;
use superstep_core::store::Store;

use crate::cipher::{KeyId, to_hex};
use crate::encryption::{Encryption, now};
use crate::error::EncryptionError;
use crate::keyring::{self, Keyring};

/// Says that the keys of a tenant were destroyed. Stored in place of the keys, and returned to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureReceipt {
    /// The tenant; empty for the unnamed one.
    pub tenant: String,
    /// When its keys were destroyed, in milliseconds since 1970.
    pub at_ms: i64,
    /// Ids of the data keys that were destroyed. What is encrypted names one of them.
    pub keys: Vec<KeyId>,
    /// SHA-256 over the wrapped keys as they were stored, as hexadecimal digits: which ones they were, without giving them away.
    pub wrapped_sha256: String,
}

/// Destroys the data keys of a tenant that are in this store, and returns the receipt; `None` if the tenant has no keys. Needs no key
/// itself. A process that has an [`Encryption`] calls [`Encryption::erase_tenant`] instead.
pub async fn destroy_keys(
    store: &dyn Store,
    tenant: &str,
) -> Result<Option<ErasureReceipt>, EncryptionError> {
    loop {
        let now = now();
        let Some((stored, keyring)) = keyring::load(store, tenant, now).await? else {
            return Ok(None);
        };
        let Some(receipt) = receipt(tenant, &keyring, now) else {
            return Ok(None);
        };
        let mut erased = keyring.erased;
        erased.push(receipt.clone());
        let left = Keyring::erased(tenant, erased);
        if keyring::replace(store, tenant, Some(&stored), &left, now).await? {
            return Ok(Some(receipt));
        }
    }
}

impl Encryption {
    /// Destroys the data keys of a tenant: everything of it that is encrypted, in the database, its replicas, dumps and backups, can no
    /// longer be decrypted. Returns the receipt; `None` if the tenant has no keys. Delete its rows first: what is left cannot be read,
    /// and a call that spans tenants and finds it fails.
    ///
    /// Other processes forget the keys within [`Encryption::KEYS_CACHED`]. A copy of the database from before has the wrapped keys, which
    /// the key-encryption key opens: what is in that copy is gone when the copy is, or when the key-encryption key was replaced
    /// ([`Encryption::rewrap`]) and destroyed.
    ///
    /// If the tenant writes again, it gets new keys.
    pub async fn erase_tenant(
        &self,
        tenant: &str,
    ) -> Result<Option<ErasureReceipt>, EncryptionError> {
        let receipt = destroy_keys(self.store(), tenant).await;
        self.forget(tenant);
        receipt
    }

    /// Returns the receipts of all times that the tenant's keys were destroyed, oldest first.
    pub async fn erasures(&self, tenant: &str) -> Result<Vec<ErasureReceipt>, EncryptionError> {
        let keyring = self.stored_keyring(tenant).await?;
        Ok(keyring.map_or_else(Vec::new, |(_, keyring)| keyring.erased))
    }
}

/// Returns the receipt for the keys that are there; `None` if there are none.
fn receipt(tenant: &str, keyring: &Keyring, now: Timestamp) -> Option<ErasureReceipt> {
    let root = keyring.root.as_ref()?;
    let mut hash = Sha256::new();
    let wrapped = keyring.keys.iter().map(|key| &key.wrapped);
    for wrapped in std::iter::once(root).chain(wrapped) {
        hash.update((wrapped.bytes.len() as u64).to_le_bytes());
        hash.update(&wrapped.bytes);
    }
    Some(ErasureReceipt {
        tenant: tenant.to_owned(),
        at_ms: now.0,
        keys: keyring.keys.iter().map(|key| key.id).collect(),
        wrapped_sha256: to_hex(&hash.finalize()),
    })
}
