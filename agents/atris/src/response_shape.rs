//! The form of a response as the document describes it, and the check of a response against it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Form of a response, or of a part of it. An empty one allows anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseShape {
    /// Type by the name in the document. Empty allows any.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Whether null is allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
    /// Names of the fields that must be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Forms of the fields of an object. Other fields are allowed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, ResponseShape>,
    /// Form of the items of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<ResponseShape>>,
}

impl ResponseShape {
    /// Compares a response with the form. Returns up to three differences, each in words.
    pub fn differences(&self, body: &Json) -> Vec<String> {
        let mut found = Vec::new();
        self.compare(body, "", &mut found);
        found
    }

    fn compare(&self, value: &Json, path: &str, found: &mut Vec<String>) {
        if found.len() >= DIFFERENCES_MAX || (value.is_null() && self.nullable) {
            return;
        }
        let is = kind_of(value);
        let fits = match self.kind.as_str() {
            "" => true,
            "number" => is == "number" || is == "integer",
            wanted => is == wanted,
        };
        let name = match path {
            "" => "it".to_owned(),
            path => format!("`{}`", super::answer::shown(path)),
        };
        if !fits {
            found.push(format!("{name} is of the type {is}, not {}", self.kind));
            return;
        }
        match value {
            Json::Object(fields) => {
                for required in &self.required {
                    if !fields.contains_key(required) && found.len() < DIFFERENCES_MAX {
                        found.push(format!(
                            "{name} has no field `{}`",
                            super::answer::shown(required)
                        ));
                    }
                }
                for (field, shape) in &self.fields {
                    // Many servers send null for an optional field that they leave out of the document.
                    let value = fields
                        .get(field)
                        .filter(|value| !value.is_null() || self.required.contains(field));
                    if let Some(value) = value {
                        let path = match path {
                            "" => field.clone(),
                            path => format!("{path}.{field}"),
                        };
                        shape.compare(value, &path, found);
                    }
                }
            }
            Json::Array(items) => {
                for (at, item) in items.iter().take(ITEMS_MAX).enumerate() {
                    if let Some(shape) = &self.items {
                        shape.compare(item, &format!("{path}[{at}]"), found);
                    }
                }
            }
            _ => {}
        }
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

const DIFFERENCES_MAX: usize = 3;
/// Items of a list that are compared.
const ITEMS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::openapi;

    #[test]
    fn a_response_is_held_against_the_document() {
        let document = json!({
            "openapi": "3.0.0",
            "paths": { "/pets": { "get": {
                "operationId": "listPets",
                "responses": { "200": { "content": { "application/json": { "schema": {
                    "type": "array", "items": { "$ref": "#/components/schemas/Pet" }
                } } } } },
            } } },
            "components": { "schemas": { "Pet": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": { "type": "integer" },
                    "name": { "type": "string" },
                    "mother": { "$ref": "#/components/schemas/Pet" },
                    "price": { "type": "number", "nullable": true },
                },
            } } },
        });
        let read = openapi::read(document.to_string().as_bytes()).unwrap();
        let shape = &read.responses["listPets"];
        let good = json!([{ "id": 1, "name": "Rex", "price": 2, "mother": null, "more": [] }]);
        assert_eq!(shape.differences(&good), Vec::<String>::new());
        assert_eq!(
            shape.differences(&json!([{ "id": "1", "price": "2" }])),
            [
                "`[0]` has no field `name`",
                "`[0].id` is of the type string, not integer",
                "`[0].price` is of the type string, not number"
            ]
        );
        assert_eq!(
            shape.differences(&json!({ "data": [] })),
            ["it is of the type object, not array"]
        );
    }
}
