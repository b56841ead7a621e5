//! The audit logs in memory.

use super::Rows;
use crate::registry::{AuditEntry, AuditHead};

impl Rows {
    pub(super) fn append_audit(&mut self, tenant: &str, entries: &[AuditEntry]) -> AuditHead {
        let head = self.audit_head(tenant);
        let Some(after) = head.after(entries).filter(|after| *after != head) else {
            return head;
        };
        let log = self.audit.entry(tenant.to_owned()).or_default();
        log.extend_from_slice(entries);
        after
    }

    pub(super) fn audit_head(&self, tenant: &str) -> AuditHead {
        let last = self.audit.get(tenant).and_then(|log| log.last());
        last.map_or_else(AuditHead::default, |last| AuditHead {
            seq: last.seq,
            hash: last.hash,
        })
    }

    pub(super) fn audit(&self, tenant: &str, after: u64, limit: u32) -> Vec<AuditEntry> {
        let log = self.audit.get(tenant).into_iter().flatten();
        let rest = log.filter(|entry| entry.seq > after);
        rest.take(limit as usize).cloned().collect()
    }

    pub(super) fn prune_audit(&mut self, tenant: &str, through: AuditHead) -> u64 {
        let Some(log) = self.audit.get_mut(tenant) else {
            return 0;
        };
        let is_it = |entry: &AuditEntry| entry.seq == through.seq && entry.hash == through.hash;
        match log.iter().position(is_it) {
            Some(at) if at + 1 < log.len() => log.drain(..=at).count() as u64,
            _ => 0,
        }
    }

    pub(super) fn audited_tenants(&self) -> Vec<String> {
        self.audit.keys().cloned().collect()
    }
}
