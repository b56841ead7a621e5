//! What can go wrong with a call, and whether to try again.

use std::time::Duration;

use crate::name::ModelName;

/// A call that gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Too many calls; the server may have said how long to wait.
    #[error("`{model}` is rate limited{}", after(*.retry_after))]
    RateLimited {
        /// Who.
        model: ModelName,
        /// How long to wait, if it said.
        retry_after: Option<Duration>,
    },
    /// The server is there and cannot answer now.
    #[error("`{model}` cannot answer now (status {status}): {why}")]
    Unavailable {
        /// Who.
        model: ModelName,
        /// The status of its response.
        status: u16,
        /// What it said.
        why: String,
        /// How long to wait, if it said.
        retry_after: Option<Duration>,
    },
    /// Nobody was reached, or the line broke before an answer began.
    #[error("`{model}` was not reached: {why}; is the server running, and is its address right?")]
    Unreachable {
        /// Who.
        model: ModelName,
        /// What happened.
        why: String,
    },
    /// Nothing came in time.
    #[error("`{model}` gave nothing for {} s", .waited.as_secs_f32())]
    TimedOut {
        /// Who.
        model: ModelName,
        /// How long we waited.
        waited: Duration,
    },
    /// The answer broke off in the middle.
    #[error("the answer broke off before its end")]
    Cut,
    /// The key is missing or wrong.
    #[error("`{model}` refused our key (status {status}); set {key} to one that is valid for it")]
    Unauthorized {
        /// Who.
        model: ModelName,
        /// The status of its response, 0 if there was no key to send.
        status: u16,
        /// The environment variable that holds the key.
        key: &'static str,
    },
    /// The conversation is too long.
    #[error("the conversation does not fit `{model}`: {why}")]
    TooLong {
        /// Who.
        model: ModelName,
        /// What it said.
        why: String,
    },
    /// The server will never take this request.
    #[error("`{model}` refused the request (status {status}): {why}")]
    Refused {
        /// Who.
        model: ModelName,
        /// The status of its response, 0 if it never left.
        status: u16,
        /// What it said.
        why: String,
    },
    /// The reply is longer than a reply may be.
    #[error(
        "the reply of `{model}` was cut off: it has more than {limit}; a model that repeats itself does that, or a server that is broken (raise `ReplyLimits` if it is meant to)"
    )]
    ReplyTooLarge {
        /// Who.
        model: ModelName,
        /// The limit that it ran into.
        limit: String,
    },
    /// The server's answer could not be read.
    #[error("`{model}` returned an invalid answer: {why}")]
    Unreadable {
        /// Who.
        model: ModelName,
        /// What was wrong with it.
        why: String,
    },
    /// A script or a recording has no reply for this request.
    #[error("`{model}` has no reply for `{label}`: {why}")]
    Unexpected {
        /// Which.
        model: ModelName,
        /// Who asked.
        label: String,
        /// What it has instead.
        why: String,
    },
    /// A script or a recording cannot be read or written.
    #[error("`{model}`: {why}")]
    BadFile {
        /// Which.
        model: ModelName,
        /// What is wrong with it.
        why: String,
    },
}

impl ModelError {
    /// All codes.
    pub const CODES: &'static [&'static str] = &[
        "model-rate-limited",
        "model-unavailable",
        "model-unreachable",
        "model-timed-out",
        "model-cut",
        "model-unauthorized",
        "model-too-long",
        "model-refused",
        "model-reply-too-large",
        "model-unreadable",
        "model-unexpected",
        "model-bad-file",
    ];

    /// The stable code of this error: the name of its page in the error index.
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
            Self::ReplyTooLarge { .. } => "model-reply-too-large",
            Self::Unreadable { .. } => "model-unreadable",
            Self::Unexpected { .. } => "model-unexpected",
            Self::BadFile { .. } => "model-bad-file",
        }
    }

    /// Whether the same request may do better later.
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
            | Self::ReplyTooLarge { .. }
            | Self::Unexpected { .. }
            | Self::BadFile { .. } => false,
        }
    }

    /// How long the server asked us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}

fn after(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!("; it asks to wait {} s", wait.as_secs_f32()),
        None => String::new(),
    }
}
