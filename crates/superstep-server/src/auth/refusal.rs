//! What a refused caller receives: our form, or that of LangGraph's JavaScript server.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use serde_json::json;

use crate::error::ApiError;
use crate::routes::table::FoundRoute;
use crate::stream::sse;

/// The form of refusals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum RefusalForm {
    /// A status, and `{"detail": …}`.
    #[default]
    Json,
    /// 401 and 403 have plain text, and the stream of a run that the caller does not reach is a stream with one error event.
    JavaScript,
}

impl RefusalForm {
    /// Returns the response to a request that no handler gets.
    pub(super) fn refuse(self, refusal: ApiError) -> Response {
        let is_unauthenticated = refusal.status == StatusCode::UNAUTHORIZED;
        let is_refusal = is_unauthenticated || refusal.status == StatusCode::FORBIDDEN;
        let mut response = match self {
            Self::JavaScript if is_refusal => (refusal.status, refusal.detail).into_response(),
            Self::JavaScript | Self::Json => refusal.into_response(),
        };
        if is_unauthenticated {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    /// Returns a handler's response in this form.
    pub(super) fn convert(self, found: FoundRoute, response: Response) -> Response {
        let is_joined_stream = matches!(found, FoundRoute::Listed(route)
            if (route.method, route.path) == JOINED_STREAM);
        match self {
            Self::JavaScript if is_joined_stream && response.status() == StatusCode::NOT_FOUND => {
                not_found_stream()
            }
            Self::JavaScript | Self::Json => response,
        }
    }
}

/// The same for a run that does not exist and for one that belongs to another caller.
fn not_found_stream() -> Response {
    let refusal = ApiError::no_run();
    let message = format!("{}: {}", refusal.status.as_u16(), refusal.detail);
    let data = json!({ "error": "Error", "message": message });
    let event = Bytes::from(format!("event: error\r\ndata: {data}\r\n\r\n"));
    sse::respond(stream::iter([Ok(event)]))
}

const JOINED_STREAM: (&str, &str) = ("get", "/threads/{thread_id}/runs/{run_id}/stream");
