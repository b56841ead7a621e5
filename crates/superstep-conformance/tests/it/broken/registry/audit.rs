//! The defects of audit logs.

use superstep_conformance::give_way;
use superstep_core::checkpoint::CheckpointResult;
use superstep_core::registry::{AuditEntry, AuditHead, Registry};

use super::{BrokenRegistry, RegistryDefect};

impl BrokenRegistry {
    pub(super) async fn append_audit_by_defect(
        &self,
        tenant: &str,
        entries: &[AuditEntry],
    ) -> CheckpointResult<AuditHead> {
        match self.defect {
            RegistryDefect::AuditAppendedAnywhere => self.append_fitted(tenant, entries).await,
            RegistryDefect::AuditAppendTorn => {
                let head = self.inner.audit_head(tenant).await?;
                give_way().await;
                match head.after(entries) {
                    Some(_) => self.append_fitted(tenant, entries).await,
                    None => self.inner.audit_head(tenant).await,
                }
            }
            RegistryDefect::AuditAppendedInPart => {
                for entry in entries {
                    let entry = std::slice::from_ref(entry);
                    self.inner.append_audit(tenant, entry).await?;
                }
                self.inner.audit_head(tenant).await
            }
            RegistryDefect::TextsOfAuditTrimmed => {
                let mut entries = entries.to_vec();
                for entry in &mut entries {
                    entry.detail = entry.detail.trim().to_owned();
                }
                self.inner.append_audit(tenant, &entries).await
            }
            _ => self.inner.append_audit(tenant, entries).await,
        }
    }

    /// Appends entries with the numbers and the hash that fit.
    async fn append_fitted(
        &self,
        tenant: &str,
        entries: &[AuditEntry],
    ) -> CheckpointResult<AuditHead> {
        let mut head = self.inner.audit_head(tenant).await?;
        for entry in entries {
            let fitted = AuditEntry {
                seq: head.seq + 1,
                previous: head.hash,
                ..entry.clone()
            };
            head = self.inner.append_audit(tenant, &[fitted]).await?;
        }
        Ok(AuditHead {
            seq: entries.last().map_or(head.seq, |last| last.seq),
            ..head
        })
    }

    pub(super) async fn audit_head_by_defect(&self, tenant: &str) -> CheckpointResult<AuditHead> {
        let head = self.inner.audit_head(tenant).await?;
        match self.defect {
            RegistryDefect::AuditHeadLags => Ok(AuditHead {
                seq: head.seq.saturating_sub(1),
                ..head
            }),
            _ => Ok(head),
        }
    }

    pub(super) async fn audit_by_defect(
        &self,
        tenant: &str,
        after: u64,
        limit: u32,
    ) -> CheckpointResult<Vec<AuditEntry>> {
        match self.defect {
            RegistryDefect::AuditFromTheStart => self.inner.audit(tenant, 0, limit).await,
            RegistryDefect::TenantsMixedInAudit => {
                let mut found = Vec::new();
                for tenant in self.inner.audited_tenants().await? {
                    found.extend(self.inner.audit(&tenant, after, limit).await?);
                }
                Ok(found)
            }
            _ => self.inner.audit(tenant, after, limit).await,
        }
    }

    pub(super) async fn prune_audit_by_defect(
        &self,
        tenant: &str,
        through: AuditHead,
    ) -> CheckpointResult<u64> {
        match self.defect {
            RegistryDefect::AuditPrunedUnchecked => {
                let through = self.stored(tenant, through.seq).await?.unwrap_or(through);
                self.inner.prune_audit(tenant, through).await
            }
            RegistryDefect::AuditPrunedBefore => {
                let before = self.stored(tenant, through.seq.saturating_sub(1)).await?;
                let through = before.unwrap_or(through);
                self.inner.prune_audit(tenant, through).await
            }
            RegistryDefect::AuditPrunedForAll => {
                let mut count = 0;
                for tenant in self.inner.audited_tenants().await? {
                    count += self.inner.prune_audit(&tenant, through).await?;
                }
                Ok(count)
            }
            _ => self.inner.prune_audit(tenant, through).await,
        }
    }

    /// Returns the number and the hash of an entry.
    async fn stored(&self, tenant: &str, seq: u64) -> CheckpointResult<Option<AuditHead>> {
        let found = self.inner.audit(tenant, 0, u32::MAX).await?;
        let found = found.into_iter().find(|entry| entry.seq == seq);
        Ok(found.map(|entry| AuditHead {
            seq,
            hash: entry.hash,
        }))
    }

    pub(super) async fn audited_tenants_by_defect(&self) -> CheckpointResult<Vec<String>> {
        let mut tenants = self.inner.audited_tenants().await?;
        match self.defect {
            RegistryDefect::AuditedTenantsWithoutOrder => tenants.reverse(),
            RegistryDefect::AuditOfNobody if tenants.is_empty() => tenants.push(String::new()),
            _ => {}
        }
        Ok(tenants)
    }
}
