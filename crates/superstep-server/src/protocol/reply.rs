//! Replies to commands of the thread protocol.

use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::error::ApiError;
use crate::feed::FeedId;
use crate::json_depth;

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandError {
    /// One of the codes of the protocol.
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The result of a command, and the newest event before it.
#[derive(Debug)]
pub(super) struct CommandResult {
    pub(super) result: Json,
    pub(super) applied: FeedId,
}

impl CommandError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message)
    }

    pub(super) fn no_run(message: impl Into<String>) -> Self {
        Self::new("no_such_run", message)
    }

    /// Returns the reply to the command with this id; `None` if the command has none that can be read.
    pub(super) fn reply(&self, id: Option<u64>) -> Json {
        json!({ "type": "error", "id": id, "error": self.code, "message": self.message })
    }
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        let code = match error.status {
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "permission_denied",
            StatusCode::NOT_FOUND if error.detail.starts_with("Checkpoint") => "no_such_checkpoint",
            // The protocol has no code for an assistant that does not exist.
            StatusCode::NOT_FOUND => "unknown_error",
            _ if error.detail.starts_with("Invalid assistant") => "unknown_error",
            status if status.is_client_error() => "invalid_argument",
            _ => "unknown_error",
        };
        Self::new(code, error.detail)
    }
}

impl CommandResult {
    /// Returns the reply to the command with this id.
    pub(super) fn reply(self, id: u64) -> Json {
        json!({
            "type": "success",
            "id": id,
            "result": self.result,
            "meta": { "applied_through_seq": self.applied.number() },
        })
    }
}

/// A command, as a client sends it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProtocolCommand {
    pub(super) id: u64,
    pub(super) method: String,
    /// An object.
    pub(super) params: Json,
}

impl ProtocolCommand {
    /// Reads a command.
    pub(super) fn read(text: &[u8]) -> Result<Self, CommandError> {
        if json_depth::is_too_deep(text) {
            return Err(CommandError::invalid(json_depth::TOO_DEEP));
        }
        let read: Json = serde_json::from_slice(text)
            .map_err(|_| CommandError::invalid("a command must be valid JSON"))?;
        let id = read.get("id").and_then(Json::as_u64);
        let method = read.get("method").and_then(Json::as_str);
        let (Some(id), Some(method)) = (id, method) else {
            return Err(CommandError::invalid(
                "a command needs an `id`, which is a whole number, and a `method`",
            ));
        };
        let params = match read.get("params") {
            None | Some(Json::Null) => json!({}),
            Some(params @ Json::Object(_)) => params.clone(),
            Some(_) => return Err(CommandError::invalid("`params` must be an object")),
        };
        Ok(Self {
            id,
            method: method.to_owned(),
            params,
        })
    }

    /// Returns a parameter, unless it is absent or null.
    pub(super) fn param(&self, name: &str) -> Option<&Json> {
        self.params.get(name).filter(|value| !value.is_null())
    }

    /// Returns a parameter that must be text.
    pub(super) fn text(&self, name: &str) -> Result<&str, CommandError> {
        let found = self.param(name).and_then(Json::as_str);
        found.ok_or_else(|| CommandError::invalid(format!("`{}` needs `{name}`", self.method)))
    }

    /// Returns the namespace that the command names; empty for the root graph.
    pub(super) fn namespace(&self) -> Result<Vec<String>, CommandError> {
        let Some(namespace) = self.param("namespace") else {
            return Ok(Vec::new());
        };
        let segments = namespace.as_array().into_iter().flatten();
        let texts = segments.map(|segment| segment.as_str().map(str::to_owned));
        let read: Option<Vec<String>> = texts.collect();
        match read {
            Some(read) if namespace.is_array() => Ok(read),
            _ => Err(CommandError::invalid("`namespace` must be a list of texts")),
        }
    }
}

#[test]
fn a_command_that_cannot_be_read_is_refused() {
    let read = ProtocolCommand::read(br#"{"id":1,"method":"run.start"}"#).unwrap();
    assert_eq!(read.params, json!({}));
    for text in [
        "{",
        "[]",
        r#"{"id":-1,"method":"a"}"#,
        r#"{"id":1}"#,
        r#"{"id":1,"method":"a","params":[]}"#,
    ] {
        let refused = ProtocolCommand::read(text.as_bytes()).unwrap_err();
        assert_eq!(refused.code, "invalid_argument", "{text}");
    }
}
