//! Errors of model calls, and whether to retry.

use std::time::Duration;

use crate::name::{ModelName, NotAModel};

/// Error of a model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Too many requests; the server may have said how long to wait.
    #[error("`{model}` is rate limited{}", after(*.retry_after))]
    RateLimited {
        /// Model that was called.
        model: ModelName,
        /// How long to wait, if the server said so.
        retry_after: Option<Duration>,
    },
    /// The server responded but cannot answer now.
    #[error("`{model}` cannot answer now (status {status}): {why}")]
    Unavailable {
        /// Model that was called.
        model: ModelName,
        /// HTTP status of the response.
        status: u16,
        /// Error text of the server.
        why: String,
        /// How long to wait, if the server said so.
        retry_after: Option<Duration>,
    },
    /// The connection failed, or broke before an answer started.
    #[error("`{model}` was not reached: {why}; is the server running, and is its address right?")]
    Unreachable {
        /// Model that was called.
        model: ModelName,
        /// Error of the connection.
        why: String,
    },
    /// No data arrived in time.
    #[error("`{model}` gave nothing for {} s", .waited.as_secs_f32())]
    TimedOut {
        /// Model that was called.
        model: ModelName,
        /// How long we waited.
        waited: Duration,
    },
    /// The stream ended before the answer was complete.
    #[error("the answer broke off before its end")]
    Cut,
    /// The API key is missing or invalid.
    #[error("{}", unauthorized(.model, *.status, .key))]
    Unauthorized {
        /// Model that was called.
        model: ModelName,
        /// HTTP status of the response; 0 if there was no key to send.
        status: u16,
        /// Environment variable that holds the key.
        key: &'static str,
    },
    /// The conversation exceeds the context size.
    #[error("the conversation does not fit `{model}`: {why}")]
    TooLong {
        /// Model that was called.
        model: ModelName,
        /// Error text of the server.
        why: String,
    },
    /// The server rejected the request, and will reject it again.
    #[error("`{model}` refused the request{}: {why}", in_status(*.status))]
    Refused {
        /// Model that was called.
        model: ModelName,
        /// HTTP status of the response; 0 if the request was never sent.
        status: u16,
        /// Error text of the server, or what is wrong with the request.
        why: String,
    },
    /// A type cannot be asked for, because its schema has alternatives. The request was not sent.
    #[error(
        "no model can be asked for `{name}`: {why}; use structs of plain values, lists and enums without data"
    )]
    UnsupportedSchema {
        /// Name of the type.
        name: String,
        /// The part of its schema that is not supported.
        why: String,
    },
    /// The reply exceeds one of the [`ReplyLimits`](crate::ReplyLimits).
    #[error(
        "the reply of `{model}` was cut off: it has more than {limit}; a model that repeats itself does that, or a server that is broken (raise `ReplyLimits` if it is meant to)"
    )]
    ReplyTooLarge {
        /// Model that was called.
        model: ModelName,
        /// The limit that was exceeded, in words.
        limit: String,
    },
    /// The server's answer could not be parsed.
    #[error("`{model}` returned an invalid answer: {why}")]
    Unreadable {
        /// Model that was called.
        model: ModelName,
        /// Why it could not be parsed.
        why: String,
    },
    /// A script or a recording has no reply for this request, or has one that was never requested.
    #[error("`{model}` has no reply for `{label}`: {why}")]
    Unexpected {
        /// Name of the script or recording.
        model: ModelName,
        /// Label of the request, or of the unused reply.
        label: String,
        /// What the file contains instead.
        why: String,
    },
    /// A script or a recording cannot be read or written.
    #[error("`{model}`: {why}")]
    BadFile {
        /// Name of the script or recording.
        model: ModelName,
        /// What is wrong with the file.
        why: String,
    },
    /// The model is on a server, and this program was built without the feature `remote`.
    #[error(
        "`{model}` is on a server, and this program was built without `superstep-llm`'s feature `remote`; enable it, or use a script or a cassette"
    )]
    NotBuiltIn {
        /// Model that was to be opened.
        model: ModelName,
    },
    /// The text is not the name of a model.
    #[error(transparent)]
    InvalidName(#[from] NotAModel),
}

impl ModelError {
    /// Codes of all variants.
    pub const CODES: &'static [&'static str] = &[
        "model-rate-limited",
        "model-unavailable",
        "model-unreachable",
        "model-timed-out",
        "model-cut",
        "model-unauthorized",
        "model-too-long",
        "model-refused",
        "model-unsupported-schema",
        "model-reply-too-large",
        "model-unreadable",
        "model-unexpected",
        "model-bad-file",
        "model-not-built-in",
        "model-invalid-name",
    ];

    /// Returns the stable code of this error: the name of its page in the error index.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "model-rate-limited",
            Self::Unavailable { .. } => "model-unavailable",
            Self::Unreachable { .. } => "model-unreachable",
            Self::TimedOut { .. } => "model-timed-out",
            Self::Cut => "model-cut",
            Self::Unauthorized { .. } => "model-unauthorized",
            Self::TooLong { .. } => "model-too-long",
            Self::Refused { .. } => "model-refused",
            Self::UnsupportedSchema { .. } => "model-unsupported-schema",
            Self::ReplyTooLarge { .. } => "model-reply-too-large",
            Self::Unreadable { .. } => "model-unreadable",
            Self::Unexpected { .. } => "model-unexpected",
            Self::BadFile { .. } => "model-bad-file",
            Self::NotBuiltIn { .. } => "model-not-built-in",
            Self::InvalidName(_) => "model-invalid-name",
        }
    }

    /// Returns whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Cut
            | Self::Unreadable { .. } => true,
            Self::Unauthorized { .. }
            | Self::TooLong { .. }
            | Self::Refused { .. }
            | Self::UnsupportedSchema { .. }
            | Self::ReplyTooLarge { .. }
            | Self::Unexpected { .. }
            | Self::BadFile { .. }
            | Self::NotBuiltIn { .. }
            | Self::InvalidName(_) => false,
        }
    }

    /// Returns how long the server asked us to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}

fn unauthorized(model: &ModelName, status: u16, key: &str) -> String {
    match status {
        0 => format!("`{model}` needs a key: {key} is not set"),
        status => format!(
            "`{model}` refused the key in {key} (status {status}); set {key} to a key that is valid for it"
        ),
    }
}

fn in_status(status: u16) -> String {
    match status {
        0 => String::new(),
        status => format!(" (status {status})"),
    }
}

fn after(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!("; it asks to wait {} s", wait.as_secs_f32()),
        None => String::new(),
    }
}
