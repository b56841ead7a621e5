//! API keys, and the idempotency keys that callers send with their requests.

use crate::ids::{ApiKeyId, Timestamp};

/// A key with which a program authenticates. The secret itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Id of the key, which is also in its text.
    pub id: ApiKeyId,
    /// Tenant that the key opens.
    pub tenant: String,
    /// Who acts with it: the name in runs, answers and the audit log.
    pub principal: String,
    /// What people call it.
    pub name: String,
    /// Hash of the secret.
    pub hash: [u8; 32],
    /// What it allows, as bits that the server defines.
    pub permissions: u8,
    /// Whether it reaches only what its principal created.
    pub is_restricted: bool,
    /// When it was created.
    pub created: Timestamp,
    /// From when on it is refused; `None` for never.
    pub expires: Option<Timestamp>,
}

impl ApiKey {
    /// Whether the key is accepted at a time.
    pub fn is_valid_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// A request that a caller has given a key, so that it can be repeated without a second effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Tenant of the caller.
    pub tenant: String,
    /// The caller. Two callers may use the same key for different requests.
    pub principal: String,
    /// What the caller sent as `Idempotency-Key`.
    pub key: String,
    /// Hash of everything that the request asks for.
    pub fingerprint: [u8; 32],
    /// When the request came.
    pub at: Timestamp,
    /// From when on the key is free again.
    pub expires: Timestamp,
}

/// What [`claim_request`](super::Registry::claim_request) found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimedRequest {
    /// The key is new, or had expired, and was stored.
    New,
    /// The same request came before, at this time.
    Repeated(Timestamp),
    /// Another request came with this key. Nothing was stored.
    Different,
}

impl RequestKey {
    /// Returns what a request with the same key finds if this one is stored.
    pub fn claimed_by(&self, request: &Self) -> ClaimedRequest {
        if self.expires <= request.at {
            ClaimedRequest::New
        } else if self.fingerprint == request.fingerprint {
            ClaimedRequest::Repeated(self.at)
        } else {
            ClaimedRequest::Different
        }
    }
}
