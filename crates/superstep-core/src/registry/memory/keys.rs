//! API keys and request keys in memory.

use super::Rows;
use crate::checkpoint::Page;
use crate::ids::{ApiKeyId, Timestamp};
use crate::registry::{ApiKey, ClaimedRequest, RequestKey};

impl Rows {
    pub(super) fn create_api_key(&mut self, key: &ApiKey) -> bool {
        // Of all tenants: the id in the text of a key must lead to one key.
        if self.api_key(key.id).is_some() {
            return false;
        }
        self.api_keys.push(key.clone());
        true
    }

    pub(super) fn api_key(&self, id: ApiKeyId) -> Option<ApiKey> {
        self.api_keys.iter().find(|key| key.id == id).cloned()
    }

    pub(super) fn api_keys(&self, tenant: &str, page: Page) -> Vec<ApiKey> {
        let newest_first = self.api_keys.iter().rev();
        let found = newest_first.filter(|key| key.tenant == tenant);
        let rest = found.skip(page.offset as usize);
        rest.take(page.limit as usize).cloned().collect()
    }

    pub(super) fn expire_api_key(
        &mut self,
        tenant: &str,
        id: ApiKeyId,
        at: Timestamp,
    ) -> Option<ApiKey> {
        let mut keys = self.api_keys.iter_mut();
        let key = keys.find(|key| key.tenant == tenant && key.id == id)?;
        key.expires = Some(key.expires.map_or(at, |expires| expires.min(at)));
        Some(key.clone())
    }

    pub(super) fn claim_request(&mut self, request: &RequestKey) -> ClaimedRequest {
        let key = (
            request.tenant.clone(),
            request.principal.clone(),
            request.key.clone(),
        );
        let found = self.requests.get(&key);
        let claimed = found.map_or(ClaimedRequest::New, |found| found.claimed_by(request));
        if claimed == ClaimedRequest::New {
            self.requests.insert(key, request.clone());
        }
        claimed
    }

    pub(super) fn sweep_requests(&mut self, now: Timestamp, limit: u32) -> u64 {
        let expired = self.requests.iter();
        let expired = expired.filter(|(_, request)| request.expires <= now);
        let keys: Vec<_> = expired.map(|(key, _)| key.clone()).collect();
        let swept = keys.iter().take(limit as usize);
        swept.filter_map(|key| self.requests.remove(key)).count() as u64
    }
}
