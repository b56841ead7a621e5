//! The defects of API keys and request keys.

use superstep_conformance::give_way;
use superstep_core::checkpoint::{CheckpointResult, Page};
use superstep_core::registry::{ApiKey, ClaimedRequest, ErasedRows, Registry, RequestKey};
use superstep_core::{ApiKeyId, Timestamp};

use super::{BrokenRegistry, EVERY, RegistryDefect};

impl BrokenRegistry {
    pub(super) async fn create_api_key_by_defect(&self, key: &ApiKey) -> CheckpointResult<bool> {
        let mut key = key.clone();
        match self.defect {
            RegistryDefect::PermissionsLost => key.permissions = 0,
            RegistryDefect::TextsOfApiKeysTrimmed => key.name = key.name.trim().to_owned(),
            _ => {}
        }
        let is_stored = self.inner.create_api_key(&key).await?;
        self.key_tenants().insert(key.tenant.clone());
        match self.defect {
            RegistryDefect::SameApiKeySaidStored => Ok(true),
            RegistryDefect::ApiKeysUniqueByTenant => {
                let found = self.inner.api_key(key.id).await?;
                Ok(is_stored || found.is_some_and(|found| found.tenant != key.tenant))
            }
            _ => Ok(is_stored),
        }
    }

    pub(super) async fn api_key_by_defect(&self, id: ApiKeyId) -> CheckpointResult<Option<ApiKey>> {
        let found = self.inner.api_key(id).await?;
        let is_hidden = self.is(RegistryDefect::ExpiredApiKeyNotFound);
        Ok(found.filter(|found| !(is_hidden && found.expires.is_some())))
    }

    pub(super) async fn api_keys_by_defect(
        &self,
        tenant: &str,
        page: Page,
    ) -> CheckpointResult<Vec<ApiKey>> {
        match self.defect {
            RegistryDefect::ApiKeysOfEveryTenant => {
                let tenants = self.key_tenants().clone();
                let mut found = Vec::new();
                for tenant in tenants {
                    found.extend(self.inner.api_keys(&tenant, page).await?);
                }
                Ok(found)
            }
            RegistryDefect::ApiKeysOldestFirst => {
                let mut found = self.inner.api_keys(tenant, page).await?;
                found.reverse();
                Ok(found)
            }
            _ => self.inner.api_keys(tenant, page).await,
        }
    }

    pub(super) async fn erase_tenant_by_defect(
        &self,
        tenant: &str,
    ) -> CheckpointResult<ErasedRows> {
        let keys = self.inner.api_keys(tenant, EVERY).await?;
        let erased = self.inner.erase_tenant(tenant).await?;
        match self.defect {
            RegistryDefect::EraseKeepsApiKeys => {
                for key in keys.iter().rev() {
                    self.inner.create_api_key(key).await?;
                }
            }
            RegistryDefect::EraseIsByPrefix => {
                let others = self.key_tenants().clone().into_iter();
                for other in others.filter(|other| other.starts_with(tenant)) {
                    self.inner.erase_tenant(&other).await?;
                }
            }
            _ => {}
        }
        Ok(erased)
    }

    pub(super) async fn expire_api_key_by_defect(
        &self,
        tenant: &str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> CheckpointResult<Option<ApiKey>> {
        if self.is(RegistryDefect::ApiKeyExpiredByAnyTenant)
            && let Some(found) = self.inner.api_key(id).await?
        {
            return self.inner.expire_api_key(&found.tenant, id, at).await;
        }
        let mut expired = self.inner.expire_api_key(tenant, id, at).await?;
        if let Some(key) = &mut expired
            && self.is(RegistryDefect::ExpiryExtends)
        {
            key.expires = Some(at);
        }
        Ok(expired)
    }

    pub(super) async fn claim_request_by_defect(
        &self,
        request: &RequestKey,
    ) -> CheckpointResult<ClaimedRequest> {
        let mut request = request.clone();
        match self.defect {
            RegistryDefect::FingerprintForgotten => request.fingerprint = [0; 32],
            RegistryDefect::PrincipalOfRequestsIgnored => request.principal.clear(),
            RegistryDefect::TenantOfRequestsIgnored => request.tenant.clear(),
            RegistryDefect::RequestKeysNeverExpire => request.expires = Timestamp(i64::MAX),
            RegistryDefect::TextsOfRequestsTrimmed => {
                request.key = request.key.trim().to_owned();
            }
            RegistryDefect::ClaimTorn => return self.claim_torn(&request).await,
            _ => {}
        }
        let claimed = self.inner.claim_request(&request).await?;
        Ok(match claimed {
            ClaimedRequest::Repeated(_) if self.is(RegistryDefect::RepeatHasTheLastTime) => {
                ClaimedRequest::Repeated(request.at)
            }
            claimed => claimed,
        })
    }

    /// Looks for the key, and stores it a moment later.
    async fn claim_torn(&self, request: &RequestKey) -> CheckpointResult<ClaimedRequest> {
        let is_known = self.claimed().contains(&request.key);
        give_way().await;
        self.claimed().insert(request.key.clone());
        let claimed = self.inner.claim_request(request).await?;
        match is_known {
            true => Ok(claimed),
            false => Ok(ClaimedRequest::New),
        }
    }

    pub(super) async fn sweep_requests_by_defect(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> CheckpointResult<u64> {
        match self.defect {
            RegistryDefect::RequestsSweptEarly => {
                self.inner.sweep_requests(Timestamp(i64::MAX), limit).await
            }
            RegistryDefect::RequestsSweptWithoutLimit => {
                self.inner.sweep_requests(now, u32::MAX).await
            }
            _ => self.inner.sweep_requests(now, limit).await,
        }
    }
}
