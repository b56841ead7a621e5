//! What can go wrong with keys and with encrypted data, each with a code and a page.
//!
//! A caller of a wrapped store gets these inside of the store's own error. Only what a retry can settle becomes an error that the
//! driver retries: a database or a key service that does not answer.

use superstep_core::error::{CheckpointError, FormatError};
use superstep_core::store::StoreError;

use crate::cipher::KeyId;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why something cannot be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionError {
    /// Something of a tenant is encrypted, and the tenant has no keys.
    #[error(
        "tenant `{tenant}` has no data keys, and its data is encrypted; restore the keys from a backup of the database"
    )]
    NoKeys {
        /// The tenant; empty for the unnamed one.
        tenant: String,
    },
    /// The tenant's keys were destroyed on purpose.
    #[error(
        "the data keys of tenant `{tenant}` were destroyed; what was encrypted with them cannot be read again"
    )]
    Erased {
        /// The tenant; empty for the unnamed one.
        tenant: String,
    },
    /// Something is encrypted with a data key that the tenant does not have.
    #[error(
        "tenant `{tenant}` has no data key `{key}`, with which its data is encrypted; the key is retired, or the keys are those of an older backup"
    )]
    UnknownKey {
        /// The tenant; empty for the unnamed one.
        tenant: String,
        /// Id of the missing key.
        key: KeyId,
    },
    /// The tenant's data keys are wrapped by a key that this process was not given.
    #[error(
        "the data keys of tenant `{tenant}` are wrapped by key `{wanted}`, which is not among the given ones; add it to the keys of this process"
    )]
    KeyEncryptionKey {
        /// The tenant; empty for the unnamed one.
        tenant: String,
        /// Id of the key that wrapped them.
        wanted: String,
    },
    /// Encrypted data was changed, or belongs elsewhere.
    #[error(
        "{what} cannot be decrypted: it was changed, or moved from another place; restore it from a backup"
    )]
    Refused {
        /// What it is.
        what: String,
    },
    /// Data that has to be encrypted is not.
    #[error(
        "{what} is not encrypted, and this process accepts encrypted data only; it was written without encryption, or planted"
    )]
    Plain {
        /// What it is.
        what: String,
    },
    /// The stored keys of a tenant are not as they were written.
    #[error(
        "the stored data keys of tenant `{tenant}` cannot be used: {why}; restore them from a backup"
    )]
    Keyring {
        /// The tenant; empty for the unnamed one.
        tenant: String,
        /// What is wrong with them.
        why: String,
    },
    /// The text with the key-encryption keys is not valid.
    #[error(
        "the key-encryption keys cannot be used: {why}; write one key of 64 hexadecimal digits per line, the newest first"
    )]
    KeyText {
        /// What is wrong with the text. Never a part of it.
        why: String,
    },
    /// A search compares a field that is encrypted.
    #[error("field `{field}` is encrypted and cannot be searched; declare it as searchable")]
    NotSearchable {
        /// Name of the field.
        field: String,
    },
    /// The call names the part of the store that holds the keys.
    #[error("tenant `{tenant}` is reserved for data keys")]
    Reserved {
        /// Name of the reserved tenant.
        tenant: String,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes for a key")]
    Entropy,
    /// The key service did not answer. A retry may succeed.
    #[error("the key service did not answer")]
    KeyService {
        /// Error of the service.
        #[source]
        source: BoxError,
    },
    /// The data in the database is encrypted, and this process was given no key.
    #[error(
        "this database is encrypted, and this process was given no key-encryption key; give it the key of the processes that wrote the data"
    )]
    NoKeyGiven,
    /// The database was in use without encryption.
    #[error(
        "this database has data that is not encrypted, which a process with a key refuses; begin with an empty database, or accept plain data"
    )]
    PlainDatabase,
    /// The database could not be looked at.
    #[error("the database could not be read")]
    Database {
        /// Error of the checkpointer.
        #[source]
        source: Box<CheckpointError>,
    },
    /// The store that holds the keys failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored bytes around the encrypted ones are not as they should be.
    #[error(transparent)]
    Format(#[from] FormatError),
}

macro_rules! codes {
    ($($variant:ident => $code:literal),* $(,)?) => {
        impl EncryptionError {
            /// Every code of this error, each with a page in the error index.
            pub const CODES: &'static [&'static str] = &[$($code),*];

            /// Returns the stable code of this error: the name of its page in the error index.
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $code,)*
                    Self::Database { source } => source.code(),
                    Self::Store(source) => source.code(),
                    Self::Format(source) => source.code(),
                }
            }
        }
    };
}

codes! {
    NoKeys => "encryption-no-keys",
    Erased => "encryption-erased",
    UnknownKey => "encryption-unknown-key",
    KeyEncryptionKey => "encryption-key-encryption-key",
    Refused => "encryption-refused",
    Plain => "encryption-plain",
    Keyring => "encryption-keyring",
    KeyText => "encryption-key-text",
    NotSearchable => "encryption-not-searchable",
    Reserved => "encryption-reserved",
    Entropy => "encryption-entropy",
    KeyService => "encryption-key-service",
    NoKeyGiven => "encryption-no-key-given",
    PlainDatabase => "encryption-plain-database",
}

impl EncryptionError {
    /// Whether the same call may succeed when it is retried.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::KeyService { .. } | Self::Store(StoreError::Store { .. }) => true,
            Self::Database { source } => source.is_transient(),
            _ => false,
        }
    }
}

impl From<EncryptionError> for CheckpointError {
    fn from(error: EncryptionError) -> Self {
        match error {
            EncryptionError::Format(error) => Self::Format(error),
            error @ EncryptionError::NotSearchable { .. } => Self::Query {
                why: error.to_string(),
            },
            error if error.is_transient() => Self::store(error),
            error => Self::Encryption {
                source: error.into(),
            },
        }
    }
}

impl From<EncryptionError> for StoreError {
    fn from(error: EncryptionError) -> Self {
        match error {
            EncryptionError::Store(error) => error,
            error if error.is_transient() => Self::Store {
                source: error.into(),
            },
            error => Self::Encryption {
                source: error.into(),
            },
        }
    }
}
