//! Keys and stores for tests.

use std::sync::Arc;

use superstep_core::Checkpointer;
use superstep_core::checkpoint::{CheckpointResult, Memory};
use superstep_core::error::CheckpointError;
use superstep_core::store::{MemoryStore, Store};
use superstep_encryption::{
    EncryptedCheckpointer, EncryptedStore, Encryption, EncryptionError, LocalKeys, SearchableFields,
};

/// The key of every test that needs no other.
pub(crate) const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f1";
pub(crate) const OTHER_KEY: &str =
    "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f91";

pub(crate) fn encryption(store: Arc<dyn Store>) -> Encryption {
    Encryption::new(LocalKeys::from_text(KEY).unwrap(), store)
}

/// Stores in memory, plain and wrapped.
pub(crate) struct Kit {
    pub(crate) plain: Memory,
    pub(crate) plain_store: Arc<MemoryStore>,
    pub(crate) encryption: Encryption,
    pub(crate) db: EncryptedCheckpointer,
    pub(crate) store: EncryptedStore,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(Memory::new(), Arc::new(MemoryStore::new()), |with| with)
    }

    /// Another process on the same data: it has read no keys yet.
    pub(crate) fn again(&self, change: impl FnOnce(Encryption) -> Encryption) -> Self {
        Self::with(self.plain.clone(), self.plain_store.clone(), change)
    }

    /// Another process on the same data, with these keys.
    pub(crate) fn with_keys(&self, keys: &str) -> Self {
        let keys = LocalKeys::from_text(keys).unwrap();
        self.again(|_| Encryption::new(keys, self.plain_store.clone()))
    }

    fn with(
        plain: Memory,
        plain_store: Arc<MemoryStore>,
        change: impl FnOnce(Encryption) -> Encryption,
    ) -> Self {
        let encryption = change(encryption(plain_store.clone()));
        let inner: Arc<dyn Checkpointer> = Arc::new(plain.clone());
        Self {
            db: EncryptedCheckpointer::new(inner, encryption.clone()),
            store: EncryptedStore::new(plain_store.clone(), encryption.clone()),
            plain,
            plain_store,
            encryption,
        }
    }
}

pub(crate) fn searchable(fields: &[&str]) -> SearchableFields {
    SearchableFields::new(fields.iter().copied())
}

/// Returns the code of the encryption's error inside of a checkpointer's.
pub(crate) fn code<T>(result: CheckpointResult<T>) -> &'static str {
    match result {
        Ok(_) => "done",
        Err(CheckpointError::Encryption { source }) => {
            let error: &EncryptionError = source.downcast_ref().unwrap();
            error.code()
        }
        Err(error) => error.code(),
    }
}
