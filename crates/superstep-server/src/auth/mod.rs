//! Who sends a request, and whether it is allowed: authentication of callers, and the check of the table of routes.
//!
//! The middleware runs before every handler. It reads the credentials, finds the route in the table, checks the permissions that
//! the table names, and leaves the [`Caller`] for the handler. A route without a line in the table is refused, so a route that is
//! forgotten there is closed, not open.

mod api_key;
mod issuer;
mod key_set;
mod policy;
mod refusal;

pub(crate) use api_key::KEY_USED_FOR;
pub use api_key::{ApiKeyError, ApiKeyRequest, IssuedApiKey};
pub use policy::{Authentication, PolicyError};

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use superstep::registry::ApiKey;
use superstep::{ApiKeyId, Timestamp};

use crate::auth::api_key::{ApiKeyCache, PresentedKey};
use crate::auth::issuer::TokenIssuer;
use crate::auth::refusal::RefusalForm;
use crate::caller::Caller;
use crate::error::{ApiError, ApiResult};
use crate::permission::{Permission, Permissions};
use crate::routes::table::FoundRoute;
use crate::stream::sse;
use crate::{App, Shared};

/// What a caller has shown to be who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Credential {
    /// Nothing: the server does not authenticate, or a cron acts for its principal.
    #[default]
    None,
    ApiKey(ApiKeyId),
    Token {
        /// From when on it is refused.
        expires: Timestamp,
    },
}

/// Checks credentials, as the settings of the server say.
pub(crate) struct Authenticator {
    accepts_api_keys: bool,
    issuers: Vec<TokenIssuer>,
    refusals: RefusalForm,
    keys: ApiKeyCache,
}

impl Authenticator {
    pub(crate) fn new(settings: Authentication) -> Self {
        Self {
            accepts_api_keys: settings.accepts_api_keys,
            issuers: settings.issuers,
            refusals: settings.refusals,
            keys: ApiKeyCache::default(),
        }
    }

    /// Forgets what is known of a key that has just changed.
    pub(crate) fn forget_key(&self, id: ApiKeyId) {
        self.keys.forget(id);
    }

    /// Returns who sends a request. The error is the same whatever is wrong with the credentials; the log has the reason.
    async fn authenticate(&self, app: &Shared, headers: &HeaderMap) -> ApiResult<Caller> {
        let refuse = |reason: &str| {
            tracing::info!(reason, "credentials refused");
            ApiError::unauthenticated()
        };
        let text = credentials(headers).map_err(&refuse)?;
        if PresentedKey::is_meant(text) {
            if !self.accepts_api_keys {
                return Err(refuse("API keys are not accepted"));
            }
            let presented = PresentedKey::parse(text);
            let presented = presented.ok_or_else(|| refuse("malformed API key"))?;
            let now = app.runtime.now();
            let found = self.keys.check(&**app.registry(), &presented, now).await?;
            let key = found.ok_or_else(|| refuse("unknown or expired API key"))?;
            return Ok(caller_of(key));
        }
        let found = issuer::caller_of_token(&self.issuers, text).await;
        found.map_err(|reason| refuse(&reason))
    }
}

fn caller_of(key: ApiKey) -> Caller {
    Caller {
        owner: key.is_restricted.then(|| key.principal.clone()),
        tenant: key.tenant,
        principal: key.principal,
        permissions: Permissions::from_number(key.permissions),
        credential: Credential::ApiKey(key.id),
    }
}

/// Returns the credentials of a request. Clients may send the key of another service as `x-api-key` with every request, so
/// `Authorization` goes first.
fn credentials(headers: &HeaderMap) -> Result<&str, &'static str> {
    let only = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().map(Some).map_err(|_| "header is not text"),
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err("header is repeated"),
        }
    };
    if let Some(text) = only(AUTHORIZATION.as_str())? {
        let (scheme, rest) = text.split_once(' ').ok_or("no bearer credentials")?;
        return match scheme.eq_ignore_ascii_case("bearer") {
            true => Ok(rest.trim()),
            false => Err("no bearer credentials"),
        };
    }
    let key = only("x-api-key")?.ok_or("no credentials")?;
    match PresentedKey::is_meant(key) {
        true => Ok(key),
        false => Err("malformed API key"),
    }
}

/// Checks again that the credentials of a caller are accepted, for connections that stay open.
pub(crate) async fn check_again(app: &Shared, caller: &Caller) -> ApiResult<()> {
    let Some(authenticator) = &app.authenticator else {
        return Ok(());
    };
    let now = app.runtime.now();
    let is_valid = match caller.credential {
        Credential::None => true,
        Credential::Token { expires } => now < expires,
        Credential::ApiKey(id) => {
            let found = authenticator.keys.find(&**app.registry(), id).await?;
            found.is_some_and(|key| key.is_valid_at(now))
        }
    };
    match is_valid {
        true => Ok(()),
        false => Err(ApiError::unauthenticated()),
    }
}

/// Authenticates the caller and checks what the table of routes asks of it.
pub(crate) async fn check_caller(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(authenticator) = &app.authenticator else {
        return next.run(request).await;
    };
    let found = FoundRoute::of(&request);
    let caller = match admit(&app, authenticator, found, request.headers()).await {
        Ok(caller) => caller,
        Err(refusal) => return authenticator.refusals.refuse(refusal),
    };
    request.extensions_mut().insert(caller.clone());
    let response = next.run(request).await;
    let response = authenticator.refusals.convert(found, response);
    end_with_credentials(&app, caller, response)
}

async fn admit(
    app: &Shared,
    authenticator: &Authenticator,
    found: FoundRoute,
    headers: &HeaderMap,
) -> ApiResult<Caller> {
    if let FoundRoute::Listed(route) = found
        && route.needs.is_empty()
    {
        return Ok(Caller::anonymous());
    }
    let caller = authenticator.authenticate(app, headers).await?;
    match found {
        FoundRoute::Listed(route) => {
            caller.require_any(route.needs)?;
            Ok(caller)
        }
        // The fallback answers.
        FoundRoute::None => Ok(caller),
        FoundRoute::OtherMethod => {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Err(ApiError::new(status, "Method Not Allowed"))
        }
        FoundRoute::NotListed => {
            tracing::error!("a route is not in the table of routes, so it is closed");
            Err(ApiError::forbidden("this route has no permissions"))
        }
    }
}

/// Breaks a stream of events some seconds after the credentials of its caller have expired or were revoked.
fn end_with_credentials(app: &App, caller: Caller, response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if !is_stream || caller.credential == Credential::None {
        return response;
    }
    let app = app.clone();
    let refused = async move {
        loop {
            tokio::time::sleep(CHECKED_EVERY).await;
            // A store that does not answer says nothing about the credentials.
            if let Err(refusal) = check_again(&app, &caller).await
                && refusal.status == StatusCode::UNAUTHORIZED
            {
                return;
            }
        }
    };
    response.map(|body| {
        let begun = Some((body.into_data_stream(), Box::pin(refused)));
        Body::from_stream(futures_util::stream::unfold(begun, |stream| async move {
            let (mut chunks, mut refused) = stream?;
            tokio::select! {
                chunk = chunks.next() => Some((chunk?, Some((chunks, refused)))),
                // Broken, not ended: a client must not take it for the end of the run.
                () = &mut refused => Some((Err(axum::Error::new(sse::broken())), None)),
            }
        }))
    })
}

impl ApiError {
    /// The caller is not known: 401. Says nothing about why.
    pub(crate) fn unauthenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "Could not validate credentials: send a valid API key or token",
        )
    }

    /// The caller is known and lacks a permission: 403.
    pub(crate) fn forbidden(why: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, format!("Not authorized: {why}"))
    }
}

impl Caller {
    /// Returns the caller of a route that everyone may call.
    fn anonymous() -> Self {
        Self {
            tenant: String::new(),
            principal: String::new(),
            permissions: Permissions::default(),
            owner: None,
            credential: Credential::None,
        }
    }

    /// Refuses a request if the caller has none of these permissions.
    pub(crate) fn require_any(&self, needs: &[Permission]) -> ApiResult<()> {
        if needs.iter().any(|need| self.permissions.contains(*need)) {
            return Ok(());
        }
        let names: Vec<String> = needs.iter().map(|n| format!("`{}`", n.name())).collect();
        Err(ApiError::forbidden(&match names.as_slice() {
            [one] => format!("this needs the permission {one}"),
            several => format!("this needs one of the permissions {}", several.join(", ")),
        }))
    }
}

/// How often the credentials of an open stream are checked again.
pub(crate) const CHECKED_EVERY: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, http::HeaderValue::from_str(value).unwrap())
            })
            .fold(HeaderMap::new(), |mut all, (name, value)| {
                all.append(name, value);
                all
            })
    }

    #[test]
    fn credentials_are_found_and_nothing_is_guessed() {
        let found = |pairs: &[(&'static str, &str)]| {
            let headers = headers(pairs);
            credentials(&headers).map(str::to_owned)
        };
        assert_eq!(found(&[("x-api-key", "ssk_a")]).unwrap(), "ssk_a");
        assert_eq!(found(&[("authorization", "bearer t")]).unwrap(), "t");
        let both = [("x-api-key", "lsv2_other"), ("authorization", "Bearer t")];
        assert_eq!(found(&both).unwrap(), "t");
        for refused in [
            vec![],
            vec![("x-api-key", "lsv2_other")],
            vec![("authorization", "Basic YTpi")],
            vec![("authorization", "Bearer")],
            vec![("authorization", "Bearer a"), ("authorization", "Bearer b")],
        ] {
            assert!(found(&refused).is_err(), "{refused:?}");
        }
    }
}
