//! API keys: their text, what is stored of them, and the check of a key that a caller presents.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use superstep::__private::lock;
use superstep::registry::{ApiKey, Registry};
use superstep::{ApiKeyId, ThreadId, Timestamp};
use uuid::Uuid;

use crate::error::ApiResult;
use crate::permission::Permissions;

/// What a new API key is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRequest {
    /// Tenant that the key opens; empty for the unnamed one.
    pub tenant: String,
    /// Who acts with it: the name in runs, answers and the audit log. 1 to 128 bytes.
    pub principal: String,
    /// What people call it; may be empty.
    pub name: String,
    /// What it allows.
    pub permissions: Permissions,
    /// Whether it reaches only what its principal created.
    pub is_restricted: bool,
    /// From when on it is refused; `None` for never.
    pub expires: Option<Timestamp>,
}

/// Why an API key cannot be issued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiKeyError {
    /// The name of the tenant is not valid.
    #[error("`{0}` is not a tenant: use up to 128 letters, digits, `-`, `_` and `.`")]
    Tenant(String),
    /// The name of the principal is not valid.
    #[error("`{0}` is not a principal: use 1 to 128 bytes without control characters")]
    Principal(String),
    /// The name of the key is too long.
    #[error("the name of the key is longer than 200 bytes")]
    Name,
    /// The key would allow nothing.
    #[error("the key allows nothing; give it at least one permission")]
    NoPermissions,
    /// The key would have expired already.
    #[error("the key expires in the past")]
    Expired,
    /// The system has no random numbers.
    #[error("the system returned no random bytes")]
    NoEntropy,
}

/// A new API key. Only this value has its secret, so show it once and store the rest.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedApiKey {
    /// What to store with [`Registry::create_api_key`].
    pub key: ApiKey,
    /// What callers send, as `x-api-key` or as `Authorization: Bearer …`.
    pub text: String,
}

impl fmt::Debug for IssuedApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedApiKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ApiKeyRequest {
    /// Makes a key with a random secret. It is valid once it is stored.
    pub fn issue(self, now: Timestamp) -> Result<IssuedApiKey, ApiKeyError> {
        if !is_tenant(&self.tenant) {
            let shown = superstep::__private::shorten(&self.tenant);
            return Err(ApiKeyError::Tenant(shown));
        }
        if !is_principal(&self.principal) {
            let shown = superstep::__private::shorten(&self.principal);
            return Err(ApiKeyError::Principal(shown));
        }
        if self.name.len() > NAME_BYTES_MAX {
            return Err(ApiKeyError::Name);
        }
        if self.permissions == Permissions::default() {
            return Err(ApiKeyError::NoPermissions);
        }
        if self.expires.is_some_and(|expires| expires <= now) {
            return Err(ApiKeyError::Expired);
        }
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|_| ApiKeyError::NoEntropy)?;
        let id = ApiKeyId::from_bytes(Uuid::now_v7().into_bytes());
        Ok(IssuedApiKey {
            text: format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret)),
            key: ApiKey {
                id,
                tenant: self.tenant,
                principal: self.principal,
                name: self.name,
                hash: Sha256::digest(secret).into(),
                permissions: self.permissions.to_number(),
                is_restricted: self.is_restricted,
                created: now,
                expires: self.expires,
            },
        })
    }
}

/// Whether a text can be the name of a tenant.
pub(super) fn is_tenant(tenant: &str) -> bool {
    ThreadId::of_tenant(tenant, "any").is_ok()
}

/// Whether a text can be the name of a caller. As long as a segment of a namespace in the long-term store may be.
pub(super) fn is_principal(principal: &str) -> bool {
    (1..=PRINCIPAL_BYTES_MAX).contains(&principal.len()) && !principal.chars().any(char::is_control)
}

/// A key that a caller presents.
pub(super) struct PresentedKey {
    id: ApiKeyId,
    hash: [u8; 32],
}

impl PresentedKey {
    /// Whether a text is meant to be an API key, and not a token.
    pub(super) fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Reads the text of a key; `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let secret: [u8; SECRET_BYTES] = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
        Some(Self {
            id: id.parse().ok()?,
            hash: Sha256::digest(secret).into(),
        })
    }

    /// Whether it is this key. Takes as long for every other key.
    fn is(&self, key: &ApiKey) -> bool {
        let pairs = self.hash.iter().zip(&key.hash);
        let difference = pairs.fold(0, |difference, (a, b)| difference | (a ^ b));
        std::hint::black_box(difference) == 0 && self.id == key.id
    }
}

/// API keys that were looked up a few seconds ago at most.
#[derive(Default)]
pub(super) struct ApiKeyCache {
    found: Mutex<HashMap<ApiKeyId, (Instant, ApiKey)>>,
}

impl ApiKeyCache {
    /// Returns the key that a caller presents; `None` if there is no such key, or it has expired.
    pub(super) async fn check(
        &self,
        registry: &dyn Registry,
        presented: &PresentedKey,
        now: Timestamp,
    ) -> ApiResult<Option<ApiKey>> {
        let found = self.find(registry, presented.id).await?;
        let found = found.filter(|key| presented.is(key));
        Ok(found.filter(|key| key.is_valid_at(now)))
    }

    /// Returns a key, as it was some seconds ago at most.
    pub(super) async fn find(
        &self,
        registry: &dyn Registry,
        id: ApiKeyId,
    ) -> ApiResult<Option<ApiKey>> {
        let known = self.with(|found| found.get(&id).cloned());
        if let Some((at, key)) = known
            && at.elapsed() < KEY_USED_FOR
        {
            return Ok(Some(key));
        }
        let looked = Instant::now();
        let found = registry.api_key(id).await?;
        self.with(|kept| match &found {
            Some(key) => {
                if kept.len() >= KEPT_MAX {
                    kept.clear();
                }
                kept.insert(id, (looked, key.clone()));
            }
            None => {
                kept.remove(&id);
            }
        });
        Ok(found)
    }

    /// Forgets a key that this server has just changed.
    pub(super) fn forget(&self, id: ApiKeyId) {
        self.with(|found| found.remove(&id));
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut HashMap<ApiKeyId, (Instant, ApiKey)>) -> T) -> T {
        use_it(&mut lock(&self.found))
    }
}

/// What the text of every key begins with, so that scanners for leaked secrets find it.
const PREFIX: &str = "ssk_";
const SECRET_BYTES: usize = 32;
const NAME_BYTES_MAX: usize = 200;
const PRINCIPAL_BYTES_MAX: usize = 128;
/// How long a key is used without another look: another server may have revoked it, which holds within 5 seconds.
pub(crate) const KEY_USED_FOR: Duration = Duration::from_secs(3);
const KEPT_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ApiKeyRequest {
        ApiKeyRequest {
            tenant: "acme".to_owned(),
            principal: "billing".to_owned(),
            name: String::new(),
            permissions: Permissions::ALL,
            is_restricted: false,
            expires: None,
        }
    }

    #[test]
    fn a_key_is_its_text_and_no_other_text_is() {
        let issued = request().issue(Timestamp(1)).unwrap();
        let other = request().issue(Timestamp(1)).unwrap();
        assert_eq!(issued.text.len(), "ssk_".len() + 32 + 1 + 43);
        let read = |text: &str| PresentedKey::parse(text);
        assert!(read(&issued.text).unwrap().is(&issued.key));
        assert!(!read(&issued.text).unwrap().is(&other.key));
        // The id of one with the secret of the other.
        let forged = format!("{}{}", &issued.text[..37], &other.text[37..]);
        assert!(!read(&forged).unwrap().is(&issued.key));
        let upper = issued.text[..36].to_uppercase().replace("SSK_", "ssk_");
        for text in [
            "",
            "ssk_",
            "ssk__",
            &issued.text[..79],
            &format!("{}A", issued.text),
            &format!("{}=", issued.text),
            &format!(" {}", issued.text),
            &issued.text.replace("ssk_", "sk_"),
        ] {
            assert!(read(text).is_none(), "{text}");
        }
        let has_letters = upper != issued.text[..36];
        assert!(!has_letters || read(&format!("{upper}{}", &issued.text[36..])).is_none());
        assert!(!format!("{issued:?}").contains(&issued.text[37..]));
    }

    #[test]
    fn a_key_that_could_not_be_used_is_not_issued() {
        let refused = |request: ApiKeyRequest| request.issue(Timestamp(5)).unwrap_err();
        assert_eq!(
            refused(ApiKeyRequest {
                expires: Some(Timestamp(5)),
                ..request()
            }),
            ApiKeyError::Expired
        );
        assert_eq!(
            refused(ApiKeyRequest {
                permissions: Permissions::default(),
                ..request()
            }),
            ApiKeyError::NoPermissions
        );
        assert!(matches!(
            refused(ApiKeyRequest {
                tenant: "a/b".to_owned(),
                ..request()
            }),
            ApiKeyError::Tenant(_)
        ));
        assert!(matches!(
            refused(ApiKeyRequest {
                principal: String::new(),
                ..request()
            }),
            ApiKeyError::Principal(_)
        ));
    }
}
