//! What the erasure of a tenant leaves in its audit log: an entry before anything is deleted, and one with what was deleted.
//!
//! If the process dies in between, the log says that an erasure began, and not that it ended.

use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::checkpoint::CheckpointResult;
use superstep::registry::{AuditEntry, Registry};

use super::chain::{AuditKey, entry_hash};
use super::writer::{AuditRecord, append};

/// The audit log of a tenant that is erased.
pub(crate) struct ErasureLog<'a> {
    pub(crate) registry: &'a dyn Registry,
    pub(crate) tenant: &'a str,
    pub(crate) key: Option<&'a AuditKey>,
    pub(crate) principal: &'a str,
}

impl ErasureLog<'_> {
    /// Whether an entry under this key may follow the last one: under another key, nothing after it could be verified.
    pub(crate) async fn accepts_key(&self) -> CheckpointResult<bool> {
        let head = self.registry.audit_head(self.tenant).await?;
        let before = head.seq.saturating_sub(1);
        let last = self.registry.audit(self.tenant, before, 1).await?;
        let is_right = |entry: &AuditEntry| entry_hash(self.key, self.tenant, entry) == entry.hash;
        Ok(last.first().is_none_or(is_right))
    }

    /// Stores that the erasure begins, and returns the number of the entry.
    pub(crate) async fn begin(&self, at: Timestamp) -> CheckpointResult<u64> {
        self.append(BEGIN, at, json!({})).await
    }

    /// Stores what was deleted by the erasure that began with an entry.
    pub(crate) async fn end(
        &self,
        began: u64,
        at: Timestamp,
        receipt: Json,
    ) -> CheckpointResult<()> {
        let detail = json!({ "began": began, "receipt": receipt });
        self.append(END, at, detail).await.map(drop)
    }

    async fn append(&self, action: &str, at: Timestamp, detail: Json) -> CheckpointResult<u64> {
        let record = AuditRecord {
            at,
            principal: self.principal.to_owned(),
            action: action.to_owned(),
            resource: format!("/superstep/tenants/{}", self.tenant),
            detail: detail.to_string(),
        };
        let head = append(self.registry, self.key, self.tenant, None, &[record]).await?;
        Ok(head.map_or(0, |head| head.seq))
    }
}

/// Actions of the two entries. No request has them: those are named by their routes.
const BEGIN: &str = "tenant.erase";
const END: &str = "tenant.erased";
