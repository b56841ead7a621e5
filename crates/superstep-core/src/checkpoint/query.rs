//! Queries over the lists of threads and of interrupts.
//!
//! Filters are data, never text of a query language: a store binds every value.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::checkpoint::Status;
use crate::ids::{ThreadId, Timestamp};

/// What a thread can be searched by: names and JSON values, set by the caller.
pub type Metadata = BTreeMap<String, Json>;

/// A page of a list. Default: the first 10 rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Highest number of rows to return.
    pub limit: u32,
    /// Number of rows to skip.
    pub offset: u32,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            limit: 10,
            offset: 0,
        }
    }
}

/// A condition on one top-level field: it has exactly this scalar value.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Name of the field.
    pub field: String,
    /// Value that the field must have.
    pub equals: FilterValue,
}

impl Filter {
    /// Whether fields, looked up by name, meet all of these conditions.
    pub fn all_match<'a>(filters: &[Self], field: impl Fn(&str) -> Option<&'a Json>) -> bool {
        let meets =
            |filter: &Self| field(&filter.field).is_some_and(|found| filter.equals.matches(found));
        filters.iter().all(meets)
    }
}

/// A scalar that a filter compares with.
#[derive(Debug, Clone, PartialEq)]
pub enum FilterValue {
    /// The JSON value `null`.
    Null,
    /// A JSON boolean.
    Bool(bool),
    /// A number, compared as JSON text would be.
    Number(serde_json::Number),
    /// A string of at most [`FilterValue::TEXT_BYTES_MAX`] bytes.
    Text(String),
}

impl FilterValue {
    /// Longest string that can be searched for, in bytes; longer ones are not indexed.
    pub const TEXT_BYTES_MAX: usize = 256;

    /// Returns the scalar of a JSON value; `None` for arrays, objects and strings too long to be indexed.
    pub fn of(value: &Json) -> Option<Self> {
        match value {
            Json::Null => Some(Self::Null),
            Json::Bool(b) => Some(Self::Bool(*b)),
            Json::Number(n) => Some(Self::Number(n.clone())),
            Json::String(s) if s.len() <= Self::TEXT_BYTES_MAX => Some(Self::Text(s.clone())),
            Json::String(_) | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// Returns bytes that are the same for scalars that match each other, for a store that keeps an index of them.
    pub fn to_key(&self) -> Vec<u8> {
        let (tag, text) = match self {
            Self::Null => (b'n', String::new()),
            Self::Bool(value) => (b'b', value.to_string()),
            // Zero is the only float with two texts that are equal.
            Self::Number(value) if value.as_f64() == Some(0.0) && value.is_f64() => {
                (b'd', "0.0".to_owned())
            }
            Self::Number(value) => (b'd', value.to_string()),
            Self::Text(value) => (b't', value.clone()),
        };
        let mut key = vec![tag];
        key.extend_from_slice(text.as_bytes());
        key
    }

    /// Whether a JSON value equals this scalar.
    pub fn matches(&self, value: &Json) -> bool {
        Self::of(value).as_ref() == Some(self)
    }
}

/// Selects threads, most recently changed first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadQuery {
    /// Tenant of the threads; empty for the unnamed one. No query spans all tenants.
    pub tenant: String,
    /// Only threads of this graph.
    pub graph: Option<String>,
    /// Only threads with this status.
    pub status: Option<Status>,
    /// Only threads whose metadata meets all of these.
    pub metadata: Vec<Filter>,
    /// Only threads whose listed state meets all of these.
    pub values: Vec<Filter>,
    /// Which page of the list to return.
    pub page: Page,
}

/// Selects interrupts, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InterruptQuery {
    /// Tenant of the threads; empty for the unnamed one.
    pub tenant: String,
    /// Only interrupts of this thread.
    pub thread: Option<ThreadId>,
    /// Only interrupts that wait for an answer.
    pub open_only: bool,
    /// Only interrupts whose deadline has passed at this time.
    pub due: Option<Timestamp>,
    /// Which page of the list to return.
    pub page: Page,
}
