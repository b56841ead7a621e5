//! The key under which a call is reserved and settled.

use std::fmt;

use serde::{Deserialize, Serialize};
use superstep_core::NodeCx;

/// Key of a call: 1 to 128 printable ASCII characters without spaces, the same whenever the same call is repeated.
///
/// Threads of a tenant share its account, so a key must be unique across all of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(String);

impl CallKey {
    /// Maximum length of a key, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// Validates a key.
    pub fn new(key: &str) -> Result<Self, CallKeyError> {
        let is_key = (1..=Self::BYTES_MAX).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_graphic());
        if is_key {
            Ok(Self(key.to_owned()))
        } else {
            Err(CallKeyError::of(key))
        }
    }

    /// Returns the key of a call that a node makes: the same across retries, resumes and workers, different on a fork, and
    /// unique to the task. A node that makes several calls passes a different `call` for each.
    pub fn of(cx: &NodeCx, call: &str) -> Self {
        Self(cx.effect_key(call))
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Error for a text that is not a valid call key.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is not the key of a call: use 1 to 128 printable ASCII characters")]
#[non_exhaustive]
pub struct CallKeyError {
    /// The rejected text, shortened to 80 characters.
    pub name: String,
}

impl CallKeyError {
    /// The only code of this error.
    pub const CODES: &'static [&'static str] = &["name-call-key"];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        Self::CODES[0]
    }

    fn of(key: &str) -> Self {
        const CHARS_MAX: usize = 80;
        let mut name: String = key.chars().take(CHARS_MAX).collect();
        if name.len() < key.len() {
            name.push('…');
        }
        Self { name }
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for CallKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CallKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        CallKey::new(&key).map_err(serde::de::Error::custom)
    }
}
