//! Conversion of errors, including whether to retry.

use std::time::Duration;

use serde_json::Value as Json;

use super::way;
use crate::error::ModelError;
use crate::name::ModelName;
use crate::secret::Secret;

pub(super) fn failure(model: &ModelName, error: &genai::Error, key: Option<&Secret>) -> ModelError {
    // `genai` wraps a failure before the first event once more.
    if let genai::Error::WebStream { error, .. } = error
        && let Some(inner) = error.downcast_ref::<genai::Error>()
    {
        return failure(model, inner, key);
    }
    let model = model.clone();
    let why = shown(&told(error), key);
    let retry_after = error.headers().and_then(retry_after);
    let Some(status) = error.status().map(|status| status.as_u16()) else {
        return match error {
            genai::Error::StreamParse { .. }
            | genai::Error::InvalidJsonResponseElement { .. }
            | genai::Error::NoChatResponse { .. }
            | genai::Error::ChatResponseGeneration { .. }
            | genai::Error::SerdeJson(_)
            | genai::Error::JsonValueExt(_) => ModelError::Unreadable { model, why },
            genai::Error::WebStream { .. }
            | genai::Error::WebModelCall { .. }
            | genai::Error::WebAdapterCall { .. } => ModelError::Unreachable { model, why },
            genai::Error::ChatResponse { .. } => ModelError::Unavailable {
                model,
                status: 200,
                why,
                retry_after,
            },
            _ => ModelError::Refused {
                model,
                status: 0,
                why,
            },
        };
    };
    of_status(&model, status, why, retry_after)
}

/// Returns the part of a server's text that an error keeps. Removes the key before truncating, because half a key is a secret
/// too.
pub(crate) fn shown(why: &str, key: Option<&Secret>) -> String {
    let why = key.map_or_else(|| why.to_owned(), |key| key.scrub(why));
    why.chars().take(WHY_CHARS_MAX).collect()
}

/// Converts an HTTP status into an error.
pub(crate) fn of_status(
    model: &ModelName,
    status: u16,
    why: String,
    retry_after: Option<Duration>,
) -> ModelError {
    let model = model.clone();
    let key = way(model.provider()).map_or("its key", |way| way.key_variable);
    let is_too_long = TOO_LONG
        .iter()
        .any(|word| why.to_lowercase().contains(word));
    match status {
        429 => ModelError::RateLimited { model, retry_after },
        401 | 403 => ModelError::Unauthorized { model, status, key },
        408 | 409 | 500..=599 => ModelError::Unavailable {
            model,
            status,
            why,
            retry_after,
        },
        400 | 413 if is_too_long => ModelError::TooLong { model, why },
        _ => ModelError::Refused { model, status, why },
    }
}

/// Returns the server's own text if it sent any: the rest of the error contains the request, which may be long and private.
fn told(error: &genai::Error) -> String {
    let body = match error {
        genai::Error::HttpError { body, .. } => body.clone(),
        genai::Error::WebModelCall { webc_error, .. }
        | genai::Error::WebAdapterCall { webc_error, .. } => match webc_error {
            genai::webc::Error::ResponseFailedStatus { body, .. } => body.clone(),
            other => return other.to_string(),
        },
        genai::Error::WebStream { cause, .. } => return cause.clone(),
        genai::Error::ChatResponse { body, .. } => body.to_string(),
        genai::Error::ChatResponseGeneration { cause, .. } => return cause.clone(),
        other => return other.to_string(),
    };
    let json: Option<Json> = serde_json::from_str(&body).ok();
    let said = json.as_ref().and_then(|json| {
        let said = json.pointer("/error/message").or_else(|| json.get("error"));
        said.or_else(|| json.get("message")).and_then(Json::as_str)
    });
    said.map_or(body.clone(), str::to_owned)
}

/// Reads the wait in seconds, or in milliseconds from the provider-specific header. Ignores dates: the servers we know send
/// seconds.
fn retry_after(headers: &reqwest::header::HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = match number("retry-after-ms") {
        Some(ms) => ms / 1_000.0,
        None => number("retry-after")?,
    };
    Duration::try_from_secs_f64(seconds).ok()
}
/// How providers say that a conversation does not fit.
const TOO_LONG: [&str; 5] = [
    "context length",
    "context size",
    "context window",
    "too long",
    "exceeds the available context",
];

/// How much of a server's text an error keeps.
const WHY_CHARS_MAX: usize = 500;
