//! The long-term store: facts kept across threads.
//!
//! Items are JSON values under a namespace (a list of segments) and a key. A prefix matches whole segments, byte for byte:
//! `["acme"]` never finds `["acme-corp"]`.
//!
//! Every namespace belongs to a tenant, and so does every search: no call spans tenants, except [`Store::sweep`]. What nodes use
//! is bound to the tenant of their thread by a [`TenantStore`].

mod memory;
mod tenant;

pub use memory::MemoryStore;
pub use tenant::TenantStore;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::checkpoint::{BoxFuture, Page};
use crate::error::error_codes;
use crate::ids::{Timestamp, is_tenant};

/// Stores facts across threads.
pub trait Store: Send + Sync + 'static {
    /// Returns the item under a key, unless it has expired. With [`Ttl::refresh_on_read`], this extends its life.
    fn get<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Option<Item>>>;

    /// Stores an item, and replaces what was under its key.
    fn put<'a>(&'a self, put: &'a PutItem, now: Timestamp) -> BoxFuture<'a, StoreResult<()>>;

    /// Stores an item if the value under its key is still the one that the caller last saw there: an equal value, or nothing
    /// (`None`; an expired item counts as nothing). Returns whether it was stored. Comparing and storing are atomic: of several
    /// callers that saw the same value, one succeeds, and nothing is stored for the others.
    ///
    /// After an error the item may have been stored: read it before you retry.
    fn put_if<'a>(
        &'a self,
        seen: Option<&'a Json>,
        put: &'a PutItem,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<bool>>;

    /// Deletes an item. Returns whether it existed.
    fn delete<'a>(
        &'a self,
        namespace: &'a Namespace,
        key: &'a str,
    ) -> BoxFuture<'a, StoreResult<bool>>;

    /// Returns the items below a namespace that pass every filter, most recently changed first. Expired items are left out.
    fn search<'a>(
        &'a self,
        search: &'a Search,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Item>>>;

    /// Returns the namespaces that have items, in order.
    fn namespaces<'a>(
        &'a self,
        query: &'a NamespaceQuery,
        now: Timestamp,
    ) -> BoxFuture<'a, StoreResult<Vec<Namespace>>>;

    /// Deletes at most `limit` expired items, of any tenant. Returns how many.
    fn sweep(&self, now: Timestamp, limit: u32) -> BoxFuture<'_, StoreResult<u64>>;
}

/// Result of a call to the store.
pub type StoreResult<T> = Result<T, StoreError>;

/// A tenant, and a list of 1 to 16 segments, each 1 to 128 bytes of text without control characters or `.`. The first must not
/// be `langgraph`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    tenant: Arc<str>,
    segments: Vec<String>,
}

impl Namespace {
    /// Highest number of segments.
    pub const SEGMENTS_MAX: usize = 16;
    /// Longest segment, in bytes.
    pub const SEGMENT_BYTES_MAX: usize = 128;

    /// Checks the segments and creates a namespace of the unnamed tenant.
    pub fn new<T: Into<String>>(segments: impl IntoIterator<Item = T>) -> StoreResult<Self> {
        Self::of_tenant("", segments)
    }

    /// Checks the segments and creates a namespace of a tenant. The empty tenant is the unnamed one.
    pub fn of_tenant<T: Into<String>>(
        tenant: &str,
        segments: impl IntoIterator<Item = T>,
    ) -> StoreResult<Self> {
        let segments: Vec<String> = segments.into_iter().map(Into::into).collect();
        let refuse = |why: &str| {
            Err(StoreError::Namespace {
                segments: segments.clone(),
                why: why.to_owned(),
            })
        };
        // The stores rely on it: a tenant never contains the characters that separate it from the segments.
        if !is_tenant(tenant) {
            return refuse("its tenant is not a valid name");
        }
        if segments.is_empty() || segments.len() > Self::SEGMENTS_MAX {
            return refuse("it needs 1 to 16 segments");
        }
        // LangGraph's server keeps its own items there; a client written for it expects the refusal.
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
        Ok(Self {
            tenant: tenant.into(),
            segments,
        })
    }

    /// Returns the tenant that owns the namespace; empty for the unnamed one.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Returns the segments, outermost first.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Whether the segments are `prefix` or begin with it. Does not compare the tenant.
    pub fn starts_with(&self, prefix: &[String]) -> bool {
        self.segments.starts_with(prefix)
    }
}

/// A fact in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Namespace of the item.
    pub namespace: Namespace,
    /// Key of the item, unique within its namespace.
    pub key: String,
    /// Value of the item: any JSON value except `null`.
    pub value: Json,
    /// When the item was first stored.
    pub created: Timestamp,
    /// When the item was last stored.
    pub updated: Timestamp,
    /// When the item expires; `None` if it never does.
    pub expires: Option<Timestamp>,
}

/// A fact to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PutItem {
    /// Namespace of the item.
    pub namespace: Namespace,
    /// Key of the item: 1 to 256 bytes.
    pub key: String,
    /// Value of the item: any JSON value except `null`.
    pub value: Json,
    /// How long the item lives; `None` for no limit.
    pub ttl: Option<Ttl>,
}

/// How long an item lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// Lifetime from the last write, in milliseconds.
    pub ms: u64,
    /// Whether a read restarts the lifetime as well.
    pub refresh_on_read: bool,
}

/// A search for items.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Search {
    /// Tenant of the items; empty for the unnamed one. No search spans all tenants.
    pub tenant: String,
    /// Namespace prefix, by whole segments; empty for all namespaces of the tenant.
    pub prefix: Vec<String>,
    /// Conditions that must all hold.
    pub filters: Vec<ItemFilter>,
    /// Which page of the result to return.
    pub page: Page,
}

/// A condition on one top-level field of an item's value.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemFilter {
    /// Name of the field.
    pub field: String,
    /// How to compare the field.
    pub op: FilterOp,
    /// Value to compare the field with.
    pub value: Json,
}

/// How a field compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOp {
    /// Equal, nested values included.
    Eq,
    /// Not equal, or absent.
    Ne,
    /// Greater. Numbers compare with numbers, strings with strings; anything else does not match.
    Gt,
    /// Greater or equal, compared like `Gt`.
    Gte,
    /// Less, compared like `Gt`.
    Lt,
    /// Less or equal, compared like `Gt`.
    Lte,
}

impl ItemFilter {
    /// Whether an item's value meets the condition.
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

/// Selects namespaces of a tenant by prefix, suffix and depth.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NamespaceQuery {
    /// Tenant of the namespaces; empty for the unnamed one. No query spans all tenants.
    pub tenant: String,
    /// Segments with which the namespace starts; `*` stands for any one segment.
    pub prefix: Vec<String>,
    /// Segments with which the namespace ends; `*` stands for any one segment.
    pub suffix: Vec<String>,
    /// Number of segments after which namespaces are cut; duplicates are then removed. `None` to list them whole.
    pub depth_max: Option<usize>,
    /// Which page of the list to return.
    pub page: Page,
}

impl NamespaceQuery {
    /// Whether a namespace matches the query.
    pub fn matches(&self, namespace: &Namespace) -> bool {
        let segments = namespace.segments();
        let fits = |pattern: &[String], part: &[String]| {
            pattern.iter().zip(part).all(|(p, s)| p == "*" || p == s)
        };
        namespace.tenant() == self.tenant
            && segments.len() >= self.prefix.len()
            && segments.len() >= self.suffix.len()
            && fits(&self.prefix, segments)
            && fits(
                &self.suffix,
                &segments[segments.len() - self.suffix.len()..],
            )
    }

    /// Returns the namespace as it is listed: cut to `depth_max`.
    pub fn cut(&self, namespace: &Namespace) -> Namespace {
        let depth = self.depth_max.unwrap_or(usize::MAX).max(1);
        Namespace {
            tenant: namespace.tenant.clone(),
            segments: namespace.segments.iter().take(depth).cloned().collect(),
        }
    }
}

/// Longest key of an item, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

impl PutItem {
    /// Refuses an item that no store accepts: an invalid key, or a `null` value.
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

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not a valid namespace.
    #[error("{segments:?} is not a namespace: {why}")]
    Namespace {
        /// The rejected segments.
        segments: Vec<String>,
        /// Why they are not valid.
        why: String,
    },
    /// Not a valid key.
    #[error("a key has 1 to 256 bytes, not {bytes}")]
    Key {
        /// Length of the rejected key, in bytes.
        bytes: usize,
    },
    /// The value is `null`, which stands for absence.
    #[error("the value of `{key}` is null; delete the item instead")]
    NullValue {
        /// Key of the item.
        key: String,
    },
    /// The stored bytes of an item are not those that were written.
    #[error(
        "the item `{key}` in {namespace:?} is damaged: its stored bytes do not match their checksum; restore a backup, or delete the item and write it again"
    )]
    Damaged {
        /// Namespace of the item, as far as it can be read.
        namespace: Vec<String>,
        /// Key of the item, as far as it can be read.
        key: String,
    },
    /// The underlying database file is damaged. The same call will fail again.
    #[error("the database is damaged: {why}")]
    DatabaseDamaged {
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The item is encrypted and cannot be decrypted, or cannot be encrypted. The same call fails again until the keys are there.
    #[error(transparent)]
    Encryption {
        /// What is wrong: a key that is missing, or data that does not fit it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The underlying database failed or did not answer.
    #[error("the store did not answer")]
    Store {
        /// Error of the database.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Returns the checksum that a store keeps with an item: a CRC-32 over the namespace, the key and the value as they are stored,
/// each with its length. It detects a value that was changed or moved to another key. It guards against damage only; anyone
/// with write access to the database can also write a checksum.
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
    Encryption => "store-encryption",
    Store => "store-unavailable",
});
