//! Keys that wrap keys: the trait for a key service, and keys of a file or an environment variable.
//!
//! A key-encryption key never touches data. It wraps a few data keys per tenant, so replacing it costs one small write per tenant, and
//! it may stay in a service that never gives it out.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use superstep_core::checkpoint::BoxFuture;
use zeroize::Zeroizing;

use crate::cipher::{self, KEY_BYTES, Secret, from_hex, from_text, to_hex, to_text};
use crate::error::EncryptionError;

/// A secret data key, as it is given to a [`KeyEncryption`]. Overwritten in memory when it is dropped.
pub type SecretKey = Zeroizing<[u8; KEY_BYTES]>;

/// A data key in its stored form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrappedKey {
    /// Id of the key-encryption key, see [`KeyEncryption::current`].
    pub by: String,
    /// What the key-encryption key made of the data key.
    #[serde(with = "as_text")]
    pub bytes: Vec<u8>,
}

/// Wraps data keys and unwraps them: with keys in memory ([`LocalKeys`]), or by calls to a key service.
///
/// The `context` of a key is public and bound to it: unwrapping with another one has to fail. Services call it additional
/// authenticated data or an encryption context.
pub trait KeyEncryption: Send + Sync + 'static {
    /// Returns the id of the key that wraps new data keys. What another one has wrapped is wrapped again by
    /// [`Encryption::rewrap`](crate::Encryption::rewrap).
    fn current(&self) -> String;

    /// Wraps a data key with the current key.
    ///
    /// An error is [`EncryptionError::KeyService`] if a retry may succeed.
    fn wrap<'a>(
        &'a self,
        key: &'a SecretKey,
        context: &'a [u8],
    ) -> BoxFuture<'a, Result<WrappedKey, EncryptionError>>;

    /// Unwraps a data key. Returns `None` if the key with this id is not known, and [`UnwrappedKey::Refused`] if the bytes or the
    /// context are not those that were wrapped.
    fn unwrap<'a>(
        &'a self,
        wrapped: &'a WrappedKey,
        context: &'a [u8],
    ) -> BoxFuture<'a, Result<UnwrappedKey, EncryptionError>>;
}

/// What [`KeyEncryption::unwrap`] found.
pub enum UnwrappedKey {
    /// The data key.
    Key(SecretKey),
    /// The key with this id is not known here.
    Unknown,
    /// The bytes or the context are not those that were wrapped.
    Refused,
}

impl fmt::Debug for UnwrappedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(..)",
            Self::Unknown => "Unknown",
            Self::Refused => "Refused",
        })
    }
}

/// Key-encryption keys in the memory of this process, from a file or an environment variable.
///
/// The first one wraps new data keys; the others only unwrap. To replace a key, put the new one in front, restart every process, wrap
/// everything again ([`Encryption::rewrap`](crate::Encryption::rewrap)), and remove the old one.
pub struct LocalKeys {
    /// Newest first.
    keys: Vec<(String, Secret)>,
}

impl LocalKeys {
    /// Reads keys from text: one per line, of 64 hexadecimal digits, the newest first. Skips empty lines and those that begin
    /// with `#`.
    ///
    /// ```
    /// use superstep_encryption::LocalKeys;
    ///
    /// let keys = LocalKeys::from_text("# 2026-11\n5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592\n")?;
    /// assert_eq!(keys.ids().count(), 1);
    /// # Ok::<(), superstep_encryption::EncryptionError>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, EncryptionError> {
        let refuse = |why: String| Err(EncryptionError::KeyText { why });
        let mut keys: Vec<(String, Secret)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = Zeroizing::new(from_hex(line).unwrap_or_default());
            let Ok(key) = <[u8; KEY_BYTES]>::try_from(bytes.as_slice()) else {
                return refuse(format!("line {} is not a key", number + 1));
            };
            let key = Zeroizing::new(key);
            // What `/dev/zero` or a placeholder gives.
            if key.iter().all(|byte| *byte == key[0]) {
                return refuse(format!("the key in line {} is not random", number + 1));
            }
            let id = id_of(&key);
            if keys.iter().any(|(other, _)| *other == id) {
                return refuse(format!("the key in line {} is there twice", number + 1));
            }
            keys.push((id, key));
        }
        if keys.is_empty() {
            return refuse("there is none".to_owned());
        }
        Ok(Self { keys })
    }

    /// Draws a key, as a line for [`LocalKeys::from_text`].
    pub fn generate() -> Result<Zeroizing<String>, EncryptionError> {
        Ok(Zeroizing::new(to_hex(&cipher::random_secret()?[..])))
    }

    /// Returns the ids of the keys, newest first. An id is a hash, and public.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(id, _)| id.as_str())
    }
}

/// Returns the id of a key: the beginning of a hash, so that people can compare keys without showing them.
fn id_of(key: &Secret) -> String {
    let mut hash = Sha256::new();
    hash.update(b"superstep 1: id of a key-encryption key");
    hash.update(&key[..]);
    to_hex(&hash.finalize()[..8])
}

impl KeyEncryption for LocalKeys {
    fn current(&self) -> String {
        self.keys[0].0.clone()
    }

    fn wrap<'a>(
        &'a self,
        key: &'a SecretKey,
        context: &'a [u8],
    ) -> BoxFuture<'a, Result<WrappedKey, EncryptionError>> {
        let (id, with) = &self.keys[0];
        Box::pin(async move {
            Ok(WrappedKey {
                by: id.clone(),
                bytes: cipher::wrap(&wrapping(with), context, key)?,
            })
        })
    }

    fn unwrap<'a>(
        &'a self,
        wrapped: &'a WrappedKey,
        context: &'a [u8],
    ) -> BoxFuture<'a, Result<UnwrappedKey, EncryptionError>> {
        Box::pin(async move {
            let Some((_, with)) = self.keys.iter().find(|(id, _)| *id == wrapped.by) else {
                return Ok(UnwrappedKey::Unknown);
            };
            let key = cipher::unwrap(&wrapping(with), context, &wrapped.bytes);
            Ok(key.map_or(UnwrappedKey::Refused, UnwrappedKey::Key))
        })
    }
}

fn wrapping(key: &Secret) -> Secret {
    cipher::derive(key, b"superstep 1: wrap")
}

impl fmt::Debug for LocalKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::to_text(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        super::from_text(&text).ok_or_else(|| serde::de::Error::custom("not base64"))
    }
}

#[cfg(test)]
mod tests {
    use superstep_conformance::block_on;

    use super::*;

    #[test]
    fn keys_are_read_from_text_and_nothing_else_is() {
        let (one, two) = (
            LocalKeys::generate().unwrap(),
            LocalKeys::generate().unwrap(),
        );
        let text = format!("# newest\n{}\n\n  {}  \n", one.as_str(), two.as_str());
        let keys = LocalKeys::from_text(&text).unwrap();
        assert_eq!(keys.ids().count(), 2);
        assert_eq!(keys.current(), keys.ids().next().unwrap());
        let twice = format!("{}\n{}", one.as_str(), one.to_uppercase());
        let long = format!("{}00", one.as_str());
        let (zeros, accents) = ("00".repeat(32), "é".repeat(32));
        for (text, why) in [
            ("", "there is none"),
            ("# nothing\n", "there is none"),
            ("secret", "line 1 is not a key"),
            (&one[..63], "line 1 is not a key"),
            (long.as_str(), "line 1 is not a key"),
            (zeros.as_str(), "line 1 is not random"),
            (twice.as_str(), "line 2 is there twice"),
            (accents.as_str(), "line 1 is not a key"),
        ] {
            let error = LocalKeys::from_text(text).unwrap_err();
            assert_eq!(error.code(), "encryption-key-text");
            let words = why.split(' ').all(|word| error.to_string().contains(word));
            assert!(words, "{error}");
            assert!(!error.to_string().contains(&one[..8]), "shows the key");
        }
        assert!(!format!("{keys:?}").contains(&one[..8]));
    }

    #[test]
    fn a_data_key_is_unwrapped_by_its_key_in_its_context_and_by_nothing_else() {
        let text = |keys: &[&str]| LocalKeys::from_text(&keys.join("\n")).unwrap();
        let (one, two) = (
            LocalKeys::generate().unwrap(),
            LocalKeys::generate().unwrap(),
        );
        let old = text(&[&one]);
        let secret = cipher::random_secret().unwrap();
        let wrapped = block_on(old.wrap(&secret, b"acme")).unwrap();
        let open = |keys: &LocalKeys, wrapped: &WrappedKey, context: &[u8]| {
            let found = block_on(keys.unwrap(wrapped, context)).unwrap();
            match found {
                UnwrappedKey::Key(key) => {
                    assert!(key == secret);
                    "key"
                }
                UnwrappedKey::Unknown => "unknown",
                UnwrappedKey::Refused => "refused",
            }
        };
        assert_eq!(open(&old, &wrapped, b"acme"), "key");
        assert_eq!(open(&text(&[&two, &one]), &wrapped, b"acme"), "key");
        assert_eq!(open(&text(&[&two]), &wrapped, b"acme"), "unknown");
        assert_eq!(open(&old, &wrapped, b"evil"), "refused");
        let mut changed = wrapped.clone();
        changed.bytes[30] ^= 1;
        assert_eq!(open(&old, &changed, b"acme"), "refused");
        changed.bytes.truncate(10);
        assert_eq!(open(&old, &changed, b"acme"), "refused");
    }
}
