//! Queries over the lists of threads and of interrupts.
//!
//! Filters are data, never text of a query language: a store binds every value.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Number, Value as Json};

use crate::checkpoint::{Status, ThreadRow};
use crate::ids::{ThreadId, Timestamp};
use crate::registry::json_contains;

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
    Number(Number),
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

    /// Returns every scalar that [`json_contains`] takes for equal to a JSON value, for a store that keeps an index of scalars: a
    /// number is equal to itself as an integer and as a float. Empty if there is no complete list: for arrays, objects, strings
    /// that are not indexed, and numbers so large that a float stands for several integers.
    pub fn all_equal(value: &Json) -> Vec<Self> {
        match Self::of(value) {
            Some(Self::Number(number)) => equal_numbers(&number),
            scalar => Vec::from_iter(scalar),
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

fn equal_numbers(number: &Number) -> Vec<FilterValue> {
    /// Below this, every integer is a float of its own.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let Some(float) = number.as_f64().filter(|float| float.abs() < EXACT_MAX) else {
        return Vec::new();
    };
    let integer = (float.fract() == 0.0).then(|| Number::from(float as i64));
    let equal = Number::from_f64(float).into_iter().chain(integer);
    equal.map(FilterValue::Number).collect()
}

/// Selects threads of a tenant. Default: all of them, most recently changed first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadQuery {
    /// Tenant of the threads; empty for the unnamed one. No query spans all tenants.
    pub tenant: String,
    /// Only threads of this graph.
    pub graph: Option<String>,
    /// Only threads with one of these statuses; empty for any.
    pub statuses: Vec<Status>,
    /// Only these threads, as far as they are the tenant's; `None` for any.
    pub ids: Option<Vec<ThreadId>>,
    /// Not these threads.
    pub except: Vec<ThreadId>,
    /// Only threads whose metadata meets all of these.
    pub metadata: Vec<Filter>,
    /// Only threads whose listed state meets all of these.
    pub values: Vec<Filter>,
    /// Only threads whose metadata contains this JSON object, see [`json_contains`].
    pub metadata_contains: Option<Json>,
    /// Only threads whose listed state contains this JSON object, see [`json_contains`].
    pub values_contains: Option<Json>,
    /// What the list is sorted by. Threads that are equal by it are in the order of their names, whatever the direction.
    pub sort: ThreadSort,
    /// Whether the list begins with the lowest. Default: with the highest, so that the newest thread comes first.
    pub is_ascending: bool,
    /// Which page of the list to return.
    pub page: Page,
}

impl ThreadQuery {
    /// Whether a thread matches the query, whatever its tenant.
    pub fn matches(&self, row: &ThreadRow) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&row.head.status))
            && self.graph.as_ref().is_none_or(|graph| *graph == row.graph)
            && self
                .ids
                .as_ref()
                .is_none_or(|ids| ids.contains(&row.thread))
            && !self.except.contains(&row.thread)
            && self.matches_metadata(&row.metadata)
            && self.matches_values(row)
    }

    fn matches_metadata(&self, metadata: &Metadata) -> bool {
        let contains = |part: &Json| {
            let has = |(name, part): (&String, &Json)| {
                metadata
                    .get(name)
                    .is_some_and(|found| json_contains(found, part))
            };
            part.as_object().is_some_and(|part| part.iter().all(has))
        };
        Filter::all_match(&self.metadata, |field| metadata.get(field))
            && self.metadata_contains.as_ref().is_none_or(contains)
    }

    fn matches_values(&self, row: &ThreadRow) -> bool {
        if self.values.is_empty() && self.values_contains.is_none() {
            return true;
        }
        let values = row
            .values
            .as_ref()
            .and_then(|values| values.decode::<Json>().ok());
        values.is_some_and(|values| {
            Filter::all_match(&self.values, |field| values.get(field))
                && self
                    .values_contains
                    .as_ref()
                    .is_none_or(|part| part.is_object() && json_contains(&values, part))
        })
    }

    /// Compares two threads of one tenant by their places in the list.
    pub fn compare(&self, a: &ThreadRow, b: &ThreadRow) -> Ordering {
        let by = match self.sort {
            ThreadSort::Updated => a.updated.cmp(&b.updated),
            ThreadSort::Created => a.created.cmp(&b.created),
            ThreadSort::Id => a.thread.name().cmp(b.thread.name()),
            ThreadSort::Status => a.head.status.cmp(&b.head.status),
        };
        let by = if self.is_ascending { by } else { by.reverse() };
        by.then_with(|| a.thread.name().cmp(b.thread.name()))
    }

    /// Sorts threads as the query wants them, and returns the page.
    pub fn page_of(&self, mut found: Vec<ThreadRow>) -> Vec<ThreadRow> {
        found.sort_by(|a, b| self.compare(a, b));
        let skipped = found.into_iter().skip(self.page.offset as usize);
        skipped.take(self.page.limit as usize).collect()
    }
}

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThreadSort {
    /// When they, or their rows, last changed.
    #[default]
    Updated,
    /// When they were created.
    Created,
    /// Their names, byte by byte.
    Id,
    /// Their statuses, in the order of [`Status`].
    Status,
}

/// Selects interrupts, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InterruptQuery {
    /// Tenant of the threads; empty for the unnamed one.
    pub tenant: String,
    /// Only interrupts of this thread.
    pub thread: Option<ThreadId>,
    /// Only interrupts of these threads; empty for any.
    pub threads: Vec<ThreadId>,
    /// Only interrupts that wait for an answer.
    pub open_only: bool,
    /// Only interrupts whose deadline has passed at this time.
    pub due: Option<Timestamp>,
    /// Which page of the list to return.
    pub page: Page,
}

#[test]
fn a_number_is_found_in_both_its_forms() {
    use serde_json::json;
    for (value, equal) in [
        (json!(1), vec![json!(1.0), json!(1)]),
        (json!(-3.0), vec![json!(-3.0), json!(-3)]),
        (json!(0.5), vec![json!(0.5)]),
        (json!("a"), vec![json!("a")]),
        (json!(null), vec![json!(null)]),
        (json!(u64::MAX), vec![]),
        (json!(1e300), vec![]),
        (json!([1]), vec![]),
        (json!("x".repeat(FilterValue::TEXT_BYTES_MAX + 1)), vec![]),
    ] {
        let wanted: Vec<_> = equal.iter().filter_map(FilterValue::of).collect();
        assert_eq!(FilterValue::all_equal(&value), wanted, "{value}");
        for other in &equal {
            assert!(json_contains(other, &value), "{other} and {value}");
        }
    }
}
