//! Interrupts in one form that Agent Inbox, Agent Chat UI and Deep Agents UI can all show.
//!
//! Agent Inbox reads `action_request` and `config`, which is how our agents ask. The others read `action_requests` and
//! `review_configs`, so a request that has the first pair gets the second too.

use serde_json::{Value as Json, json};
use superstep::checkpoint::format::InterruptRecord;

/// Returns an interrupt as clients read it.
pub(crate) fn interrupt(record: &InterruptRecord) -> Json {
    let mut value: Json = record.request.decode().unwrap_or_default();
    if let Some(reviewed) = ReviewedAction::of(&value) {
        let (requests, configs) = reviewed.middleware_form();
        value["action_requests"] = requests;
        value["review_configs"] = configs;
    }
    with_schema(record, value)
}

/// Returns an interrupt as its node asked it.
pub(crate) fn interrupt_as_asked(record: &InterruptRecord) -> Json {
    with_schema(record, record.request.decode().unwrap_or_default())
}

fn with_schema(record: &InterruptRecord, value: Json) -> Json {
    let mut shown = json!({ "id": record.id.to_string(), "value": value });
    if let Some(schema) = &record.schema {
        shown["response_schema"] = schema.decode().unwrap_or_default();
    }
    shown
}

/// Returns an interrupt as streams show it: with the schema of the answer, even if there is none.
pub(crate) fn streamed_interrupt(record: &InterruptRecord) -> Json {
    let mut shown = interrupt(record);
    if shown.get("response_schema").is_none() {
        shown["response_schema"] = Json::Null;
    }
    shown
}

/// A request for a person's decision about one action.
#[derive(Debug)]
pub(super) struct ReviewedAction<'a> {
    pub(super) action: &'a str,
    pub(super) args: &'a Json,
    description: &'a Json,
    config: &'a Json,
}

impl<'a> ReviewedAction<'a> {
    /// Reads a request of an interrupt; `None` if it asks something else.
    pub(super) fn of(request: &'a Json) -> Option<Self> {
        let action = request.get("action_request")?;
        Some(Self {
            action: action.get("action")?.as_str()?,
            args: action.get("args")?,
            description: request.get("description").unwrap_or(&Json::Null),
            config: request.get("config").filter(|config| config.is_object())?,
        })
    }

    /// Whether the person may answer in this way: `accept`, `edit`, `respond`, `ignore`.
    pub(super) fn allows(&self, way: &str) -> bool {
        let allowed = self.config.get(format!("allow_{way}"));
        allowed.and_then(Json::as_bool).unwrap_or(false)
    }

    fn middleware_form(&self) -> (Json, Json) {
        let ways = [
            ("approve", self.allows("accept")),
            ("edit", self.allows("edit")),
            ("reject", self.allows("ignore") || self.allows("respond")),
        ];
        let allowed = ways.iter().filter(|(_, is_allowed)| *is_allowed);
        let allowed: Vec<&str> = allowed.map(|(way, _)| *way).collect();
        let requests = json!([{
            "name": self.action,
            "args": self.args,
            // The same under the name that Agent Inbox reads.
            "arguments": self.args,
            "description": self.description,
        }]);
        let configs = json!([{ "action_name": self.action, "allowed_decisions": allowed }]);
        (requests, configs)
    }
}

/// Builds interrupts for tests.
#[cfg(test)]
pub(super) mod samples {
    use superstep::Value;
    use superstep::checkpoint::format::{Extensions, OnDeadline};
    use superstep::{FramePath, InterruptId, NodeName, TaskId};

    use super::*;

    pub(in crate::wire) fn record(
        kind: &str,
        request: &Json,
        schema: Option<&Json>,
    ) -> InterruptRecord {
        InterruptRecord {
            id: InterruptId::from_bytes([7; 16]),
            frame: FramePath::root(),
            node: NodeName::new("ask").unwrap(),
            task: TaskId::from_bytes([8; 16]),
            key: "key".to_owned(),
            kind: kind.to_owned(),
            request: Value::plain(request).unwrap(),
            schema: schema.map(|schema| Value::plain(schema).unwrap()),
            deadline: None,
            on_deadline: OnDeadline::Wait,
            extensions: Extensions::default(),
        }
    }

    pub(in crate::wire) fn approval() -> InterruptRecord {
        let request = json!({
            "action_request": { "action": "refund", "args": { "cents": 900, "urgent": true, "to": "Ada" } },
            "config": {
                "allow_accept": true, "allow_edit": true, "allow_respond": true, "allow_ignore": true,
            },
            "description": "May `refund` be called?",
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "type": { "enum": ["accept", "edit", "response", "ignore"] },
                "args": { "type": ["object", "string", "null"] },
            },
            "required": ["type"],
            "additionalProperties": false,
        });
        record("approval", &request, Some(&schema))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_has_the_forms_of_all_clients() {
        let shown = interrupt(&samples::approval());
        assert_eq!(shown["id"], "07".repeat(16));
        let value = &shown["value"];
        assert_eq!(value["action_request"]["action"], "refund");
        assert_eq!(value["action_requests"][0]["arguments"]["cents"], 900);
        assert_eq!(
            value["review_configs"],
            json!([{ "action_name": "refund", "allowed_decisions": ["approve", "edit", "reject"] }])
        );
    }

    #[test]
    fn other_questions_are_shown_as_they_are() {
        let record = samples::record("question", &json!({ "text": "Which?" }), None);
        assert_eq!(
            interrupt(&record),
            json!({ "id": "07".repeat(16), "value": { "text": "Which?" } })
        );
        let streamed = streamed_interrupt(&record);
        assert_eq!(streamed.get("response_schema"), Some(&Json::Null));
    }
}
