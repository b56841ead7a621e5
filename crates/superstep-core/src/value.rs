//! Encoded values: JSON bytes behind a codec byte.
//!
//! Everything that is stored or crosses a process is one of these. Encoding refuses a value that could not be read back: a
//! number that is not finite, a key that is not text, nesting beyond the reader's limit.

mod json;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ValueError;
use crate::label::Floor;
use crate::scratch::with_scratch;
use json::NotFinite;

/// A value in its stored form: one codec byte, then its bytes. Cheap to clone.
///
/// ```
/// use superstep_core::Value;
///
/// let value = Value::encode(&vec![1, 2, 3])?;
/// assert_eq!(value.json()?, b"[1,2,3]");
/// assert_eq!(value.decode::<Vec<u8>>()?, [1, 2, 3]);
/// # Ok::<(), superstep_core::error::ValueError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Arc<[u8]>);

/// Result of encoding a value.
pub(crate) struct Encoded<T> {
    pub(crate) value: Value,
    /// What a reader of the bytes will see.
    pub(crate) read_back: T,
    /// Labels that every labeled value inside has.
    pub(crate) floor: Floor,
}

const CODEC_JSON: u8 = 1;

impl Value {
    /// Encodes a value, and checks that it can be read back as the same type.
    pub fn encode<T: Serialize + DeserializeOwned>(value: &T) -> Result<Self, ValueError> {
        Self::encode_and_read_back(value).map(|encoded| encoded.value)
    }

    /// Encodes a value as plain JSON, readable without its type.
    pub fn plain<T: Serialize + ?Sized>(value: &T) -> Result<Self, ValueError> {
        // Checked before the conversion to JSON, which turns numbers that are not finite into null.
        with_scratch(|bytes| json::write(bytes, value, NotFinite::Refuse))?;
        let mut json = serde_json::to_value(value).map_err(|source| ValueError::Encode {
            source: source.into(),
        })?;
        // Requests are compared by their bytes, and any crate of a program can enable the feature of `serde_json` that keeps
        // fields in the order in which they were written.
        json.sort_all_objects();
        Self::encode(&json)
    }

    /// Encodes a value, and returns also what a reader of the bytes will see, which the caller should use from here on.
    pub(crate) fn encode_and_read_back<T: Serialize + DeserializeOwned>(
        value: &T,
    ) -> Result<Encoded<T>, ValueError> {
        let (value, floor) = Self::encode_checked(value)?;
        let read_back = value.decode()?;
        Ok(Encoded {
            value,
            read_back,
            floor,
        })
    }

    /// Encodes a value of a type that is known to read back, if JSON can hold it.
    pub(crate) fn encode_checked<T: Serialize>(value: &T) -> Result<(Self, Floor), ValueError> {
        Self::encode_as(value, NotFinite::Refuse)
    }

    /// Encodes a value that was decoded before, so it is known to survive.
    pub(crate) fn encode_unchecked<T: Serialize>(value: &T) -> Result<Self, ValueError> {
        Self::encode_as(value, NotFinite::WriteNull).map(|(value, _)| value)
    }

    fn encode_as<T: Serialize>(
        value: &T,
        not_finite: NotFinite,
    ) -> Result<(Self, Floor), ValueError> {
        with_scratch(|bytes| {
            bytes.push(CODEC_JSON);
            let floor = json::write(bytes, value, not_finite)?;
            Ok((Self(bytes.as_slice().into()), floor))
        })
    }

    /// Encodes a value that was decoded before, unless it is longer than this, codec included. Stops at that length, so the
    /// cost does not grow with the value.
    pub(crate) fn encode_short<T: Serialize>(value: &T, bytes_max: usize) -> Option<Self> {
        with_scratch(|bytes| {
            bytes.push(CODEC_JSON);
            json::write_short(bytes, value, bytes_max).then(|| Self(bytes.as_slice().into()))
        })
    }

    /// Decodes the value as a type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        serde_json::from_slice(self.json()?).map_err(|source| ValueError::Decode {
            source: source.into(),
        })
    }

    /// Wraps JSON text from outside. It is checked when it is decoded.
    pub fn from_json_bytes(json: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(json.len() + 1);
        bytes.push(CODEC_JSON);
        bytes.extend_from_slice(json);
        Self(bytes.into())
    }

    /// Returns the JSON text inside. Fails for an unknown codec.
    pub fn json(&self) -> Result<&[u8], ValueError> {
        match self.0.split_first() {
            Some((&CODEC_JSON, json)) => Ok(json),
            Some((&codec, _)) => Err(ValueError::Codec { codec }),
            None => Err(ValueError::Codec { codec: 0 }),
        }
    }

    /// Returns the size in bytes, codec included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes at all, not even a codec. A stored value never is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all bytes, codec first, for a store to keep.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Wraps bytes that a store kept. They are checked when they are decoded.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }
}

/// The value as JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.json() {
            Ok(json) => write!(f, "{}", String::from_utf8_lossy(json)),
            Err(_) => write!(f, "Value({} bytes)", self.0.len()),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Value, E> {
                Ok(Value::from_bytes(bytes))
            }
            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Value, E> {
                Ok(Value::from_bytes(bytes))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}
