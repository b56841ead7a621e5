//! The long-term store: facts kept across threads.
//!
//! Items are JSON values under a namespace (a list of segments) and a key. A prefix matches whole
//! segments, byte for byte: `["acme"]` never finds `["acme-corp"]`.

mod memory;

pub use memory::MemoryStore;

use serde_json::Value as Json;

use crate::checkpoint::{BoxFuture, Page};
use crate::error::error_codes;
use crate::ids::Timestamp;

/// Keeps facts across threads.
pub trait Store: Send + Sync + 'static {
    /// The item under a key, unless it has expired. With [`Ttl::refresh_on_read`] this prolongs its life.
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>>;

    /// Stores an item, replacing what was under its key.
    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>>;

    /// Stores an item if what is under its key is what the caller last saw there: an equal value, or nothing
    /// (`None`; what has expired is nothing). Says whether it was stored. Comparing and storing are one step: of
    /// several who saw the same, one succeeds, and nothing is stored for the others.
    ///
    /// When the answer is lost it may have been stored: look before trying again.
    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>>;

    /// Deletes an item. Says whether it was there.
    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>>;

    /// Items below a namespace that pass every filter, newest change first. Expired ones are not found.
    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>>;

    /// The namespaces that have items, in order.
    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>>;

    /// Deletes what has expired. Gives how many.
    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>>;
}

/// What a store answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// A list of 1 to 16 segments, each 1 to 128 bytes of text without control characters or `.`, the first not `langgraph` nor empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Vec<String>);

impl Namespace {
    /// The most segments.
    pub const SEGMENTS_MAX: usize = 16;
    /// The longest segment, in bytes.
    pub const SEGMENT_BYTES_MAX: usize = 128;

    /// Checks and takes a namespace.
    pub fn new<T: Into<String>>(segments: impl IntoIterator<Item = T>) -> StoreResult<Self> {
        let segments: Vec<String> = segments.into_iter().map(Into::into).collect();
        let refuse = |why: &str| {
            Err(StoreError::Namespace {
                segments: segments.clone(),
                why: why.to_owned(),
            })
        };
        if segments.is_empty() || segments.len() > Self::SEGMENTS_MAX {
            return refuse("it needs 1 to 16 segments");
        }
        // The incumbent's server keeps its own items there; a client written for it expects the refusal.
        if segments[0] == "langgraph" {
            return refuse("the first segment `langgraph` is reserved");
        }
        for segment in &segments {
            if segment.is_empty() || segment.len() > Self::SEGMENT_BYTES_MAX {
                return refuse("a segment needs 1 to 128 bytes");
            }
            if segment.contains('.') || segment.chars().any(char::is_control) {
                return refuse("a segment has no `.` and no control characters");
            }
        }
        Ok(Self(segments))
    }

    /// The segments.
    pub fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether this is `prefix` or below it, by whole segments.
    pub fn starts_with(&self, prefix: &[String]) -> bool {
        self.0.starts_with(prefix)
    }
}

/// A stored fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Where.
    pub namespace: Namespace,
    /// Under which key.
    pub key: String,
    /// What. Any JSON value but `null`.
    pub value: Json,
    /// When it was first stored.
    pub created: Timestamp,
    /// When it was last stored.
    pub updated: Timestamp,
    /// When it goes.
    pub expires: Option<Timestamp>,
}

/// A fact on its way into the store.
#[derive(Debug, Clone, PartialEq)]
pub struct PutItem {
    /// Where.
    pub namespace: Namespace,
    /// Under which key: 1 to 256 bytes.
    pub key: String,
    /// What. Any JSON value but `null`.
    pub value: Json,
    /// How long it lives.
    pub ttl: Option<Ttl>,
}

/// How long an item lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// From its last write.
    pub ms: u64,
    /// And from its last read, too.
    pub refresh_on_read: bool,
}

/// What to look for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Search {
    /// Below this; empty for everywhere. Whole segments.
    pub prefix: Vec<String>,
    /// All of these hold.
    pub filters: Vec<ItemFilter>,
    /// Which page.
    pub page: Page,
}

/// A condition on one top-level field of an item's value.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemFilter {
    /// The field.
    pub field: String,
    /// How it compares.
    pub op: FilterOp,
    /// With what.
    pub value: Json,
}

/// How a field compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOp {
    /// Is equal, nested values included.
    Eq,
    /// Is there and not equal, or is not there.
    Ne,
    /// Is greater. Numbers compare with numbers, texts with texts; anything else does not match.
    Gt,
    /// Is greater or equal.
    Gte,
    /// Is less.
    Lt,
    /// Is less or equal.
    Lte,
}

impl ItemFilter {
    /// Whether an item's value passes.
    pub fn matches(&self, item: &Json) -> bool {
        let found = item.get(&self.field);
        match self.op {
            FilterOp::Eq => found == Some(&self.value),
            FilterOp::Ne => found != Some(&self.value),
            FilterOp::Gt => self.order(found) == Some(std::cmp::Ordering::Greater),
            FilterOp::Gte => matches!(
                self.order(found),
                Some(std::cmp::Ordering::Greater | std::cmp::Ordering::Equal)
            ),
            FilterOp::Lt => self.order(found) == Some(std::cmp::Ordering::Less),
            FilterOp::Lte => matches!(
                self.order(found),
                Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
            ),
        }
    }

    fn order(&self, found: Option<&Json>) -> Option<std::cmp::Ordering> {
        match (found?, &self.value) {
            (Json::Number(a), Json::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
            (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Which namespaces to list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamespaceQuery {
    /// Beginning with these; `*` stands for any one segment.
    pub prefix: Vec<String>,
    /// Ending with these; `*` stands for any one segment.
    pub suffix: Vec<String>,
    /// Cut after this many segments, then without repeats.
    pub depth_max: Option<usize>,
    /// Which page.
    pub page: Page,
}

impl NamespaceQuery {
    /// Whether a namespace is wanted.
    pub fn matches(&self, namespace: &Namespace) -> bool {
        let segments = namespace.segments();
        let fits = |pattern: &[String], part: &[String]| {
            pattern.iter().zip(part).all(|(p, s)| p == "*" || p == s)
        };
        segments.len() >= self.prefix.len()
            && segments.len() >= self.suffix.len()
            && fits(&self.prefix, segments)
            && fits(
                &self.suffix,
                &segments[segments.len() - self.suffix.len()..],
            )
    }

    /// The namespace as it is listed: cut to the wanted depth.
    pub fn cut(&self, namespace: &Namespace) -> Namespace {
        let depth = self.depth_max.unwrap_or(usize::MAX).max(1);
        Namespace(namespace.0.iter().take(depth).cloned().collect())
    }
}

/// The longest key of an item, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

impl PutItem {
    /// Refuses what no store takes.
    pub fn check(&self) -> StoreResult<()> {
        if self.key.is_empty() || self.key.len() > KEY_BYTES_MAX {
            return Err(StoreError::Key {
                bytes: self.key.len(),
            });
        }
        if self.value.is_null() {
            return Err(StoreError::NullValue {
                key: self.key.clone(),
            });
        }
        Ok(())
    }
}

/// Why the store cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not a namespace.
    #[error("{segments:?} is not a namespace: {why}")]
    Namespace {
        /// What was given.
        segments: Vec<String>,
        /// Why not.
        why: String,
    },
    /// Not a key.
    #[error("a key has 1 to 256 bytes, not {bytes}")]
    Key {
        /// How many it had.
        bytes: usize,
    },
    /// `null` is how absence is written.
    #[error("the value of `{key}` is null; delete the item instead")]
    NullValue {
        /// The key.
        key: String,
    },
    /// The stored bytes of an item are not those that were written.
    #[error(
        "the item `{key}` in {namespace:?} is damaged: its stored bytes do not match their checksum; restore a backup, or delete the item and write it again"
    )]
    Damaged {
        /// The namespace, as far as it can be read.
        namespace: Vec<String>,
        /// The key, as far as it can be read.
        key: String,
    },
    /// The database file underneath is damaged. The same call will fail again.
    #[error("the database is damaged: {why}")]
    DatabaseDamaged {
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The database underneath.
    #[error("the store did not answer")]
    Store {
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Returns the checksum that a store keeps with an item: a CRC-32 over the namespace, the key and the value as they are
/// stored, each with its length. A value that was changed and a value that was moved to another key both fail it. It
/// guards against damage; anyone with write access to the database can also write a checksum.
pub fn item_checksum(namespace: &[u8], key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [namespace, key, value] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

error_codes!(StoreError {
    Namespace => "store-namespace",
    Key => "store-key",
    NullValue => "store-null-value",
    Damaged => "store-damaged",
    DatabaseDamaged => "store-database-damaged",
    Store => "store-unavailable",
});
