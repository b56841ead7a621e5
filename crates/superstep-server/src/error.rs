//! Errors as clients read them: a status, and `{"detail": "…"}`.
//!
//! What the server is to blame for is logged, and the client gets only its code: the sentence may name hosts and files.

use std::time::Duration;

use axum::Json as JsonBody;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::RETRY_AFTER;
use serde_json::{Map, Value as Json};
use superstep::__private::chain;
use superstep::error::{CheckpointError, NameError, OpenError, ValueError};
use superstep::store::StoreError;
use superstep::{DriveError, ScheduleError, ThreadId};

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    /// After how many seconds the request may be sent again, if that is known.
    pub(crate) retry_after: Option<u64>,
    /// What the body says besides the detail.
    fields: Map<String, Json>,
}

/// Result of a handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
            fields: Map::new(),
        }
    }

    /// Adds a field to the body.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The caller's tenant has used up what it may: 429.
    pub(crate) fn too_many(detail: impl Into<String>, after: Duration) -> Self {
        let seconds = after.as_secs_f64().ceil().max(1.0);
        Self {
            // A cast saturates.
            retry_after: Some(seconds as u64),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail)
        }
    }

    /// The request cannot be carried out as it is: 400.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// What the request names does not exist: 404.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The thread or assistant does not allow the request now: 409.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// The request is not valid: 422.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(crate) fn no_thread(thread: &ThreadId) -> Self {
        Self::not_found(format!("Thread with ID {} not found", thread.name()))
    }

    pub(crate) fn no_run() -> Self {
        Self::not_found("Run not found")
    }

    /// The thread has an active run, and the request cannot wait for its end.
    pub(crate) fn busy() -> Self {
        Self::conflict(
            "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.",
        )
    }

    /// Logs an error of the server, and returns what the client learns of it.
    pub(crate) fn internal(
        status: StatusCode,
        code: &'static str,
        error: &(dyn std::error::Error + 'static),
    ) -> Self {
        tracing::error!(error = %chain(error), code, "request failed");
        Self::new(status, code)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = self.fields;
        body.insert("detail".to_owned(), self.detail.into());
        let body = JsonBody(Json::Object(body));
        let is_unavailable = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let seconds = self.retry_after;
        let mut response = (self.status, body).into_response();
        if let Some(seconds) = seconds.or(is_unavailable.then_some(RETRY_SECONDS)) {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<DriveError> for ApiError {
    fn from(error: DriveError) -> Self {
        match &error {
            DriveError::Checkpoint(CheckpointError::NoThread { thread }) => Self::no_thread(thread),
            DriveError::Open(OpenError::Busy { .. }) => Self::busy(),
            DriveError::Name(_)
            | DriveError::AnswerRefused { .. }
            | DriveError::Open(OpenError::BadInput { .. }) => Self::invalid(chain(&error)),
            _ => {
                let status = StatusCode::from_u16(error.http_status())
                    .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                match status.is_server_error() {
                    true => Self::internal(status, error.code(), &error),
                    false => Self::new(status, chain(&error)),
                }
            }
        }
    }
}

impl From<CheckpointError> for ApiError {
    fn from(error: CheckpointError) -> Self {
        DriveError::from(error).into()
    }
}

impl From<OpenError> for ApiError {
    fn from(error: OpenError) -> Self {
        DriveError::from(error).into()
    }
}

impl From<NameError> for ApiError {
    fn from(error: NameError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ValueError> for ApiError {
    fn from(error: ValueError) -> Self {
        match &error {
            ValueError::NotFinite | ValueError::Encode { .. } => Self::invalid(chain(&error)),
            // A stored value that this program cannot read.
            _ => Self::internal(StatusCode::INTERNAL_SERVER_ERROR, error.code(), &error),
        }
    }
}

impl From<ScheduleError> for ApiError {
    fn from(error: ScheduleError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Namespace { .. }
            | StoreError::Key { .. }
            | StoreError::NullValue { .. } => Self::invalid(error.to_string()),
            StoreError::Store { .. } => {
                Self::internal(StatusCode::SERVICE_UNAVAILABLE, error.code(), &error)
            }
            _ => Self::internal(StatusCode::INTERNAL_SERVER_ERROR, error.code(), &error),
        }
    }
}

/// After how many seconds a client may try again what could not be done now.
const RETRY_SECONDS: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_reads_the_sentence_of_its_own_mistakes_and_the_code_of_ours() {
        let thread = ThreadId::new("0190a6b2-0000-7000-8000-000000000001").unwrap();
        let missing = ApiError::from(CheckpointError::NoThread { thread });
        assert_eq!(missing.status, StatusCode::NOT_FOUND);
        assert_eq!(
            missing.detail,
            "Thread with ID 0190a6b2-0000-7000-8000-000000000001 not found"
        );
        let broken = ApiError::from(CheckpointError::store("/srv/secret.db is locked"));
        assert_eq!(broken.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(broken.detail, "checkpoint-store");
        assert_eq!(broken.into_response().headers()[RETRY_AFTER], "1");
        assert!(!missing.into_response().headers().contains_key(RETRY_AFTER));
    }
}
