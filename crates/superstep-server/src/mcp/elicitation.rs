//! Interrupts as forms of elicitation.
//!
//! A form is an object of texts, numbers, booleans and choices; since version 2025-11-25 of the protocol, also of choices of several
//! values. An approval becomes a choice of decisions, a flat schema is shown as it is, and everything else is answered with a text,
//! which is read as JSON if the interrupt wants more than a text.

use serde_json::{Map, Value as Json, json};

use crate::follow::{question_of, request_of};

/// A form for an interrupt.
#[derive(Debug)]
pub(super) struct ElicitationForm<'a> {
    interrupt: &'a Json,
    kind: FormKind<'a>,
}

/// What the fields of a form can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormFields {
    /// Texts, numbers, booleans, and choices of one value.
    Single,
    /// The same, and choices of several values.
    Multiple,
}

impl FormFields {
    /// Returns what the fields can be in a version of the protocol. Versions are dates.
    pub(super) fn of_version(version: Option<&str>) -> Self {
        match version {
            Some(version) if version >= MULTIPLE_SINCE => Self::Multiple,
            _ => Self::Single,
        }
    }

    /// Whether a field can have this schema.
    fn allow(self, schema: &Json) -> bool {
        is_primitive(schema) || (self == Self::Multiple && is_multiple_choice(schema))
    }
}

/// Version of the protocol in which choices of several values came.
const MULTIPLE_SINCE: &str = "2025-11-25";

#[derive(Debug)]
enum FormKind<'a> {
    /// A decision about an action.
    Approval { config: &'a Json, action: &'a str },
    /// The fields of the answer.
    Fields(&'a Json),
    /// One field, whose value is the answer.
    Value(&'a Json),
    /// A text. With `true`, it may be JSON.
    Text(bool),
}

impl<'a> ElicitationForm<'a> {
    /// Returns the form for an interrupt, as streams show it.
    pub(super) fn of(interrupt: &'a Json, fields: FormFields) -> Self {
        let value = request_of(interrupt);
        let action = value.pointer("/action_request/action");
        let config = value.get("config").filter(|config| config.is_object());
        let kind = match (action.and_then(Json::as_str), config) {
            (Some(action), Some(config)) => FormKind::Approval { config, action },
            _ => match &interrupt["response_schema"] {
                Json::Null => FormKind::Text(false),
                schema if is_flat(schema, fields) => FormKind::Fields(schema),
                schema if fields.allow(schema) => FormKind::Value(schema),
                _ => FormKind::Text(true),
            },
        };
        Self { interrupt, kind }
    }

    /// Returns what the form says to the user. `problem` is why the last answer was refused.
    pub(super) fn message(&self, problem: Option<&str>) -> String {
        let question = question_of(self.interrupt);
        match problem {
            Some(problem) => format!("{question}\n\nThe last answer was refused: {problem}"),
            None => question,
        }
    }

    /// Returns the schema of the form.
    pub(super) fn schema(&self) -> Json {
        match &self.kind {
            FormKind::Approval { config, .. } => approval_schema(config),
            FormKind::Fields(schema) => json!({
                "type": "object",
                "properties": schema["properties"],
                "required": schema.get("required").cloned().unwrap_or_else(|| json!([])),
            }),
            FormKind::Value(schema) => answer_schema((*schema).clone()),
            FormKind::Text(_) => answer_schema(json!({ "type": "string", "title": "Answer" })),
        }
    }

    /// Reads the result that the client sent. `None` if the user did not decide.
    pub(super) fn read(&self, result: &Json) -> Result<Option<Json>, String> {
        match result["action"].as_str() {
            Some("accept") => {
                let content = result["content"].as_object();
                let content = content.ok_or("the form was accepted without content")?;
                self.answer(content).map(|answer| Some(self.listed(answer)))
            }
            Some("decline") => Ok(self.declined().map(|answer| self.listed(answer))),
            _ => Ok(None),
        }
    }

    /// Returns an answer in the form of the question: a decision about a request in a list is in a list.
    fn listed(&self, answer: Json) -> Json {
        let is_listed = self.interrupt["value"].is_array();
        match &self.kind {
            FormKind::Approval { .. } if is_listed => json!([answer]),
            _ => answer,
        }
    }

    fn answer(&self, content: &Map<String, Json>) -> Result<Json, String> {
        let field = |name: &str| content.get(name).cloned();
        match &self.kind {
            FormKind::Approval { action, .. } => approval_answer(action, content),
            FormKind::Fields(_) => Ok(Json::Object(content.clone())),
            FormKind::Value(_) => field("answer").ok_or_else(|| NO_ANSWER.to_owned()),
            FormKind::Text(may_be_json) => {
                let text = field("answer").ok_or(NO_ANSWER)?;
                let read = text.as_str().filter(|_| *may_be_json);
                let read = read.and_then(|text| serde_json::from_str(text).ok());
                Ok(read.unwrap_or(text))
            }
        }
    }

    /// Returns the answer of a user who says no: only an approval has one.
    fn declined(&self) -> Option<Json> {
        match &self.kind {
            FormKind::Approval { config, .. } if allows(config, "ignore") => {
                Some(json!({ "type": "ignore", "args": null }))
            }
            _ => None,
        }
    }
}

const NO_ANSWER: &str = "`answer` is missing";

fn answer_schema(answer: Json) -> Json {
    json!({ "type": "object", "properties": { "answer": answer }, "required": ["answer"] })
}

fn allows(config: &Json, way: &str) -> bool {
    config[format!("allow_{way}")].as_bool().unwrap_or(false)
}

fn approval_schema(config: &Json) -> Json {
    let ways = [
        ("accept", "accept"),
        ("edit", "edit"),
        ("response", "respond"),
        ("ignore", "ignore"),
    ];
    let allowed = ways.iter().filter(|(_, way)| allows(config, way));
    let decisions: Vec<&str> = allowed.map(|(name, _)| *name).collect();
    let mut properties = json!({
        "decision": { "type": "string", "title": "Decision", "enum": decisions },
    });
    if allows(config, "respond") {
        properties["message"] = json!({
            "type": "string", "title": "Message", "description": "What to say, for `response`.",
        });
    }
    if allows(config, "edit") {
        properties["arguments"] = json!({
            "type": "string",
            "title": "Arguments",
            "description": "The changed arguments as a JSON object, for `edit`.",
        });
    }
    json!({ "type": "object", "properties": properties, "required": ["decision"] })
}

fn approval_answer(action: &str, content: &Map<String, Json>) -> Result<Json, String> {
    let text = |name: &str| content.get(name).and_then(Json::as_str);
    match text("decision") {
        Some("response") => {
            Ok(json!({ "type": "response", "args": text("message").unwrap_or_default() }))
        }
        Some("edit") => {
            let arguments = text("arguments").unwrap_or_default();
            let read: Option<Json> = serde_json::from_str(arguments).ok();
            let read = read.filter(Json::is_object);
            let read = read.ok_or("`arguments` must be a JSON object")?;
            Ok(json!({ "type": "edit", "args": { "action": action, "args": read } }))
        }
        // What is not allowed is refused with the schema of the interrupt.
        Some(decision) => Ok(json!({ "type": decision, "args": null })),
        None => Err("`decision` is missing".to_owned()),
    }
}

/// Whether a form can have this schema: an object whose properties are all fields.
fn is_flat(schema: &Json, fields: FormFields) -> bool {
    let properties = schema["properties"].as_object();
    let is_form = |properties: &Map<String, Json>| {
        !properties.is_empty() && properties.values().all(|property| fields.allow(property))
    };
    schema["type"] == "object" && properties.is_some_and(is_form)
}

/// Whether this is the schema of a list whose items are from a list of texts, with titles or without.
fn is_multiple_choice(schema: &Json) -> bool {
    let items = &schema["items"];
    let is_titled = |option: &Json| option["const"].is_string() && option["title"].is_string();
    let titled = items["anyOf"].as_array();
    let are_titled = titled.is_some_and(|options| options.iter().all(is_titled));
    schema["type"] == "array"
        && (are_titled || (items["type"] == "string" && items["enum"].is_array()))
}

fn is_primitive(schema: &Json) -> bool {
    let kinds = ["string", "number", "integer", "boolean"];
    schema["type"]
        .as_str()
        .is_some_and(|kind| kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupt(value: Json, schema: Json) -> Json {
        json!({ "id": "1", "value": value, "response_schema": schema })
    }

    fn accepted(content: Json) -> Json {
        json!({ "action": "accept", "content": content })
    }

    #[test]
    fn an_approval_is_a_choice() {
        let asked = interrupt(
            json!({
                "action_request": { "action": "pay", "args": { "cents": 9 } },
                "config": { "allow_accept": true, "allow_edit": true, "allow_ignore": true },
                "description": "May I pay?",
            }),
            Json::Null,
        );
        let form = ElicitationForm::of(&asked, FormFields::Single);
        assert_eq!(form.message(None), "May I pay?");
        let schema = form.schema();
        assert_eq!(
            schema["properties"]["decision"]["enum"],
            json!(["accept", "edit", "ignore"])
        );
        assert!(schema["properties"].get("message").is_none());
        let read = |result: Json| form.read(&result);
        assert_eq!(
            read(accepted(json!({ "decision": "accept" }))),
            Ok(Some(json!({ "type": "accept", "args": null })))
        );
        assert_eq!(
            read(accepted(
                json!({ "decision": "edit", "arguments": "{\"cents\":1}" })
            )),
            Ok(Some(
                json!({ "type": "edit", "args": { "action": "pay", "args": { "cents": 1 } } })
            ))
        );
        assert!(read(accepted(json!({ "decision": "edit", "arguments": "1" }))).is_err());
        assert!(read(accepted(json!({}))).is_err());
        assert!(read(json!({ "action": "accept" })).is_err());
        assert_eq!(
            read(json!({ "action": "decline" })),
            Ok(Some(json!({ "type": "ignore", "args": null })))
        );
        let listed = json!({ "id": "1", "value": [asked["value"]] });
        assert_eq!(
            ElicitationForm::of(&listed, FormFields::Single)
                .read(&accepted(json!({ "decision": "accept" }))),
            Ok(Some(json!([{ "type": "accept", "args": null }])))
        );
        assert_eq!(read(json!({ "action": "cancel" })), Ok(None));
        assert_eq!(read(json!("nonsense")), Ok(None));
    }

    #[test]
    fn a_schema_is_shown_if_a_form_can_have_it() {
        let flat = json!({
            "type": "object", "properties": { "size": { "type": "integer" } }, "required": ["size"],
        });
        let asked = interrupt(json!("Which?"), flat.clone());
        let form = ElicitationForm::of(&asked, FormFields::Single);
        assert_eq!(form.schema(), flat);
        assert_eq!(
            form.read(&accepted(json!({ "size": 3 }))),
            Ok(Some(json!({ "size": 3 })))
        );
        let asked = interrupt(json!("Which?"), json!({ "type": "boolean" }));
        let form = ElicitationForm::of(&asked, FormFields::Single);
        assert_eq!(form.schema()["properties"]["answer"]["type"], "boolean");
        assert_eq!(
            form.read(&accepted(json!({ "answer": true }))),
            Ok(Some(json!(true)))
        );
    }

    #[test]
    fn a_choice_of_several_values_is_shown_since_the_version_that_has_it() {
        let sizes = json!({ "type": "array", "items": { "type": "string", "enum": ["S", "M"] } });
        let colors = json!({
            "type": "array", "items": { "anyOf": [{ "const": "r", "title": "Red" }] },
        });
        let schema = json!({
            "type": "object", "properties": { "sizes": sizes, "colors": colors }, "required": [],
        });
        let asked = interrupt(json!("Which?"), schema.clone());
        let shown = |version| ElicitationForm::of(&asked, FormFields::of_version(version)).schema();
        assert_eq!(shown(Some("2025-11-25")), schema);
        for older in [None, Some("2025-06-18"), Some("2025-03-26")] {
            assert_eq!(
                shown(older)["properties"]["answer"]["type"],
                "string",
                "{older:?}"
            );
        }
        let newest = FormFields::of_version(Some("2025-11-25"));
        for other in [
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "array", "items": { "anyOf": [{ "const": 1, "title": "One" }] } }),
            json!({ "type": "array" }),
            json!({ "type": "object" }),
        ] {
            assert!(!newest.allow(&other), "{other}");
        }
    }

    #[test]
    fn other_answers_are_texts() {
        let nested = json!({ "type": "array", "items": { "type": "string" } });
        let asked = interrupt(json!("Which?"), nested);
        let form = ElicitationForm::of(&asked, FormFields::Single);
        assert_eq!(
            form.read(&accepted(json!({ "answer": "[\"a\"]" }))),
            Ok(Some(json!(["a"])))
        );
        let asked = interrupt(json!("Which?"), Json::Null);
        let form = ElicitationForm::of(&asked, FormFields::Single);
        assert_eq!(
            form.read(&accepted(json!({ "answer": "[1]" }))),
            Ok(Some(json!("[1]"))),
            "a text stays a text if nothing else is asked for"
        );
        assert_eq!(form.read(&json!({ "action": "decline" })), Ok(None));
    }
}
