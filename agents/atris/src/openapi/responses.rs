//! Reads the forms of responses, within a limit: a document may describe more than is worth comparing.

use serde_json::{Map, Value as Json};

use super::{DocumentError, Reader};
use crate::response_shape::ResponseShape;

impl<'a> Reader<'a> {
    /// Returns the form of the successful JSON response of an operation, if the document describes one.
    pub(super) fn response(
        &mut self,
        operation: &'a Map<String, Json>,
    ) -> Result<Option<ResponseShape>, DocumentError> {
        let Some(responses) = operation.get("responses").and_then(Json::as_object) else {
            return Ok(None);
        };
        let success = SUCCESSES.iter().find_map(|status| responses.get(*status));
        let Some(response) = success else {
            return Ok(None);
        };
        let response = self.resolved(response)?;
        let content = response["content"].as_object().into_iter().flatten();
        let mut content = content.filter(|(kind, _)| kind.starts_with("application/json"));
        let Some((_, media)) = content.next() else {
            return Ok(None);
        };
        let Some(schema) = media.get("schema") else {
            return Ok(None);
        };
        let mut room = SHAPES_PER_CALL_MAX.min(self.shapes_room);
        let before = room;
        let shape = self.shape(schema, 0, &mut room);
        self.shapes_room -= before - room;
        Ok(Some(shape?).filter(|shape| *shape != ResponseShape::default()))
    }

    /// Reads a form. Where the room or the depth ends, anything is allowed.
    fn shape(
        &mut self,
        schema: &'a Json,
        depth: usize,
        room: &mut usize,
    ) -> Result<ResponseShape, DocumentError> {
        let mut shape = ResponseShape::default();
        let Some(left) = room.checked_sub(1) else {
            return Ok(shape);
        };
        *room = left;
        let schema = self.resolved(schema)?;
        // Alternatives are not compared: any of them may be right.
        if depth > DEPTH_MAX
            || ["oneOf", "anyOf", "not"]
                .iter()
                .any(|word| schema.get(*word).is_some())
        {
            return Ok(shape);
        }
        shape.nullable = schema["nullable"] == true;
        match &schema["type"] {
            Json::String(kind) => shape.kind = kind.clone(),
            Json::Array(kinds) => {
                let mut others = kinds
                    .iter()
                    .filter_map(Json::as_str)
                    .filter(|kind| *kind != "null");
                shape.nullable |= kinds.iter().any(|kind| kind == "null");
                if let (Some(only), None) = (others.next(), others.next()) {
                    shape.kind = only.to_owned();
                }
            }
            _ => {}
        }
        if shape.kind == "array" {
            if let Some(items) = schema.get("items") {
                shape.items = Some(Box::new(self.shape(items, depth + 1, room)?));
            }
            return Ok(shape);
        }
        let fields = self.fields(schema, 0)?;
        for (name, field) in fields.by_name.iter().take(FIELDS_MAX) {
            if *room == 0 {
                break;
            }
            let field = self.shape(field, depth + 1, room)?;
            if field != ResponseShape::default() {
                shape.fields.insert((*name).to_owned(), field);
            }
        }
        let required = fields.required.iter().take(FIELDS_MAX);
        shape.required = required.map(|name| (*name).to_owned()).collect();
        Ok(shape)
    }
}

/// Maximum number of parts of all responses of a document.
pub(super) const SHAPES_MAX: usize = 20_000;
/// Maximum number of parts of one response.
const SHAPES_PER_CALL_MAX: usize = 60;
const FIELDS_MAX: usize = 40;
const DEPTH_MAX: usize = 4;
const SUCCESSES: [&str; 4] = ["200", "201", "202", "2XX"];
