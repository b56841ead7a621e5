//! The JSON Schema of a state, as `derive(State)` writes it.

use serde_json::{Map, Value as Json, json};

/// Builds the JSON Schema of a state. For the code that `derive(State)` writes, and for a state that is written by hand.
///
/// ```
/// use superstep_core::state::StateSchema;
///
/// let schema = StateSchema::new("Review")
///     .field("topic", StateSchema::of("string"), "What is reviewed.")
///     .field("notes", StateSchema::list(StateSchema::of("string")), "")
///     .finish();
/// assert_eq!(schema["properties"]["topic"]["description"], "What is reviewed.");
/// ```
#[derive(Debug, Clone)]
pub struct StateSchema {
    title: &'static str,
    properties: Map<String, Json>,
}

impl StateSchema {
    /// Starts the schema of a state without fields. `title` is the name of its type.
    pub fn new(title: &'static str) -> Self {
        Self {
            title,
            properties: Map::new(),
        }
    }

    /// Adds a field under its wire name. An empty description is left out.
    #[must_use]
    pub fn field(mut self, name: &str, mut schema: Json, description: &str) -> Self {
        if let (Some(schema), false) = (schema.as_object_mut(), description.is_empty()) {
            schema.insert("description".to_owned(), description.into());
        }
        self.properties.insert(name.to_owned(), schema);
        self
    }

    /// Returns the schema. No field is required: an absent one has its default, and in an update it does not change.
    pub fn finish(self) -> Json {
        json!({ "title": self.title, "type": "object", "properties": self.properties })
    }

    /// Returns the schema of a value of this JSON type, such as `string`.
    pub fn of(json_type: &str) -> Json {
        json!({ "type": json_type })
    }

    /// Returns the schema of any value.
    pub fn any() -> Json {
        json!({})
    }

    /// Returns the schema of a list of such items.
    pub fn list(items: Json) -> Json {
        json!({ "type": "array", "items": items })
    }

    /// Returns the schema of an object with such values under any names.
    pub fn map(values: Json) -> Json {
        json!({ "type": "object", "additionalProperties": values })
    }

    /// Returns the schema of such a value or `null`.
    pub fn nullable(value: Json) -> Json {
        json!({ "anyOf": [value, { "type": "null" }] })
    }
}
