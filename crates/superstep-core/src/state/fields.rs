//! Stored fields of a state while they are migrated from one version to the next.

use serde_json::{Map, Value as Json};

/// The fields of a stored state, or of a stored partial update, by wire name.
///
/// A write that replaces a reduced channel as a whole is stored under the name with a `=` prefix. The methods here treat both
/// names alike, so a migration need not know about it.
#[derive(Debug)]
pub struct Fields(Map<String, Json>);

impl Fields {
    /// Wraps the fields of a JSON object.
    pub fn new(fields: Map<String, Json>) -> Self {
        Self(fields)
    }

    /// Returns the JSON object after the migration.
    pub fn into_inner(self) -> Map<String, Json> {
        self.0
    }

    /// Renames a field, if it is present.
    pub fn rename(&mut self, from: &str, to: &str) {
        for mark in ["", "="] {
            if let Some(value) = self.0.remove(&format!("{mark}{from}")) {
                self.0.insert(format!("{mark}{to}"), value);
            }
        }
    }

    /// Removes a field, if it is present.
    pub fn remove(&mut self, name: &str) {
        for mark in ["", "="] {
            self.0.remove(&format!("{mark}{name}"));
        }
    }

    /// Changes the value of a field, if it is present.
    pub fn change(&mut self, name: &str, change: impl Fn(Json) -> Json) {
        for mark in ["", "="] {
            if let Some(value) = self.0.get_mut(&format!("{mark}{name}")) {
                *value = change(value.take());
            }
        }
    }
}
