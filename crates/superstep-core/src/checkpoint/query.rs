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

    /// Bytes that are the same for scalars that match each other, for a store that keeps an index of them.
    pub fn to_key(&self) -> Vec<u8> {
        let (tag, text) = match self {
            Self::Null => (b'n', String::new()),
            Self::Bool(value) => (b'b', value.to_string()),
            // The one number with two texts that are equal.
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
