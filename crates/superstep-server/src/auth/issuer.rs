//! Tokens (JWT): which issuer signed one, and what its claims say about the caller.
//!
//! A token decides nothing about how it is checked. Its issuer must be one of the settings, its algorithm one that the settings
//! allow for that issuer, and its key one of that issuer's. `jku`, `x5u`, `jwk` and certificates in a token are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Map, Value as Json};
use superstep::Timestamp;

use crate::auth::Credential;
use crate::auth::api_key::{is_principal, is_tenant};
use crate::auth::key_set::KeySet;
use crate::caller::Caller;
use crate::permission::{Permission, Permissions};

/// An issuer of tokens that the server accepts.
#[derive(Debug, Clone)]
pub(super) struct TokenIssuer {
    /// What `iss` of its tokens must be; `None` for one whose tokens name no issuer.
    pub(super) name: Option<String>,
    /// `aud` of a token must contain one of these; any if empty.
    pub(super) audience: BTreeSet<String>,
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) keys: IssuerKeys,
    /// How far the clocks of the issuer and of the server may be apart.
    pub(super) leeway_seconds: u64,
    pub(super) tenant: TenantRule,
    /// Claim with the name of the caller.
    pub(super) principal_claim: String,
    pub(super) permissions: PermissionRule,
    /// The only callers that are accepted, with the most that each may do; `None` for all.
    pub(super) subjects: Option<BTreeMap<String, Permissions>>,
    /// Whether callers reach only what they created.
    pub(super) is_restricted: bool,
}

/// What the signatures of an issuer are checked with.
#[derive(Clone)]
pub(super) enum IssuerKeys {
    Secret(Box<DecodingKey>),
    Public(KeySet),
}

impl fmt::Debug for IssuerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(_) => f.write_str("Secret"),
            Self::Public(keys) => keys.fmt(f),
        }
    }
}

/// How the tenant of a caller is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TenantRule {
    Fixed(String),
    Claim(String),
}

/// How the permissions of a caller are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PermissionRule {
    Fixed(Permissions),
    /// A claim lists names of roles, and each role has permissions.
    Roles {
        claim: String,
        roles: BTreeMap<String, Permissions>,
    },
}

/// Returns the caller that a token stands for; the error says why it is refused.
pub(super) async fn caller_of_token(
    issuers: &[TokenIssuer],
    token: &str,
) -> Result<Caller, String> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err("the token is too long".to_owned());
    }
    let header = jsonwebtoken::decode_header(token).map_err(|error| error.to_string())?;
    if header.crit.is_some() {
        return Err("the token has extensions that must be understood".to_owned());
    }
    // Not verified yet: it only chooses what the token is verified with.
    let named = unverified_issuer(token)?;
    let is_named = |issuer: &&TokenIssuer| issuer.name == named;
    let issuer = issuers.iter().find(is_named);
    let issuer = issuer.ok_or("the issuer of the token is not configured")?;
    issuer
        .verify(token, header.alg, header.kid.as_deref())
        .await
}

fn unverified_issuer(token: &str) -> Result<Option<String>, String> {
    let payload = token.split('.').nth(1).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(payload);
    let payload = payload.map_err(|error| error.to_string())?;
    let claims: Map<String, Json> =
        serde_json::from_slice(&payload).map_err(|error| error.to_string())?;
    match claims.get("iss") {
        None => Ok(None),
        Some(Json::String(name)) => Ok(Some(name.clone())),
        Some(_) => Err("`iss` is not a text".to_owned()),
    }
}

impl TokenIssuer {
    async fn verify(
        &self,
        token: &str,
        algorithm: Algorithm,
        key_id: Option<&str>,
    ) -> Result<Caller, String> {
        // Before a key is chosen: a public key must never be used as a shared secret.
        if !self.algorithms.contains(&algorithm) {
            return Err(format!("the algorithm {algorithm:?} is not allowed"));
        }
        let key = match &self.keys {
            IssuerKeys::Secret(key) => (**key).clone(),
            IssuerKeys::Public(keys) => keys.find(key_id, algorithm).await?,
        };
        let read =
            jsonwebtoken::decode::<Map<String, Json>>(token, &key, &self.validation(algorithm));
        let claims = read.map_err(|error| error.to_string())?.claims;
        self.caller(&claims)
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.leeway_seconds;
        validation.validate_nbf = true;
        let mut required = vec!["exp"];
        if let Some(name) = &self.name {
            validation.set_issuer(&[name]);
            required.push("iss");
        }
        match self.audience.is_empty() {
            true => validation.validate_aud = false,
            false => {
                validation.set_audience(&self.audience.iter().collect::<Vec<_>>());
                required.push("aud");
            }
        }
        validation.set_required_spec_claims(&required);
        validation
    }

    /// Returns what the claims of a verified token say about its caller.
    fn caller(&self, claims: &Map<String, Json>) -> Result<Caller, String> {
        let principal = claim(claims, &self.principal_claim).and_then(Json::as_str);
        let principal = principal
            .filter(|name| is_principal(name))
            .ok_or_else(|| format!("the claim `{}` names no caller", self.principal_claim))?;
        let tenant = match &self.tenant {
            TenantRule::Fixed(tenant) => tenant.clone(),
            TenantRule::Claim(name) => {
                let tenant = claim(claims, name).and_then(Json::as_str);
                // The unnamed tenant is not for a token to choose.
                let tenant = tenant.filter(|tenant| !tenant.is_empty() && is_tenant(tenant));
                let tenant = tenant.ok_or_else(|| format!("the claim `{name}` names no tenant"))?;
                tenant.to_owned()
            }
        };
        let mut permissions = match &self.permissions {
            PermissionRule::Fixed(permissions) => *permissions,
            PermissionRule::Roles { claim: name, roles } => {
                let named = role_names(claim(claims, name));
                let found = named.iter().filter_map(|name| roles.get(*name));
                found.flat_map(|permissions| permissions.iter()).collect()
            }
        };
        if let Some(subjects) = &self.subjects {
            let most = subjects.get(principal);
            let most = most.ok_or("the caller is not in the table of subjects")?;
            permissions = intersection(permissions, *most);
        }
        let expires = claims.get("exp").and_then(Json::as_f64).unwrap_or_default();
        let leeway = self.leeway_seconds as f64;
        Ok(Caller {
            tenant,
            principal: principal.to_owned(),
            permissions,
            owner: self.is_restricted.then(|| principal.to_owned()),
            credential: Credential::Token {
                // A cast saturates.
                expires: Timestamp(((expires + leeway) * 1_000.0) as i64),
            },
        })
    }
}

fn intersection(one: Permissions, other: Permissions) -> Permissions {
    let both = |permission: &Permission| other.contains(*permission);
    one.iter().filter(both).collect()
}

/// Returns a claim by its name, or by a path such as `realm_access.roles`.
fn claim<'a>(claims: &'a Map<String, Json>, path: &str) -> Option<&'a Json> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    let mut parts = path.split('.');
    let first = claims.get(parts.next()?)?;
    parts.try_fold(first, |outer, part| outer.get(part))
}

/// Returns the names in a list, or in a text with spaces such as that of `scope`.
fn role_names(claim: Option<&Json>) -> Vec<&str> {
    match claim {
        Some(Json::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Json::Array(list)) => list.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Longest token. Those of real issuers have a few kilobytes.
const TOKEN_BYTES_MAX: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_found_by_name_and_by_path() {
        let claims = json!({
            "https://example.com/tenant": "acme",
            "realm_access": { "roles": ["viewer"] },
            "scope": "read  write",
        });
        let Json::Object(claims) = claims else {
            panic!("it is an object");
        };
        let named = |path: &str| role_names(claim(&claims, path));
        assert_eq!(named("https://example.com/tenant"), ["acme"]);
        assert_eq!(named("realm_access.roles"), ["viewer"]);
        assert_eq!(named("scope"), ["read", "write"]);
        assert!(named("realm_access.groups").is_empty());
    }
}
