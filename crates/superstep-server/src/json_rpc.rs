//! JSON-RPC 2.0, as far as MCP and A2A use it: one message in the body of a request, and its reply.

use axum::Json as JsonBody;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value as Json, json};

use crate::error::ApiError;
use crate::json_depth;

/// The text is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32_700;
/// The JSON is not a message.
pub(crate) const INVALID_REQUEST: i64 = -32_600;
/// The method is not known.
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
/// The parameters are not those of the method.
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// The server is to blame.
pub(crate) const INTERNAL_ERROR: i64 = -32_603;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RpcMessage {
    Request(RpcRequest),
    /// A message without a reply.
    Notification {
        method: String,
        params: Json,
    },
    /// The reply to a request of the server.
    Response {
        id: RpcId,
        /// The result, or the client's error.
        outcome: Result<Json, Json>,
    },
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcRequest {
    pub(crate) id: RpcId,
    pub(crate) method: String,
    /// An object.
    pub(crate) params: Json,
}

/// The id of a request: a text or a whole number, which the reply repeats.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcId(Json);

impl RpcId {
    fn read(id: &Json) -> Option<Self> {
        let is_valid = match id {
            Json::String(text) => text.len() <= ID_BYTES_MAX,
            Json::Number(number) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        is_valid.then(|| Self(id.clone()))
    }

    /// Returns the id if it is a text, as those of the server are.
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }

    /// Returns the id as JSON: the text `1` and the number 1 are two ids.
    pub(crate) fn to_text(&self) -> String {
        self.0.to_string()
    }

    /// Reads the id that a parameter names.
    pub(crate) fn of_param(id: Option<&Json>) -> Option<Self> {
        Self::read(id?)
    }
}

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Json>,
    /// Status of the HTTP response. Errors of a method are the content of a response that succeeded.
    pub(crate) status: StatusCode,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status: StatusCode::OK,
        }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self::new(
            METHOD_NOT_FOUND,
            format!("unknown method `{}`", superstep::__private::shorten(method)),
        )
    }

    #[must_use]
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Returns the reply to the request with this id; `None` if the request has none that can be read.
    pub(crate) fn reply(&self, id: Option<&RpcId>) -> Json {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({ "jsonrpc": "2.0", "id": id.map(|id| &id.0), "error": error })
    }

    pub(crate) fn respond(&self, id: Option<&RpcId>) -> Response {
        (self.status, JsonBody(self.reply(id))).into_response()
    }
}

impl From<ApiError> for RpcError {
    fn from(error: ApiError) -> Self {
        let code = match error.status.is_server_error() {
            true => INTERNAL_ERROR,
            false => INVALID_PARAMS,
        };
        // Clients and proxies act on these without a look at the body.
        let status = match error.status {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE => error.status,
            _ => StatusCode::OK,
        };
        Self::new(code, error.detail).with_status(status)
    }
}

/// Returns the reply to a request that succeeded.
pub(crate) fn success(id: &RpcId, result: Json) -> Json {
    json!({ "jsonrpc": "2.0", "id": id.0, "result": result })
}

/// A text that is not a message.
#[derive(Debug, PartialEq)]
pub(crate) struct RefusedMessage {
    pub(crate) id: Option<RpcId>,
    pub(crate) error: RpcError,
}

/// Reads a message.
pub(crate) fn read(text: &[u8]) -> Result<RpcMessage, Box<RefusedMessage>> {
    let refused = |id: Option<RpcId>, code: i64, message: &str| {
        Box::new(RefusedMessage {
            id,
            error: RpcError::new(code, message).with_status(StatusCode::BAD_REQUEST),
        })
    };
    if json_depth::is_too_deep(text) {
        return Err(refused(None, PARSE_ERROR, json_depth::TOO_DEEP));
    }
    let read: Json = serde_json::from_slice(text)
        .map_err(|_| refused(None, PARSE_ERROR, "the message is not valid JSON"))?;
    if read.is_array() {
        return Err(refused(
            None,
            INVALID_REQUEST,
            "batches are not supported; send one message",
        ));
    }
    let id = read.get("id").and_then(RpcId::read);
    if read.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(refused(id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    if read.get("id").is_some() && id.is_none() {
        return Err(refused(
            None,
            INVALID_REQUEST,
            "`id` must be a short text or a whole number",
        ));
    }
    let method = match read.get("method") {
        None => None,
        Some(Json::String(method)) => Some(method.clone()),
        Some(_) => return Err(refused(id, INVALID_REQUEST, "`method` must be a text")),
    };
    let params = match read.get("params") {
        None | Some(Json::Null) => json!({}),
        Some(params @ Json::Object(_)) => params.clone(),
        Some(_) => return Err(refused(id, INVALID_REQUEST, "`params` must be an object")),
    };
    match (method, id) {
        (Some(method), Some(id)) => Ok(RpcMessage::Request(RpcRequest { id, method, params })),
        (Some(method), None) => Ok(RpcMessage::Notification { method, params }),
        (None, Some(id)) => match (read.get("result"), read.get("error")) {
            (Some(result), None) => Ok(RpcMessage::Response {
                id,
                outcome: Ok(result.clone()),
            }),
            (None, Some(error)) => Ok(RpcMessage::Response {
                id,
                outcome: Err(error.clone()),
            }),
            _ => Err(refused(
                Some(id),
                INVALID_REQUEST,
                "the message has neither a `method` nor a `result`",
            )),
        },
        (None, None) => Err(refused(
            None,
            INVALID_REQUEST,
            "the message has no `method`",
        )),
    }
}

/// Longest text that is an id: replies repeat it.
const ID_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let read = |text: &str| super::read(text.as_bytes()).unwrap();
        let request = read(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        let RpcMessage::Request(request) = request else {
            panic!("{request:?}");
        };
        assert_eq!(request.params, json!({}));
        assert_eq!(
            success(&request.id, json!({})),
            json!({ "jsonrpc": "2.0", "id": 7, "result": {} })
        );
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"a","params":{}}"#),
            RpcMessage::Notification { .. }
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#),
            RpcMessage::Response { outcome: Ok(_), .. }
        ));
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let long_id = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"a"}}"#,
            "x".repeat(2_000)
        );
        for (text, code) in [
            ("", PARSE_ERROR),
            ("{", PARSE_ERROR),
            (deep.as_str(), PARSE_ERROR),
            (r#"{"jsonrpc":"2.0","id":1e999,"method":"a"}"#, PARSE_ERROR),
            ("null", INVALID_REQUEST),
            ("[]", INVALID_REQUEST),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, INVALID_REQUEST),
            (r#"{"id":1,"method":"a"}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
                INVALID_REQUEST,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, INVALID_REQUEST),
            (long_id.as_str(), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0"}"#, INVALID_REQUEST),
        ] {
            let refused = read(text.as_bytes()).unwrap_err();
            assert_eq!(refused.error.code, code, "{text}");
        }
    }
}
