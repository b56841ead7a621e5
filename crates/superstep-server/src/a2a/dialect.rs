//! The two forms of the protocol's objects: version 0.3 marks them with `kind`, version 1.0 wraps them in a field.

use serde_json::{Map, Value as Json, json};

/// Version of the protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolDialect {
    V0_3,
    V1_0,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Canceled,
    Failed,
}

impl TaskState {
    const ALL: [Self; 6] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
    ];

    /// Returns the state with this name in either version.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let is_named = |state: &Self| {
            ProtocolDialect::V0_3.state(*state) == name
                || ProtocolDialect::V1_0.state(*state) == name
        };
        Self::ALL.into_iter().find(is_named)
    }
}

/// A part of a message or of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskPart {
    Text(String),
    Data(Json),
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
}

impl ProtocolDialect {
    /// Returns the version that has a method of this name.
    pub(super) fn of_method(method: &str) -> Self {
        match method.contains('/') {
            true => Self::V0_3,
            false => Self::V1_0,
        }
    }

    pub(super) fn state(self, state: TaskState) -> &'static str {
        match (self, state) {
            (Self::V0_3, TaskState::Submitted) => "submitted",
            (Self::V0_3, TaskState::Working) => "working",
            (Self::V0_3, TaskState::InputRequired) => "input-required",
            (Self::V0_3, TaskState::Completed) => "completed",
            (Self::V0_3, TaskState::Canceled) => "canceled",
            (Self::V0_3, TaskState::Failed) => "failed",
            (Self::V1_0, TaskState::Submitted) => "TASK_STATE_SUBMITTED",
            (Self::V1_0, TaskState::Working) => "TASK_STATE_WORKING",
            (Self::V1_0, TaskState::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
            (Self::V1_0, TaskState::Completed) => "TASK_STATE_COMPLETED",
            (Self::V1_0, TaskState::Canceled) => "TASK_STATE_CANCELED",
            (Self::V1_0, TaskState::Failed) => "TASK_STATE_FAILED",
        }
    }

    pub(super) fn parts(self, parts: &[TaskPart]) -> Json {
        let shown = parts.iter().map(|part| match (self, part) {
            (Self::V0_3, TaskPart::Text(text)) => json!({ "kind": "text", "text": text }),
            (Self::V0_3, TaskPart::Data(data)) => json!({ "kind": "data", "data": data }),
            (Self::V1_0, TaskPart::Text(text)) => json!({ "text": text }),
            (Self::V1_0, TaskPart::Data(data)) => json!({ "data": data }),
        });
        shown.collect()
    }

    pub(super) fn message(self, id: &str, role: Speaker, parts: &[TaskPart]) -> Json {
        let role = match (self, role) {
            (Self::V0_3, Speaker::User) => "user",
            (Self::V0_3, Speaker::Agent) => "agent",
            (Self::V1_0, Speaker::User) => "ROLE_USER",
            (Self::V1_0, Speaker::Agent) => "ROLE_AGENT",
        };
        let shown = json!({ "messageId": id, "role": role, "parts": self.parts(parts) });
        self.marked(shown, "message")
    }

    /// Completes a task.
    pub(super) fn task(self, task: Json) -> Json {
        self.marked(task, "task")
    }

    /// Returns the result of a method that sends a message.
    pub(super) fn sent(self, task: Json) -> Json {
        match self {
            Self::V0_3 => task,
            Self::V1_0 => json!({ "task": task }),
        }
    }

    /// Returns an event of a stream.
    pub(super) fn event(self, event: TaskEvent) -> Json {
        match (self, event) {
            (_, TaskEvent::Task(task)) => self.sent(task),
            (
                Self::V0_3,
                TaskEvent::Status {
                    mut update,
                    is_final,
                },
            ) => {
                update["final"] = is_final.into();
                self.marked(update, "status-update")
            }
            (Self::V0_3, TaskEvent::Artifact(update)) => self.marked(update, "artifact-update"),
            (Self::V1_0, TaskEvent::Status { update, .. }) => json!({ "statusUpdate": update }),
            (Self::V1_0, TaskEvent::Artifact(update)) => json!({ "artifactUpdate": update }),
        }
    }

    fn marked(self, mut shown: Json, kind: &str) -> Json {
        if self == Self::V0_3 {
            shown["kind"] = kind.into();
        }
        shown
    }
}

/// An event of a task.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskEvent {
    /// The task as it is.
    Task(Json),
    Status {
        update: Json,
        /// Whether the stream ends with it.
        is_final: bool,
    },
    Artifact(Json),
}

/// Reads a part in the form of either version, as a block of content or as data.
pub(super) fn read_part(part: &Json) -> Option<SentPart> {
    if let Some(text) = part.get("text").and_then(Json::as_str) {
        return Some(SentPart::Text(text.to_owned()));
    }
    if let Some(data) = part.get("data") {
        return data.as_object().cloned().map(SentPart::Data);
    }
    // In version 0.3, a file is in a field of its own.
    let file = part.get("file").unwrap_or(part);
    let text = |names: [&str; 2]| {
        let mut found = names.iter().filter_map(|name| file.get(name)?.as_str());
        found.next().map(str::to_owned)
    };
    let mime_type = text(["mimeType", "mediaType"]);
    let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    let (place, value) = match (text(["bytes", "raw"]), text(["uri", "url"])) {
        (Some(bytes), _) => ("data", bytes),
        (None, Some(url)) => ("url", url),
        (None, None) => return None,
    };
    Some(SentPart::File(
        json!({ "type": "file", "mime_type": mime_type, place: value }),
    ))
}

/// A part that a client sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SentPart {
    Text(String),
    Data(Map<String, Json>),
    /// A block of content.
    File(Json),
}

#[test]
fn parts_of_both_versions_are_read() {
    let text = Some(SentPart::Text("hi".to_owned()));
    assert_eq!(read_part(&json!({ "kind": "text", "text": "hi" })), text);
    assert_eq!(read_part(&json!({ "text": "hi" })), text);
    let data = read_part(&json!({ "kind": "data", "data": { "a": 1 } }));
    assert!(matches!(data, Some(SentPart::Data(_))));
    for part in [
        json!({ "kind": "file", "file": { "bytes": "QQ==", "mimeType": "image/png" } }),
        json!({ "raw": "QQ==", "mediaType": "image/png" }),
    ] {
        let block = json!({ "type": "file", "mime_type": "image/png", "data": "QQ==" });
        assert_eq!(read_part(&part), Some(SentPart::File(block)));
    }
    for part in [
        json!({}),
        json!("hi"),
        json!({ "data": 7 }),
        json!({ "kind": "file" }),
    ] {
        assert_eq!(read_part(&part), None, "{part}");
    }
    for state in TaskState::ALL {
        for dialect in [ProtocolDialect::V0_3, ProtocolDialect::V1_0] {
            assert_eq!(TaskState::from_name(dialect.state(state)), Some(state));
        }
    }
}
