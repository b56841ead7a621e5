//! The hashes of entries.

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use superstep::registry::{AuditEntry, AuditHead};

use super::writer::AuditRecord;

/// The secret under which entries of the audit log are hashed. Who can write to the database but does not have it cannot change
/// the past unseen.
#[derive(Clone)]
pub struct AuditKey(Vec<u8>);

impl AuditKey {
    /// Creates a key from a secret of at least 16 bytes; `None` if it is shorter.
    pub fn new(secret: &[u8]) -> Option<Self> {
        (secret.len() >= SECRET_BYTES_MIN).then(|| Self(secret.to_vec()))
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(…)")
    }
}

/// Returns the hash of some bytes: under the key if there is one.
pub(super) fn hash(key: Option<&AuditKey>, bytes: &[u8]) -> [u8; 32] {
    match key {
        Some(AuditKey(secret)) => {
            let mut mac =
                Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of every length");
            mac.update(bytes);
            mac.finalize().into_bytes().into()
        }
        None => Sha256::digest(bytes).into(),
    }
}

/// Returns the hash that an entry of a tenant must have.
pub(super) fn entry_hash(key: Option<&AuditKey>, tenant: &str, entry: &AuditEntry) -> [u8; 32] {
    let mut bytes = DOMAIN.to_vec();
    let mut add = |field: &[u8]| {
        // With the lengths, no two entries are the same bytes.
        bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
        bytes.extend_from_slice(field);
    };
    // Every field, so that a new one is not forgotten.
    let AuditEntry {
        seq,
        at,
        principal,
        action,
        resource,
        detail,
        previous,
        hash: _,
    } = entry;
    add(tenant.as_bytes());
    add(&seq.to_be_bytes());
    add(&at.0.to_be_bytes());
    for text in [principal, action, resource, detail] {
        add(text.as_bytes());
    }
    add(previous);
    hash(key, &bytes)
}

/// Returns records as the entries that follow the end of a tenant's log.
pub(super) fn entries_after(
    head: AuditHead,
    key: Option<&AuditKey>,
    tenant: &str,
    records: &[AuditRecord],
) -> Vec<AuditEntry> {
    let mut head = head;
    let entry = |record: &AuditRecord| {
        let mut entry = AuditEntry {
            seq: head.seq + 1,
            at: record.at,
            principal: record.principal.clone(),
            action: record.action.clone(),
            resource: record.resource.clone(),
            detail: record.detail.clone(),
            previous: head.hash,
            hash: [0; 32],
        };
        entry.hash = entry_hash(key, tenant, &entry);
        head = AuditHead {
            seq: entry.seq,
            hash: entry.hash,
        };
        entry
    };
    records.iter().map(entry).collect()
}

/// What is hashed begins with this, so that a hash of an entry is one of nothing else.
const DOMAIN: &[u8] = b"superstep audit entry 1\0";
const SECRET_BYTES_MIN: usize = 16;
