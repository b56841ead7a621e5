//! Small parts from which the schemas of the document are made.

use serde_json::{Map, Value as Json, json};

/// A schema under its name in the document.
pub(super) type NamedSchema = (&'static str, Json);

/// A field of an object.
pub(super) struct Field {
    name: &'static str,
    schema: Json,
    is_required: bool,
}

/// A field that is always there.
pub(super) fn required(name: &'static str, schema: Json) -> Field {
    Field {
        name,
        schema,
        is_required: true,
    }
}

/// A field that may be missing.
pub(super) fn optional(name: &'static str, schema: Json) -> Field {
    Field {
        is_required: false,
        ..required(name, schema)
    }
}

/// An object with these fields, and perhaps others.
pub(super) fn object(fields: impl IntoIterator<Item = Field>) -> Json {
    let (mut properties, mut always) = (Map::new(), Vec::new());
    for field in fields {
        properties.insert(field.name.to_owned(), field.schema);
        if field.is_required {
            always.push(field.name);
        }
    }
    let mut object = json!({ "type": "object", "properties": properties });
    if !always.is_empty() {
        object["required"] = json!(always);
    }
    object
}

/// An object with any fields.
pub(super) fn fields() -> Json {
    json!({ "type": "object" })
}

/// An object whose fields all have this schema.
pub(super) fn fields_of(schema: Json) -> Json {
    json!({ "type": "object", "additionalProperties": schema })
}

pub(super) fn any() -> Json {
    json!({})
}

pub(super) fn text() -> Json {
    json!({ "type": "string" })
}

pub(super) fn uuid() -> Json {
    json!({ "type": "string", "format": "uuid" })
}

pub(super) fn time() -> Json {
    json!({ "type": "string", "format": "date-time" })
}

pub(super) fn integer() -> Json {
    json!({ "type": "integer" })
}

/// A number that is not negative.
pub(super) fn count() -> Json {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn number() -> Json {
    json!({ "type": "number" })
}

pub(super) fn boolean() -> Json {
    json!({ "type": "boolean" })
}

pub(super) fn list(items: Json) -> Json {
    json!({ "type": "array", "items": items })
}

/// One of these words.
pub(super) fn word(words: &[&str]) -> Json {
    json!({ "type": "string", "enum": words })
}

/// A word, or a list of them.
pub(super) fn words(words: &[&str]) -> Json {
    either([word(words), list(word(words))])
}

pub(super) fn either(schemas: impl IntoIterator<Item = Json>) -> Json {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

/// This, or `null`.
pub(super) fn nullable(schema: Json) -> Json {
    either([schema, json!({ "type": "null" })])
}

/// The schema with this name.
pub(super) fn named(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Adds what the field means.
pub(super) fn about(mut schema: Json, description: &str) -> Json {
    schema["description"] = description.into();
    schema
}

/// Length of a page.
pub(super) fn limit(default: u32) -> Json {
    json!({ "type": "integer", "minimum": 1, "maximum": 1_000, "default": default })
}

/// Number of rows that are skipped.
pub(super) fn offset() -> Json {
    json!({ "type": "integer", "minimum": 0, "default": 0 })
}

pub(super) fn sort_order() -> Json {
    word(&["asc", "desc"])
}
