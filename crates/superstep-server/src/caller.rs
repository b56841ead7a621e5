//! Who sends a request, and the extractors that every route uses: ids in paths, JSON bodies, query strings.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use http::HeaderMap;
use http::request::Parts;
use serde::de::DeserializeOwned;
use superstep::{AssistantId, CronId, DeliveryId, RunId, ThreadId};
use uuid::Uuid;

use crate::App;
use crate::auth::Credential;
use crate::error::{ApiError, ApiResult};
use crate::files::ThreadFilePath;
use crate::permission::{Permission, Permissions};
use crate::{json_depth, wire};

/// Who sends a request. A server without authentication has one caller: of the unnamed tenant, without a name, who may do everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) tenant: String,
    /// Name of the caller; may be empty.
    pub(crate) principal: String,
    pub(crate) permissions: Permissions,
    /// Whose things the caller reaches; `None` for those of all. See [`crate::owner`].
    pub(crate) owner: Option<String>,
    /// What it authenticated with.
    pub(crate) credential: Credential,
}

impl Default for Caller {
    fn default() -> Self {
        Self {
            tenant: String::new(),
            principal: String::new(),
            permissions: Permissions::ALL,
            owner: None,
            credential: Credential::None,
        }
    }
}

impl Caller {
    /// Refuses a request for which the caller lacks a permission.
    pub(crate) fn require(&self, permission: Permission) -> ApiResult<()> {
        self.require_any(&[permission])
    }

    /// Returns the thread of the caller's tenant with this id, which need not exist, and may belong to another caller. What comes
    /// from a path is a [`ThreadPath`], which checks that too.
    pub(crate) fn thread(&self, text: &str) -> ApiResult<ThreadId> {
        let id = read_uuid(text)
            .ok_or_else(|| ApiError::invalid("Invalid thread ID: must be a UUID"))?;
        Ok(ThreadId::of_tenant(&self.tenant, &id.to_string())?)
    }

    /// Returns a new thread id, which sorts by the time of its creation.
    pub(crate) fn new_thread(&self) -> ApiResult<ThreadId> {
        Ok(ThreadId::of_tenant(
            &self.tenant,
            &Uuid::now_v7().to_string(),
        )?)
    }

    /// Returns a thread id for a copy of a thread, in which checkpoints have the same ids. It is made from a new id.
    pub(crate) fn copy_of(&self, of: &ThreadId, new: Uuid) -> ApiResult<ThreadId> {
        let name = wire::name_of_copy(of, new);
        Ok(ThreadId::of_tenant(&self.tenant, &name)?)
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        match parts.extensions.get::<Self>() {
            Some(caller) => Ok(caller.clone()),
            None if app.authenticator.is_none() => Ok(Self::default()),
            // A route that the check of callers does not cover must not be open.
            None => Err(ApiError::unauthenticated()),
        }
    }
}

/// Reads a header; `None` if the request does not have it.
pub(crate) fn header_text(headers: &HeaderMap, name: &'static str) -> ApiResult<Option<String>> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => Err(ApiError::invalid(format!(
            "The header `{name}` is not text"
        ))),
    }
}

/// Reads a run's id from a path or a body.
pub(crate) fn run_id(text: &str) -> ApiResult<RunId> {
    let id = read_uuid(text).ok_or_else(|| ApiError::invalid("Invalid run ID: must be a UUID"))?;
    Ok(RunId::from_bytes(id.into_bytes()))
}

/// Reads a cron's id from a path.
pub(crate) fn cron_id(text: &str) -> ApiResult<CronId> {
    let id = read_uuid(text).ok_or_else(|| ApiError::invalid("Invalid cron ID: must be a UUID"))?;
    Ok(CronId::from_bytes(id.into_bytes()))
}

/// Reads a delivery's id from a path.
pub(crate) fn delivery_id(text: &str) -> ApiResult<DeliveryId> {
    let id =
        read_uuid(text).ok_or_else(|| ApiError::invalid("Invalid delivery ID: must be a UUID"))?;
    Ok(DeliveryId::from_bytes(id.into_bytes()))
}

/// Reads an assistant's id; `None` if the text is not a UUID.
pub(crate) fn assistant_id(text: &str) -> Option<AssistantId> {
    let id = read_uuid(text)?;
    Some(AssistantId::from_bytes(id.into_bytes()))
}

fn read_uuid(text: &str) -> Option<Uuid> {
    // The other forms that the parser takes (without hyphens, in braces) would be second names of one thread.
    (text.len() == 36).then(|| Uuid::parse_str(text).ok())?
}

/// The thread that a path names as `{thread_id}`.
#[derive(Debug)]
pub(crate) struct ThreadPath(pub(crate) ThreadId);

impl FromRequestParts<App> for ThreadPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let (thread, _) = thread_of(parts, app).await?;
        Ok(Self(thread))
    }
}

/// The thread and the run that a path names as `{thread_id}` and `{run_id}`.
#[derive(Debug)]
pub(crate) struct RunPath(pub(crate) ThreadId, pub(crate) RunId);

impl FromRequestParts<App> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let (caller, thread, names) = names_of(parts, app).await?;
        let run = run_id(&named(&names, "run_id")?)?;
        // A run of another caller is answered like one that does not exist, whether or not its thread does.
        let checked = caller.check_thread(app, &thread).await;
        checked.map_err(|error| match error == ApiError::no_thread(&thread) {
            true => ApiError::no_run(),
            false => error,
        })?;
        Ok(Self(thread, run))
    }
}

/// The thread and the file that a path names as `{thread_id}` and `{*path}`.
#[derive(Debug)]
pub(crate) struct FilePath(pub(crate) ThreadId, pub(crate) ThreadFilePath);

impl FromRequestParts<App> for FilePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let (thread, names) = thread_of(parts, app).await?;
        let path = ThreadFilePath::parse(&named(&names, "path")?)?;
        Ok(Self(thread, path))
    }
}

type PathNames = BTreeMap<String, String>;

/// Returns the thread that a path names, if it is not another caller's, with all that the path names.
async fn thread_of(parts: &mut Parts, app: &App) -> ApiResult<(ThreadId, PathNames)> {
    let (caller, thread, names) = names_of(parts, app).await?;
    caller.check_thread(app, &thread).await?;
    Ok((thread, names))
}

/// Returns the caller, the thread that a path names, and all that the path names.
async fn names_of(parts: &mut Parts, app: &App) -> ApiResult<(Caller, ThreadId, PathNames)> {
    let caller = Caller::from_request_parts(parts, app).await?;
    let found = Path::<PathNames>::from_request_parts(parts, app).await;
    let Path(names) = found.map_err(|error| ApiError::invalid(error.body_text()))?;
    let thread = caller.thread(&named(&names, "thread_id")?)?;
    Ok((caller, thread, names))
}

fn named(names: &PathNames, name: &str) -> ApiResult<String> {
    let found = names.get(name);
    let value = found.ok_or_else(|| ApiError::not_found("Not Found"))?;
    Ok(value.clone())
}

/// A JSON body. An empty body is read as `{}`.
#[derive(Debug)]
pub(crate) struct Payload<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Payload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| ApiError::new(error.status(), error.body_text()))?;
        Ok(Self(read_body(&bytes)?))
    }
}

/// Reads a JSON body. An empty body is read as `{}`.
pub(crate) fn read_body<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let text = if bytes.is_empty() { b"{}" } else { bytes };
    if json_depth::is_too_deep(text) {
        return Err(ApiError::invalid(json_depth::TOO_DEEP));
    }
    serde_json::from_slice(text)
        .map_err(|error| ApiError::invalid(format!("The request body is not valid: {error}")))
}

/// The fields of a query string, in order. Clients send lists in two forms: as repeated keys, and as one JSON list.
#[derive(Debug, Default)]
pub(crate) struct QueryFields(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryFields {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let read = axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, state);
        match read.await {
            Ok(axum::extract::Query(fields)) => Ok(Self(fields)),
            Err(error) => Err(ApiError::invalid(error.body_text())),
        }
    }
}

impl QueryFields {
    /// Returns the first value of a field.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns all values of a field, whichever form its list has.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(found, _)| found == name);
        let values = values.map(|(_, value)| value.as_str());
        values
            .flat_map(|value| match value.starts_with('[') {
                true => serde_json::from_str(value).unwrap_or_else(|_| vec![value.to_owned()]),
                false => value.split(',').map(str::to_owned).collect(),
            })
            .filter(|value: &String| !value.is_empty())
            .collect()
    }

    /// Whether a field is present and true: `true`, `1`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), Some("true" | "True" | "1"))
    }

    /// Returns a number.
    pub(crate) fn number(&self, name: &str) -> ApiResult<Option<u32>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(ApiError::invalid(format!("`{name}` is not a number"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_name() {
        let caller = Caller::default();
        let id = "0190a6b2-0000-7000-8000-00000000000a";
        assert_eq!(caller.thread(id).unwrap().name(), id);
        assert_eq!(caller.thread(&id.to_uppercase()).unwrap().name(), id);
        let refused = caller.thread(&id.replace('-', "")).unwrap_err();
        assert_eq!(refused.detail, "Invalid thread ID: must be a UUID");
    }

    #[test]
    fn lists_of_both_clients_are_read() {
        let fields = |pairs: &[(&str, &str)]| {
            let own = pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
            QueryFields(own.collect())
        };
        let python = fields(&[("select", "run_id"), ("select", "status")]);
        let js = fields(&[("select", r#"["run_id","status"]"#)]);
        assert_eq!(python.list("select"), ["run_id", "status"]);
        assert_eq!(js.list("select"), ["run_id", "status"]);
    }
}
