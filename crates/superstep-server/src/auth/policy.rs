//! The settings of authentication, and the file that they are read from.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::auth::api_key::is_tenant;
use crate::auth::issuer::{IssuerKeys, PermissionRule, TenantRule, TokenIssuer};
use crate::auth::key_set::{KeySet, KeySource, count_keys, is_trusted_address};
use crate::auth::refusal::RefusalForm;
use crate::permission::{Permission, Permissions};

/// How a server authenticates its callers: with API keys, with tokens of issuers, or both. See
/// [`ServerBuilder::authentication`](crate::ServerBuilder::authentication).
#[derive(Debug, Clone, Default)]
pub struct Authentication {
    pub(super) accepts_api_keys: bool,
    pub(super) issuers: Vec<TokenIssuer>,
    pub(super) refusals: RefusalForm,
}

/// Why a policy file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PolicyError {
    problem: String,
}

type PolicyResult<T> = Result<T, PolicyError>;

fn problem(problem: impl Into<String>) -> PolicyError {
    PolicyError {
        problem: problem.into(),
    }
}

impl Authentication {
    /// Accepts API keys, and no tokens.
    pub fn with_api_keys() -> Self {
        Self {
            accepts_api_keys: true,
            ..Self::default()
        }
    }

    /// Reads a policy file, which is JSON. It is normally in `folder`, from which relative paths in it start.
    pub fn from_json(text: &str, folder: &Path) -> PolicyResult<Self> {
        let file: PolicyFile =
            serde_json::from_str(text).map_err(|error| problem(error.to_string()))?;
        let issuers = file.issuers.iter().enumerate().map(|(index, issuer)| {
            let read = issuer.read(folder);
            read.map_err(|error| problem(format!("issuer {}: {error}", index + 1)))
        });
        let issuers: Vec<TokenIssuer> = issuers.collect::<PolicyResult<_>>()?;
        for (index, issuer) in issuers.iter().enumerate() {
            if issuers[..index]
                .iter()
                .any(|other| other.name == issuer.name)
            {
                return Err(problem(match &issuer.name {
                    Some(name) => format!("two issuers are named `{name}`"),
                    None => "two issuers have no `issuer`; name all but one".to_owned(),
                }));
            }
        }
        if !file.api_keys && issuers.is_empty() {
            return Err(problem(
                "the policy accepts no callers; set `api_keys` to true, or add `issuers`",
            ));
        }
        Ok(Self {
            accepts_api_keys: file.api_keys,
            issuers,
            refusals: match file.javascript_refusals {
                true => RefusalForm::JavaScript,
                false => RefusalForm::Json,
            },
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PolicyFile {
    api_keys: bool,
    issuers: Vec<IssuerEntry>,
    #[serde(alias = "plain_refusals")]
    javascript_refusals: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct IssuerEntry {
    issuer: Option<String>,
    audience: Option<OneOrMany>,
    algorithms: Option<Vec<String>>,
    /// `env:NAME` or `file:PATH`.
    secret: Option<String>,
    jwks_file: Option<String>,
    jwks_url: Option<String>,
    refetch_seconds: Option<u64>,
    leeway_seconds: Option<u64>,
    tenant: Option<String>,
    tenant_claim: Option<String>,
    principal_claim: Option<String>,
    permissions: Option<Vec<String>>,
    roles_claim: Option<String>,
    roles: Option<BTreeMap<String, Vec<String>>>,
    subjects: Option<BTreeMap<String, SubjectEntry>>,
    restricted: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubjectEntry {
    permissions: Vec<String>,
}

impl IssuerEntry {
    fn read(&self, folder: &Path) -> PolicyResult<TokenIssuer> {
        let audience = match &self.audience {
            None => Vec::new(),
            Some(OneOrMany::One(one)) => vec![one.clone()],
            Some(OneOrMany::Many(many)) => many.clone(),
        };
        let keys = self.keys(folder)?;
        let is_public = matches!(keys, IssuerKeys::Public(_));
        if is_public && (self.issuer.is_none() || audience.is_empty()) {
            return Err(problem(
                "an issuer with public keys needs `issuer` and `audience`: it also signs tokens that are for others",
            ));
        }
        let subjects = self.subjects.as_ref().map(|subjects| {
            let read = subjects
                .iter()
                .map(|(name, entry)| Ok((name.clone(), permissions_of(&entry.permissions)?)));
            read.collect::<PolicyResult<_>>()
        });
        Ok(TokenIssuer {
            name: self.issuer.clone(),
            audience: audience.into_iter().collect(),
            algorithms: self.algorithms(is_public)?,
            keys,
            leeway_seconds: match self.leeway_seconds.unwrap_or(LEEWAY_SECONDS) {
                seconds if seconds <= LEEWAY_SECONDS_MAX => seconds,
                _ => return Err(problem("`leeway_seconds` is above 300")),
            },
            tenant: self.tenant()?,
            principal_claim: self.principal_claim.as_deref().unwrap_or("sub").to_owned(),
            permissions: self.permissions()?,
            subjects: subjects.transpose()?,
            is_restricted: self.restricted,
        })
    }

    fn keys(&self, folder: &Path) -> PolicyResult<IssuerKeys> {
        let pause = Duration::from_secs(self.refetch_seconds.unwrap_or(REFETCH_SECONDS).max(1));
        let source = match (&self.secret, &self.jwks_file, &self.jwks_url, &self.issuer) {
            (Some(secret), None, None, _) => {
                let secret = read_secret(secret, folder)?;
                let key = DecodingKey::from_secret(secret.as_bytes());
                return Ok(IssuerKeys::Secret(Box::new(key)));
            }
            (None, Some(file), None, _) => {
                let path = folder.join(file);
                check_key_file(&path)?;
                KeySource::File(path)
            }
            (None, None, Some(url), _) => KeySource::Url(trusted(url)?),
            (None, None, None, Some(issuer)) => KeySource::Discovery {
                issuer: trusted(issuer)?,
            },
            (None, None, None, None) => {
                return Err(problem(
                    "there are no keys; set `issuer` to an address with OpenID discovery, or `jwks_url`, `jwks_file` or `secret`",
                ));
            }
            _ => {
                return Err(problem(
                    "set only one of `secret`, `jwks_file` and `jwks_url`",
                ));
            }
        };
        let keys = KeySet::new(source, pause);
        let keys = keys.map_err(|error| problem(format!("no HTTP client: {error}")))?;
        Ok(IssuerKeys::Public(keys))
    }

    fn algorithms(&self, is_public: bool) -> PolicyResult<Vec<Algorithm>> {
        let default = match is_public {
            true => ["RS256", "ES256", "EdDSA"].as_slice(),
            false => ["HS256"].as_slice(),
        };
        let default = || default.iter().map(|name| (*name).to_owned()).collect();
        let names: Vec<String> = self.algorithms.clone().unwrap_or_else(default);
        if names.is_empty() {
            return Err(problem("`algorithms` is empty"));
        }
        let read = names.iter().map(|name| {
            let algorithm = name.parse::<Algorithm>();
            let algorithm =
                algorithm.map_err(|_| problem(format!("`{name}` is not an algorithm")))?;
            // A public key is known to everyone, so it must never pass for a shared secret.
            match name.starts_with("HS") == is_public {
                false => Ok(algorithm),
                true if is_public => Err(problem(format!(
                    "`{name}` needs a `secret`, and the issuer has public keys"
                ))),
                true => Err(problem(format!(
                    "`{name}` needs public keys, and the issuer has a `secret`"
                ))),
            }
        });
        read.collect()
    }

    fn tenant(&self) -> PolicyResult<TenantRule> {
        match (&self.tenant, &self.tenant_claim) {
            (Some(_), Some(_)) => Err(problem("set only one of `tenant` and `tenant_claim`")),
            (Some(tenant), None) if !is_tenant(tenant) => {
                Err(problem(format!("`{tenant}` is not a tenant")))
            }
            (Some(tenant), None) => Ok(TenantRule::Fixed(tenant.clone())),
            (None, Some(claim)) => Ok(TenantRule::Claim(claim.clone())),
            (None, None) => Ok(TenantRule::Fixed(String::new())),
        }
    }

    fn permissions(&self) -> PolicyResult<PermissionRule> {
        match (&self.permissions, &self.roles_claim, &self.roles) {
            (Some(names), None, None) => Ok(PermissionRule::Fixed(permissions_of(names)?)),
            (None, Some(claim), Some(roles)) => {
                let read = roles
                    .iter()
                    .map(|(role, names)| Ok((role.clone(), permissions_of(names)?)));
                Ok(PermissionRule::Roles {
                    claim: claim.clone(),
                    roles: read.collect::<PolicyResult<_>>()?,
                })
            }
            _ => Err(problem(
                "set `permissions`, or else both `roles_claim` and `roles`",
            )),
        }
    }
}

fn permissions_of(names: &[String]) -> PolicyResult<Permissions> {
    let read = names.iter().map(|name| {
        Permission::from_name(name).ok_or_else(|| {
            let known: Vec<&str> = Permission::ALL.iter().map(|found| found.name()).collect();
            problem(format!(
                "`{name}` is not a permission; there are {}",
                known.join(", ")
            ))
        })
    });
    read.collect()
}

fn trusted(url: &str) -> PolicyResult<String> {
    match is_trusted_address(url) {
        true => Ok(url.to_owned()),
        false => Err(problem(format!(
            "`{url}` is not an address that keys can be fetched from; use https, or http on this machine"
        ))),
    }
}

/// Reads a secret from where the policy says it is.
fn read_secret(place: &str, folder: &Path) -> PolicyResult<String> {
    let secret = match place.split_once(':') {
        Some(("env", name)) => std::env::var(name)
            .map_err(|_| problem(format!("the environment variable `{name}` is not set")))?,
        Some(("file", path)) => {
            let path = folder.join(path);
            std::fs::read_to_string(&path)
                .map_err(|error| problem(format!("cannot read `{}`: {error}", path.display())))?
        }
        _ => {
            // The text may be the secret itself, so it is not repeated.
            return Err(problem(
                "`secret` is where the secret is, not the secret: `env:NAME` or `file:PATH`",
            ));
        }
    };
    let secret = secret.trim_end_matches(['\n', '\r']);
    match secret.len() < SECRET_BYTES_MIN {
        true => Err(problem(format!(
            "the secret has fewer than {SECRET_BYTES_MIN} bytes, so tokens could be forged"
        ))),
        false => Ok(secret.to_owned()),
    }
}

/// Checks at the start what would otherwise refuse every token later.
fn check_key_file(path: &Path) -> PolicyResult<()> {
    let shown = path.display();
    let text = std::fs::read(path);
    let text = text.map_err(|error| problem(format!("cannot read `{shown}`: {error}")))?;
    let json: Json = serde_json::from_slice(&text)
        .map_err(|error| problem(format!("`{shown}` is not JSON: {error}")))?;
    match count_keys(&json) {
        Some(count) if count > 0 => Ok(()),
        _ => Err(problem(format!("`{shown}` has no public keys in `keys`"))),
    }
}

const LEEWAY_SECONDS: u64 = 60;
const LEEWAY_SECONDS_MAX: u64 = 300;
const REFETCH_SECONDS: u64 = 5;
/// As many as HS256 needs to be as strong as its hash.
const SECRET_BYTES_MIN: usize = 32;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(policy: Json) -> PolicyResult<Authentication> {
        Authentication::from_json(&policy.to_string(), Path::new("."))
    }

    #[test]
    fn a_policy_that_is_wrong_says_what_to_fix() {
        let issuer = |changes: Json| {
            let mut entry = json!({
                "issuer": "https://login.example.com", "audience": "superstep", "permissions": ["read"],
            });
            for (name, value) in changes.as_object().unwrap() {
                entry[name] = value.clone();
            }
            json!({ "issuers": [entry] })
        };
        assert!(read(issuer(json!({}))).is_ok());
        for (policy, why) in [
            (json!({}), "accepts no callers"),
            (json!({ "api_key": true }), "unknown field `api_key`"),
            (issuer(json!({ "audience": null })), "`audience`"),
            (
                issuer(json!({ "algorithms": ["none"] })),
                "`none` is not an algorithm",
            ),
            (issuer(json!({ "algorithms": ["HS256"] })), "public keys"),
            (issuer(json!({ "algorithms": [] })), "`algorithms` is empty"),
            (
                issuer(json!({ "issuer": "http://login.example.com" })),
                "use https",
            ),
            (issuer(json!({ "secret": "swordfish" })), "`env:NAME`"),
            (
                issuer(json!({ "secret": "env:NO_SUCH_NAME" })),
                "NO_SUCH_NAME",
            ),
            (
                issuer(json!({ "permissions": ["write"] })),
                "`write` is not a permission",
            ),
            (issuer(json!({ "permissions": null })), "`roles_claim`"),
            (
                issuer(json!({ "tenant": "a", "tenant_claim": "b" })),
                "only one of",
            ),
            (issuer(json!({ "tenant": "a/b" })), "`a/b` is not a tenant"),
            (
                issuer(json!({ "jwks_file": "missing.json" })),
                "cannot read",
            ),
            (issuer(json!({ "leeway_seconds": 4_000 })), "above 300"),
        ] {
            let refused = read(policy.clone()).unwrap_err().to_string();
            assert!(refused.contains(why), "{policy}: {refused}");
            assert!(!refused.contains("swordfish"), "{refused}");
        }
    }
}
