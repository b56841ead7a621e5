//! Encryption at rest for Superstep: what users write is ciphertext in the database, its log, its replicas, dumps and backups.
//!
//! Each tenant has data keys of its own, drawn at random. They are in the database, wrapped by a key-encryption key that is not: it is
//! in a file, in an environment variable, or in a key service ([`KeyEncryption`]). A person who has only the database reads nothing; a
//! tenant is erased, in every copy of the database, by destroying its data keys ([`Encryption::erase_tenant`]).
//!
//! The wrappers take the place of what they wrap, so stores and drivers know nothing of encryption:
//!
//! | wrapper | encrypts |
//! | --- | --- |
//! | [`EncryptedCheckpointer`] | entries, snapshots, records, interrupts, answers and who gave them, metadata, listed states |
//! | [`EncryptedStore`] | the values of items |
//! | [`EncryptedRegistry`] | requests, arguments, metadata and errors of runs; configurations, contexts and descriptions of assistants; arguments and metadata of crons; addresses and bodies of deliveries |
//! | [`EncryptedRequestQueue`] | requests and replies on their way to the workers of a cluster |
//! | [`EncryptedLiveBus`] | what nodes show, on its way through a bus such as Redis |
//! | [`EncryptedNodeCache`] | cached results, and what they were computed from |
//!
//! ```
//! use std::sync::Arc;
//!
//! use superstep_core::checkpoint::Memory;
//! use superstep_core::store::MemoryStore;
//! use superstep_encryption::{
//!     EncryptedCheckpointer, EncryptedStore, Encryption, LocalKeys, SearchableFields,
//! };
//!
//! # let text = LocalKeys::generate()?;
//! let keys = LocalKeys::from_text(&text)?; // from a file, for instance
//! let store = Arc::new(MemoryStore::new());
//! let encryption = Encryption::new(keys, store.clone()).with_searchable(SearchableFields::new(["owner"]));
//! let checkpointer = EncryptedCheckpointer::new(Arc::new(Memory::new()), encryption.clone());
//! let store = EncryptedStore::new(store, encryption);
//! # let _ = (checkpointer, store);
//! # Ok::<(), superstep_encryption::EncryptionError>(())
//! ```
//!
//! # What stays in clear
//!
//! What stores compare, sort or join by: ids and names of tenants, threads, tasks, runs and interrupts; the keys of steps; names of
//! graphs; statuses, numbers, times, lifetimes, deadlines and sizes; that an interrupt expired; namespaces and keys of items; names of
//! assistants and of callers, idempotency keys, schedules of crons and names of events; the audit log, which has to outlive its tenant's
//! keys; and the fields that are declared as searchable ([`SearchableFields`]). Do not put secrets into them.
//!
//! # What it is against, and what not
//!
//! Against an attacker who gets a copy of the database, or can change it: content stays secret, and what was changed or moved to another
//! thread, number, key or tenant is refused with an error. Not against an attacker who reads the memory of a process that has the keys,
//! and not against the replay of an older version of the *same* thing in the same place, or of the whole database: nothing outside of the
//! database remembers which version is the newest. The cipher and its nonces are explained in `cipher.rs`.
//!
//! # In the book
//!
//! The pages are in `docs/` of the repository. These links lead to them where `cargo xtask book` has built the book next to this
//! documentation.
//!
//! - [Encrypt at rest](../../book/html/docs/howto/encrypt-at-rest.html)
//! - [The stored format](../../book/html/docs/stored-format.html)
//! - [Back up and restore](../../book/html/docs/howto/back-up-and-restore.html)

mod body;
mod checkpointer;
mod cipher;
mod encryption;
mod erasure;
mod error;
mod fields;
mod key_encryption;
mod keyring;
mod live_bus;
mod node_cache;
mod registry;
mod request_queue;
mod store;

pub use checkpointer::EncryptedCheckpointer;
pub use cipher::{KEY_BYTES, KeyId};
pub use encryption::{Encryption, PlainData, RewrappedKeys, check_unencrypted};
pub use erasure::{ErasureReceipt, destroy_keys};
pub use error::EncryptionError;
pub use fields::SearchableFields;
pub use key_encryption::{KeyEncryption, LocalKeys, SecretKey, UnwrappedKey, WrappedKey};
pub use keyring::is_reserved_tenant;
pub use live_bus::EncryptedLiveBus;
pub use node_cache::EncryptedNodeCache;
pub use registry::EncryptedRegistry;
pub use request_queue::EncryptedRequestQueue;
pub use store::EncryptedStore;
