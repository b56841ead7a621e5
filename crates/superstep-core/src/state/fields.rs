//! Stored fields on their way from one version of a state to the next.

use serde_json::{Map, Value as Json};

/// The fields of a stored state, or of a stored partial update, by wire name.
///
/// A write that replaces a reduced channel as a whole is stored under the name with `=` before it;
/// the methods here treat both names alike, so a migration need not know.
#[derive(Debug)]
pub struct Fields(Map<String, Json>);

impl Fields {
    /// The fields of a JSON object.
    pub fn new(fields: Map<String, Json>) -> Self {
        Self(fields)
    }

    /// The JSON object, after the migration.
    pub fn into_inner(self) -> Map<String, Json> {
        self.0
    }

    /// Renames a field, if it is there.
    pub fn rename(&mut self, from: &str, to: &str) {
        for mark in ["", "="] {
            if let Some(value) = self.0.remove(&format!("{mark}{from}")) {
                self.0.insert(format!("{mark}{to}"), value);
            }
        }
    }

    /// Drops a field, if it is there.
    pub fn remove(&mut self, name: &str) {
        for mark in ["", "="] {
            self.0.remove(&format!("{mark}{name}"));
        }
    }

    /// Changes the value of a field, if it is there.
    pub fn change(&mut self, name: &str, change: impl Fn(Json) -> Json) {
        for mark in ["", "="] {
            if let Some(value) = self.0.get_mut(&format!("{mark}{name}")) {
                *value = change(value.take());
            }
        }
    }
}
