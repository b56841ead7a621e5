//! The audit log: who did what. Each entry carries the hash of the one before it, so that a change of the past can be seen.
//!
//! A registry only appends what fits to the end of a tenant's chain, and deletes its beginning. The hashes are made and checked by
//! the server.

use crate::ids::Timestamp;

/// An entry of a tenant's audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Number of the entry within its tenant, from 1, without gaps.
    pub seq: u64,
    /// When it was made.
    pub at: Timestamp,
    /// Who acted.
    pub principal: String,
    /// What was done, such as `run.create` or `interrupt.answer`.
    pub action: String,
    /// What it was done to, such as the path of a thread.
    pub resource: String,
    /// More about it: JSON, without secrets.
    pub detail: String,
    /// Hash of the entry before; zeros for the first one.
    pub previous: [u8; 32],
    /// Hash of this entry.
    pub hash: [u8; 32],
}

/// The end of a tenant's audit log. It is stored next to the entries, so that cutting off the last ones can be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditHead {
    /// Number of the last entry; 0 if there is none.
    pub seq: u64,
    /// Hash of the last entry; zeros if there is none.
    pub hash: [u8; 32],
}

impl AuditHead {
    /// Returns the end of the log after these entries; `None` if they do not continue it.
    pub fn after(self, entries: &[AuditEntry]) -> Option<Self> {
        entries.iter().try_fold(self, |head, entry| {
            let is_next = head.seq.checked_add(1) == Some(entry.seq);
            let fits = is_next && entry.previous == head.hash;
            fits.then_some(Self {
                seq: entry.seq,
                hash: entry.hash,
            })
        })
    }
}
