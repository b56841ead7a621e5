//! Prunes audit logs: deletes their oldest entries in a way that the verifier accepts.
//!
//! First the log gets an entry that says up to where it is pruned, with the hash of the last entry that goes. Then the entries are
//! deleted, in one write. If the process dies in between, the log is whole, and says more than was done.

use serde_json::{Value as Json, json};
use superstep::Timestamp;
use superstep::registry::{AuditEntry, AuditHead, Registry};

use super::chain::AuditKey;
use super::verifier::{AuditProblem, AuditVerifier, verify_audit_log};
use super::writer::{AuditRecord, append};

/// What pruning an audit log came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrunedAudit {
    /// Number of entries that were deleted.
    pub deleted: u64,
    /// The end of the log after that.
    pub head: AuditHead,
}

/// Deletes the oldest entries of a tenant's audit log: those before the first one that was made at `before` or later. The last entry
/// always stays.
///
/// The log is verified first, and nothing is deleted if something is wrong with it or the key is not its own. The entry that says what
/// was pruned is made by `principal` at `now`.
pub async fn prune_audit_log(
    registry: &dyn Registry,
    tenant: &str,
    key: Option<&AuditKey>,
    before: Timestamp,
    (principal, now): (&str, Timestamp),
) -> Result<PrunedAudit, AuditProblem> {
    let verifier = AuditVerifier::new(tenant, key);
    let head = verify_audit_log(registry, tenant, verifier).await?;
    let Some(through) = last_before(registry, tenant, before, head).await? else {
        return Ok(PrunedAudit { deleted: 0, head });
    };
    let record = prune_record(through, before, (principal, now));
    let appended = append(registry, key, tenant, Some(head), &[record]).await?;
    let deleted = registry.prune_audit(tenant, through).await?;
    Ok(PrunedAudit {
        deleted,
        head: appended.unwrap_or(head),
    })
}

/// Returns the record that a log is pruned up to and including an entry.
pub(super) fn prune_record(
    through: AuditHead,
    before: Timestamp,
    (principal, now): (&str, Timestamp),
) -> AuditRecord {
    let detail = json!({
        "through": through.seq,
        "hash": hex(&through.hash),
        "before": before.0,
    });
    AuditRecord {
        at: now,
        principal: principal.to_owned(),
        action: PRUNE.to_owned(),
        resource: "/superstep/audit".to_owned(),
        detail: detail.to_string(),
    }
}

/// Returns the last of the oldest entries that were made before a time; `None` if there is none. Clocks of servers differ, so a later
/// entry may be older than one that stays.
async fn last_before(
    registry: &dyn Registry,
    tenant: &str,
    before: Timestamp,
    head: AuditHead,
) -> Result<Option<AuditHead>, AuditProblem> {
    let mut found = None;
    let mut after = 0;
    loop {
        let page = registry.audit(tenant, after, PAGE).await?;
        for entry in &page {
            if entry.at >= before || entry.seq > head.seq {
                return Ok(found);
            }
            found = Some(AuditHead {
                seq: entry.seq,
                hash: entry.hash,
            });
        }
        let Some(last) = page.last() else {
            return Ok(found);
        };
        after = last.seq;
    }
}

/// Returns up to where an entry says that its log was pruned; `None` if it says nothing of that kind.
pub(super) fn pruned_through(entry: &AuditEntry) -> Option<AuditHead> {
    if entry.action != PRUNE {
        return None;
    }
    let detail: Json = serde_json::from_str(&entry.detail).ok()?;
    let through = AuditHead {
        seq: detail["through"].as_u64()?,
        hash: read_hex(detail["hash"].as_str()?)?,
    };
    // An entry cannot speak of those after it.
    (through.seq < entry.seq).then_some(through)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_hex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

/// Action of the entry that says up to where the log was pruned. No request has it: those are named by their routes.
const PRUNE: &str = "audit.prune";
const PAGE: u32 = 1_000;

#[cfg(test)]
mod tests {
    use superstep::registry::MemoryRegistry;

    use super::*;

    const DAY: i64 = 86_400_000;

    fn key() -> AuditKey {
        AuditKey::new(b"a secret of the operator").unwrap()
    }

    /// A log with an entry for each of so many days.
    async fn log(days: i64) -> MemoryRegistry {
        let registry = MemoryRegistry::new();
        let records: Vec<_> = (0..days)
            .map(|day| AuditRecord {
                at: Timestamp(day * DAY),
                principal: "ann".to_owned(),
                action: "POST /threads".to_owned(),
                resource: "/threads".to_owned(),
                detail: "{}".to_owned(),
            })
            .collect();
        let key = key();
        let appended = append(&registry, Some(&key), "acme", None, &records);
        appended.await.unwrap();
        registry
    }

    async fn prune(registry: &MemoryRegistry, day: i64) -> PrunedAudit {
        let (before, by) = (Timestamp(day * DAY), ("ann", Timestamp(100 * DAY)));
        let key = key();
        let pruned = prune_audit_log(registry, "acme", Some(&key), before, by);
        pruned.await.unwrap()
    }

    async fn verify(
        registry: &MemoryRegistry,
        anchor: Option<AuditHead>,
    ) -> Result<AuditHead, AuditProblem> {
        let mut verifier = AuditVerifier::new("acme", Some(&key()));
        if let Some(anchor) = anchor {
            verifier = verifier.anchor(anchor);
        }
        verify_audit_log(registry, "acme", verifier).await
    }

    #[tokio::test]
    async fn a_pruned_log_is_verified_and_pruned_again() {
        let registry = log(10).await;
        let pruned = prune(&registry, 4).await;
        assert_eq!((pruned.deleted, pruned.head.seq), (4, 11));
        assert_eq!(verify(&registry, None).await.unwrap(), pruned.head);
        // Nothing is that old any more, and so nothing is written.
        assert_eq!(
            prune(&registry, 4).await,
            PrunedAudit {
                deleted: 0,
                ..pruned
            }
        );
        // The entry about the first time goes with the others.
        let pruned = prune(&registry, 200).await;
        assert_eq!((pruned.deleted, pruned.head.seq), (7, 12));
        assert_eq!(verify(&registry, None).await.unwrap(), pruned.head);
        let left = registry.audit("acme", 0, 10).await.unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].action, PRUNE);
    }

    #[tokio::test]
    async fn what_is_deleted_without_an_entry_about_it_is_missed() {
        let registry = log(10).await;
        prune(&registry, 4).await;
        let entries = registry.audit("acme", 0, 10).await.unwrap();
        let fifth = AuditHead {
            seq: 5,
            hash: entries[0].hash,
        };
        assert_eq!(registry.prune_audit("acme", fifth).await.unwrap(), 1);
        let found = verify(&registry, None).await.unwrap_err();
        assert!(
            matches!(found, AuditProblem::Beginning { first: 6 }),
            "{found}"
        );
    }

    #[tokio::test]
    async fn a_log_with_a_problem_or_under_another_key_is_not_pruned() {
        let registry = log(10).await;
        let by = ("ann", Timestamp(100 * DAY));
        let pruned = prune_audit_log(&registry, "acme", None, Timestamp(4 * DAY), by).await;
        assert!(matches!(pruned, Err(AuditProblem::Changed { seq: 1 })));
        assert_eq!(registry.audit("acme", 0, 20).await.unwrap().len(), 10);
    }

    #[tokio::test]
    async fn a_noted_end_is_compared_unless_it_was_pruned() {
        let registry = log(10).await;
        let entries = registry.audit("acme", 0, 20).await.unwrap();
        let noted = |seq: usize| {
            Some(AuditHead {
                seq: seq as u64,
                hash: entries[seq - 1].hash,
            })
        };
        prune(&registry, 4).await;
        verify(&registry, noted(10)).await.unwrap();
        verify(&registry, noted(4)).await.unwrap();
        let found = verify(&registry, noted(3)).await.unwrap_err();
        let is_pruned = matches!(found, AuditProblem::AnchorPruned { seq: 3, through: 4 });
        assert!(is_pruned, "{found}");
        let wrong = noted(4).map(|head| AuditHead {
            hash: [1; 32],
            ..head
        });
        let found = verify(&registry, wrong).await.unwrap_err();
        assert!(matches!(found, AuditProblem::Anchor { seq: 4 }), "{found}");
    }
}
