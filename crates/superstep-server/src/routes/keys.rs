//! API keys of the caller's tenant: create, list, revoke, replace. LangGraph's server has no such routes, so they are under
//! `/superstep`.

use axum::Json as JsonBody;
use axum::Router;
use axum::extract::{Path, State};
use axum::routing::{delete, get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use superstep::registry::ApiKey;
use superstep::{ApiKeyId, Timestamp};

use crate::auth::{ApiKeyError, ApiKeyRequest, Authenticator, IssuedApiKey};
use crate::caller::{Caller, Payload, QueryFields};
use crate::error::{ApiError, ApiResult};
use crate::permission::{Permission, Permissions};
use crate::routes::paging::page;
use crate::{App, Shared, wire};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/superstep/keys", get(list).post(create))
        .route("/superstep/keys/{key_id}", delete(revoke))
        .route("/superstep/keys/{key_id}/rotate", post(rotate))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateBody {
    permissions: Vec<String>,
    /// Default: the caller's own.
    principal: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    restricted: bool,
    expires_in_seconds: Option<u64>,
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Payload(body): Payload<CreateBody>,
) -> ApiResult<(StatusCode, JsonBody<Json>)> {
    let now = app.runtime.now();
    let permissions = read_permissions(&body.permissions)?;
    let request = ApiKeyRequest {
        tenant: caller.tenant.clone(),
        principal: body.principal.unwrap_or_else(|| caller.principal.clone()),
        name: body.name,
        permissions,
        is_restricted: body.restricted,
        expires: body.expires_in_seconds.map(|seconds| after(now, seconds)),
    };
    check_grant(&caller, permissions)?;
    let issued = issue(&app, request, now).await?;
    Ok((StatusCode::CREATED, JsonBody(with_secret(&issued))))
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    query: QueryFields,
) -> ApiResult<JsonBody<Vec<Json>>> {
    authenticator_of(&app)?;
    refuse_restricted(&caller)?;
    let page = page(query.number("limit")?, query.number("offset")?)?;
    let keys = app.registry().api_keys(&caller.tenant, page).await?;
    Ok(JsonBody(keys.iter().map(shown).collect()))
}

async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> ApiResult<StatusCode> {
    refuse_restricted(&caller)?;
    let key = find(&app, &caller, &id).await?;
    expire(&app, &caller, key.id, app.runtime.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RotateBody {
    /// How long the old key stays valid. Default: an hour.
    grace_seconds: Option<u64>,
}

/// Creates a key for the same caller with the same permissions, and lets the old one expire after a while.
async fn rotate(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Payload(body): Payload<RotateBody>,
) -> ApiResult<(StatusCode, JsonBody<Json>)> {
    let now = app.runtime.now();
    let old = find(&app, &caller, &id).await?;
    if !old.is_valid_at(now) {
        return Err(ApiError::conflict(
            "The key has expired; create another one instead",
        ));
    }
    let permissions = Permissions::from_number(old.permissions);
    check_grant(&caller, permissions)?;
    let request = ApiKeyRequest {
        tenant: old.tenant,
        principal: old.principal,
        name: old.name,
        permissions,
        is_restricted: old.is_restricted,
        expires: old.expires,
    };
    let issued = issue(&app, request, now).await?;
    // After the new key is stored: a failure between the two leaves the old key as it was.
    let grace = body.grace_seconds.unwrap_or(GRACE_SECONDS);
    expire(&app, &caller, old.id, after(now, grace)).await?;
    Ok((StatusCode::CREATED, JsonBody(with_secret(&issued))))
}

/// Refuses to manage keys on a server that lets everyone in: a key that a stranger makes now would be valid when the server
/// authenticates.
fn authenticator_of(app: &Shared) -> ApiResult<&Authenticator> {
    let authenticator = app.authenticator.as_ref();
    authenticator.ok_or_else(|| {
        ApiError::bad_request(
            "This server does not authenticate its callers, so it manages no keys",
        )
    })
}

/// Refuses to make a key that can do more than the caller.
fn check_grant(caller: &Caller, permissions: Permissions) -> ApiResult<()> {
    refuse_restricted(caller)?;
    let missing = permissions
        .iter()
        .find(|permission| !caller.permissions.contains(*permission));
    match missing {
        None => Ok(()),
        Some(missing) => Err(ApiError::forbidden(&format!(
            "the caller cannot grant the permission `{}`, which it does not have",
            missing.name()
        ))),
    }
}

/// The keys of a tenant are not the matter of callers that reach only what they own.
fn refuse_restricted(caller: &Caller) -> ApiResult<()> {
    match caller.owner {
        None => Ok(()),
        Some(_) => Err(ApiError::forbidden(
            "a caller that reaches only what it owns cannot manage API keys",
        )),
    }
}

async fn issue(app: &Shared, request: ApiKeyRequest, now: Timestamp) -> ApiResult<IssuedApiKey> {
    authenticator_of(app)?;
    let issued = request.issue(now).map_err(|error| match error {
        ApiKeyError::NoEntropy => {
            ApiError::internal(StatusCode::INTERNAL_SERVER_ERROR, "api-key-entropy", &error)
        }
        error => ApiError::invalid(error.to_string()),
    })?;
    match app.registry().create_api_key(&issued.key).await? {
        true => Ok(issued),
        // A random id that exists is not bad luck.
        false => Err(ApiError::conflict("The key exists already")),
    }
}

async fn find(app: &Shared, caller: &Caller, id: &str) -> ApiResult<ApiKey> {
    authenticator_of(app)?;
    let id: Option<ApiKeyId> = id.parse().ok();
    let id = id.ok_or_else(no_key)?;
    let found = app.registry().api_key(id).await?;
    let found = found.filter(|key| key.tenant == caller.tenant);
    found.ok_or_else(no_key)
}

async fn expire(app: &Shared, caller: &Caller, id: ApiKeyId, at: Timestamp) -> ApiResult<()> {
    let expired = app
        .registry()
        .expire_api_key(&caller.tenant, id, at)
        .await?;
    authenticator_of(app)?.forget_key(id);
    expired.map(|_| ()).ok_or_else(no_key)
}

fn no_key() -> ApiError {
    ApiError::not_found("API key not found")
}

fn after(now: Timestamp, seconds: u64) -> Timestamp {
    now.plus_ms(seconds.saturating_mul(1_000).min(wire::MS_MAX))
}

fn read_permissions(names: &[String]) -> ApiResult<Permissions> {
    let read = names.iter().map(|name| {
        Permission::from_name(name)
            .ok_or_else(|| ApiError::invalid(format!("`{name}` is not a permission")))
    });
    read.collect()
}

/// Returns a key as clients read it, without its secret.
fn shown(key: &ApiKey) -> Json {
    let permissions = Permissions::from_number(key.permissions);
    let permissions: Vec<&str> = permissions.iter().map(Permission::name).collect();
    json!({
        "key_id": key.id.to_string(),
        "tenant": key.tenant,
        "principal": key.principal,
        "name": key.name,
        "permissions": permissions,
        "restricted": key.is_restricted,
        "created_at": wire::time(key.created),
        "expires_at": key.expires.map(wire::time),
    })
}

/// Returns a new key with its secret, which is shown this once.
fn with_secret(issued: &IssuedApiKey) -> Json {
    let mut shown = shown(&issued.key);
    shown["key"] = issued.text.clone().into();
    shown
}

const GRACE_SECONDS: u64 = 3_600;
