//! Tools that ask the user of the client with a form: of texts, of fields with defaults, and of choices of every kind.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Form {
    /// What the form says to the user.
    message: Option<String>,
    answer: Option<Json>,
}

pub(super) fn elicitation() -> Result<Arc<Definition>, BuildError> {
    let fields = json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    });
    form("test_elicitation", fields)
}

pub(super) fn defaults() -> Result<Arc<Definition>, BuildError> {
    let fields = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": {
            "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
        },
        "verified": { "type": "boolean", "default": true },
    });
    form("test_elicitation_sep1034_defaults", fields)
}

pub(super) fn choices() -> Result<Arc<Definition>, BuildError> {
    let untitled = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First Option" },
        { "const": "value2", "title": "Second Option" },
        { "const": "value3", "title": "Third Option" },
    ]);
    let fields = json!({
        "untitledSingle": { "type": "string", "enum": untitled },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": untitled } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    });
    form("test_elicitation_sep1330_enums", fields)
}

/// Builds a tool that asks for these fields, all of which are required, and returns the answer.
fn form(name: &str, fields: Json) -> Result<Arc<Definition>, BuildError> {
    let required: Vec<&String> = fields
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .collect();
    let schema = json!({ "type": "object", "properties": fields, "required": required });
    let ask = move |form: View<Form>, cx: NodeCx| {
        let schema = schema.clone();
        async move {
            let message = form
                .message
                .as_deref()
                .unwrap_or("Please fill in the form.");
            let question = Interrupt::new("form", message).schema(schema);
            let answer: Json = cx.interrupt(question).await?;
            Ok::<_, NodeError>(FormUpdate::default().answer(answer))
        }
    };
    let graph = Graph::builder(name)
        .node("ask", ask)
        .edge(START, "ask")
        .edge("ask", END)
        .inputs(["message"])
        .build()?;
    Ok(graph.definition().clone())
}
