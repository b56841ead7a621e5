//! Checks an answer against the schema of its interrupt, before it is stored.

use serde_json::Value as Json;

use crate::checkpoint::format::InterruptRecord;
use crate::schema;

/// Checks an answer against the [schema](crate::schema) of its interrupt. The error says what does not match; without a schema,
/// every answer does.
pub fn check_answer(question: &InterruptRecord, answer: &Json) -> Result<(), String> {
    let Some(schema) = &question.schema else {
        return Ok(());
    };
    let schema: Json = schema
        .decode()
        .map_err(|error| crate::error::chain(&error))?;
    schema::check(&schema, answer, "the answer")
}
