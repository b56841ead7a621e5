//! `Idempotency-Key`: a request that creates something can be sent again without a second effect.
//!
//! The first request with a key stores a fingerprint of everything that it asks for. The ids of what it creates follow from the caller,
//! the key and the time of that first request. So a request that is sent again finds what exists, also if the first one got only half
//! way or its reply was lost, and a different request under the same key is refused.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use http::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use superstep::Timestamp;
use superstep::registry::{ClaimedRequest, RequestKey};
use uuid::Uuid;

use crate::caller::{Caller, read_body};
use crate::error::{ApiError, ApiResult};
use crate::{App, Shared};

/// The key of a request that creates something, from which the ids of what it creates follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreationKey {
    seed: [u8; 32],
    /// When the first request with the key came.
    at: Timestamp,
}

impl CreationKey {
    fn new(caller: &Caller, key: &str, at: Timestamp) -> Self {
        let at_bytes = at.0.to_le_bytes();
        let parts = [
            caller.tenant.as_bytes(),
            caller.principal.as_bytes(),
            key.as_bytes(),
            // After its expiry, a key names something else.
            &at_bytes,
        ];
        Self {
            seed: hash_of(&parts),
            at,
        }
    }

    /// Returns the id of the thing of this kind that the request creates. It sorts by time, as those of other requests do.
    pub(crate) fn id(&self, kind: &str) -> Uuid {
        let hash = hash_of(&[&self.seed, kind.as_bytes()]);
        let mut entropy = [0; 10];
        entropy.copy_from_slice(&hash[..10]);
        let ms = u64::try_from(self.at.0).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(ms, &entropy).into_uuid()
    }

    /// Returns the key of one of several things that the request creates.
    pub(crate) fn nth(&self, place: usize) -> Self {
        Self {
            seed: hash_of(&[&self.seed, &(place as u64).to_le_bytes()]),
            ..self.clone()
        }
    }

    /// Whether a request with this key created what was created at this time, under the id that the request has for it.
    pub(crate) fn created(&self, at: Timestamp) -> bool {
        at >= self.at
    }
}

/// Returns the id of what a request creates: a new one unless the request has a key.
pub(crate) fn new_id(key: Option<&CreationKey>, kind: &str) -> Uuid {
    key.map_or_else(Uuid::now_v7, |key| key.id(kind))
}

/// The JSON body of a request that creates something, and the key that it may have. An empty body is read as `{}`.
#[derive(Debug)]
pub(crate) struct Keyed<T> {
    pub(crate) key: Option<CreationKey>,
    pub(crate) body: T,
}

impl<T: DeserializeOwned + Send> FromRequest<App> for Keyed<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, app).await?;
        // Most requests have no key, and need no copy of their head.
        let head = parts.headers.contains_key(HEADER).then(|| {
            let path = parts.uri.path().to_owned();
            (parts.headers.clone(), parts.method.clone(), path)
        });
        let bytes = Bytes::from_request(Request::from_parts(parts, body), app).await;
        let bytes = bytes.map_err(|error| ApiError::new(error.status(), error.body_text()))?;
        // Before the key is stored: a body that is not valid does not use it up.
        let body = read_body(&bytes)?;
        let key = match &head {
            Some((headers, method, path)) => {
                let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
                claim(app, &caller, headers, method, path, text).await?
            }
            None => None,
        };
        Ok(Self { key, body })
    }
}

/// Stores the key of a request, if it has one, and returns it. Refuses a request whose key belongs to another one.
pub(crate) async fn claim(
    app: &Shared,
    caller: &Caller,
    headers: &HeaderMap,
    method: &Method,
    path: &str,
    body: &[u8],
) -> ApiResult<Option<CreationKey>> {
    let Some(key) = read_key(headers)? else {
        return Ok(None);
    };
    let body: Json = serde_json::from_slice(body).map_err(invalid)?;
    let now = app.runtime.now();
    let request = RequestKey {
        tenant: caller.tenant.clone(),
        principal: caller.principal.clone(),
        key: key.to_owned(),
        fingerprint: fingerprint(method, path, &body),
        at: now,
        expires: now.plus_ms(LIFETIME_MS),
    };
    let at = match app.registry().claim_request(&request).await? {
        ClaimedRequest::New => now,
        ClaimedRequest::Repeated(at) => at,
        ClaimedRequest::Different => {
            return Err(ApiError::invalid(format!(
                "The `Idempotency-Key` `{key}` was used for a different request; use a new key"
            )));
        }
    };
    Ok(Some(CreationKey::new(caller, key, at)))
}

fn invalid(error: serde_json::Error) -> ApiError {
    ApiError::invalid(format!("The request body is not valid: {error}"))
}

fn read_key(headers: &HeaderMap) -> ApiResult<Option<&str>> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let is_only = values.next().is_none();
    let is_key = |text: &&str| {
        (1..=KEY_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    };
    let text = value.to_str().ok().filter(is_key).filter(|_| is_only);
    match text {
        Some(text) => Ok(Some(text)),
        None => Err(ApiError::invalid(format!(
            "`Idempotency-Key` must be one text of 1 to {KEY_BYTES_MAX} printable ASCII characters"
        ))),
    }
}

/// Returns the hash of everything that a request asks for. How its body is written down does not matter.
fn fingerprint(method: &Method, path: &str, body: &Json) -> [u8; 32] {
    let mut canonical = String::new();
    write_canonical(body, &mut canonical);
    hash_of(&[
        method.as_str().as_bytes(),
        path_of_run(path).as_bytes(),
        canonical.as_bytes(),
    ])
}

/// Returns the path under which a run is created in the background, for every path that creates one. A run is the same one however
/// its caller follows it: who lost a stream may ask for the run without it.
fn path_of_run(path: &str) -> &str {
    let short = path.strip_suffix("/wait");
    let short = short.or_else(|| path.strip_suffix("/stream"));
    short
        .filter(|short| short.ends_with("/runs"))
        .unwrap_or(path)
}

/// Writes a value with the fields of objects in the order of their names.
fn write_canonical(value: &Json, out: &mut String) {
    match value {
        Json::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in fields {
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// Returns the hash of several parts. Their lengths are hashed as well, so that no other parts have the same hash.
fn hash_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

const HEADER: &str = "idempotency-key";
const KEY_BYTES_MAX: usize = 255;
/// How long a key belongs to its request: a day.
const LIFETIME_MS: u64 = 24 * 60 * 60 * 1_000;

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fingerprint_depends_on_what_is_asked_and_not_on_how_it_is_written() {
        let of = |text: &str| {
            let body = serde_json::from_str(text).unwrap();
            fingerprint(&Method::POST, "/threads", &body)
        };
        let same = of(r#"{"a": 1, "b": [true, "x"]}"#);
        assert_eq!(of(r#"{ "b":[true,"\u0078"],"a":1 }"#), same);
        for other in [
            r#"{"a": 1, "b": ["x", true]}"#,
            r#"{"a": "1", "b": [true, "x"]}"#,
            r#"{"a": 1}"#,
            r#"{}"#,
        ] {
            assert_ne!(of(other), same, "{other}");
        }
        let elsewhere = fingerprint(&Method::POST, "/runs", &json!({}));
        assert_ne!(elsewhere, of("{}"));
    }

    #[test]
    fn ids_follow_from_tenant_principal_key_and_time() {
        let caller = |tenant: &str, principal: &str| Caller {
            tenant: tenant.to_owned(),
            principal: principal.to_owned(),
            ..Caller::default()
        };
        let id = |tenant, principal, key, at| {
            let key = CreationKey::new(&caller(tenant, principal), key, Timestamp(at));
            key.id("thread")
        };
        let first = id("t", "ann", "k", 7);
        assert_eq!(id("t", "ann", "k", 7), first);
        assert_eq!(first.get_version_num(), 7);
        for other in [
            id("u", "ann", "k", 7),
            id("t", "bob", "k", 7),
            id("t", "ann", "l", 7),
            id("t", "ann", "k", 8),
            // The same letters, divided otherwise.
            id("ta", "nn", "k", 7),
        ] {
            assert_ne!(other, first);
        }
        let key = CreationKey::new(&caller("t", "ann"), "k", Timestamp(7));
        assert_ne!(key.id("run"), first);
        assert_ne!(key.nth(0).id("thread"), key.nth(1).id("thread"));
    }

    #[test]
    fn a_key_is_short_and_printable() {
        let read = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_bytes(value).unwrap());
            read_key(&headers).map(|key| key.map(str::to_owned))
        };
        assert_eq!(read(b"k 1").unwrap().as_deref(), Some("k 1"));
        assert!(read(&[b'k'; 255]).is_ok());
        for bad in [&b""[..], &[b'k'; 256], "k\u{e4}".as_bytes(), b"a\tb"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
