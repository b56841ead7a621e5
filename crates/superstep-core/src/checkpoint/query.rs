//! What can be asked of the list of threads and of the list of questions.
//!
//! Filters are data, never text of a query language: a store binds every value.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::checkpoint::Status;
use crate::ids::{ThreadId, Timestamp};

/// What a thread is found by: names and JSON values, given by the caller.
pub type Metadata = BTreeMap<String, Json>;

/// A page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// How many rows at most.
    pub limit: u32,
    /// How many rows to pass over.
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
    /// The field's name.
    pub field: String,
    /// Its value.
    pub equals: FilterValue,
}

/// A scalar that a filter compares with.
#[derive(Debug, Clone, PartialEq)]
pub enum FilterValue {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number, compared as JSON text would be.
    Number(serde_json::Number),
    /// A text of at most [`FilterValue::TEXT_BYTES_MAX`] bytes.
    Text(String),
}

impl FilterValue {
    /// The longest text that is searched for; longer ones are not indexed.
    pub const TEXT_BYTES_MAX: usize = 256;

    /// The scalar inside a JSON value, if it is one that is indexed.
    pub fn of(value: &Json) -> Option<Self> {
        match value {
            Json::Null => Some(Self::Null),
            Json::Bool(b) => Some(Self::Bool(*b)),
            Json::Number(n) => Some(Self::Number(n.clone())),
            Json::String(s) if s.len() <= Self::TEXT_BYTES_MAX => Some(Self::Text(s.clone())),
            Json::String(_) | Json::Array(_) | Json::Object(_) => None,
        }
    }

    /// Whether a JSON value is this one.
    pub fn matches(&self, value: &Json) -> bool {
        Self::of(value).as_ref() == Some(self)
    }
}

/// What to list of the threads. Newest change first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadQuery {
    /// Of this tenant; empty for the unnamed one. There is no way to ask for all tenants at once.
    pub tenant: String,
    /// Of this graph.
    pub graph: Option<String>,
    /// With this status.
    pub status: Option<Status>,
    /// With all of these in the metadata.
    pub metadata: Vec<Filter>,
    /// With all of these in the state.
    pub values: Vec<Filter>,
    /// Which page.
    pub page: Page,
}

/// What to list of the questions. Oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InterruptQuery {
    /// Of this tenant; empty for the unnamed one.
    pub tenant: String,
    /// Of this thread only.
    pub thread: Option<ThreadId>,
    /// Only those that are open and have no answer.
    pub open_only: bool,
    /// Only those whose deadline has passed at this time.
    pub due: Option<Timestamp>,
    /// Which page.
    pub page: Page,
}
