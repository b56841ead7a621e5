//! The registry: audit logs.

use superstep_core::registry::{AuditEntry, AuditHead, Registry};

use super::registry::{STRANGERS, later};
use super::security::hostile_texts;
use crate::poll::join_all;
use crate::report::{Verdict, ensure, ensure_eq};

pub(super) async fn empty_audit_log_has_no_entries(db: &dyn Registry) -> Verdict {
    let empty = AuditHead::default();
    ensure_eq!(db.audit_head("acme").await?, empty, "the end of no log");
    ensure_eq!(db.audit("acme", 0, 10).await?, [], "the entries of no log");
    let appended = db.append_audit("acme", &[]).await?;
    ensure_eq!(appended, empty, "no entries");
    let tenants = db.audited_tenants().await?;
    ensure!(tenants.is_empty(), "a log without entries: {tenants:?}");
    Ok(())
}

pub(super) async fn appended_entries_are_read_as_given(db: &dyn Registry) -> Verdict {
    let mut entries = chain(AuditHead::default(), 4);
    entries[1].principal = String::new();
    entries[2].detail = "x".repeat(100_000);
    for part in [&entries[..1], &entries[1..3], &entries[3..]] {
        let appended = db.append_audit("acme", part).await?;
        ensure_eq!(Some(appended), end_of(part), "the end after the entries");
        let head = db.audit_head("acme").await?;
        ensure_eq!(head, appended, "the end as it is read");
    }
    let found = db.audit("acme", 0, 10).await?;
    ensure_eq!(found, entries, "the entries as they are read");
    Ok(())
}

pub(super) async fn audit_is_read_after_a_number(db: &dyn Registry) -> Verdict {
    let entries = chain(AuditHead::default(), 5);
    db.append_audit("acme", &entries).await?;
    for (after, limit, wanted) in [
        (0, 2, &entries[..2]),
        (2, 2, &entries[2..4]),
        (4, 2, &entries[4..]),
        (5, 2, &[]),
        (0, 0, &[]),
        (u64::MAX, 2, &[]),
    ] {
        let found = db.audit("acme", after, limit).await?;
        ensure_eq!(found, wanted, "at most {limit} entries after {after}");
    }
    Ok(())
}

pub(super) async fn entries_that_do_not_continue_the_log_are_not_appended(
    db: &dyn Registry,
) -> Verdict {
    let entries = chain(AuditHead::default(), 2);
    let last = entries[1].clone();
    // Before the log has an entry: the second entry, and a first one that follows something.
    let after_something = AuditEntry {
        previous: [1; 32],
        ..entries[0].clone()
    };
    for wrong in [&entries[1], &after_something] {
        let head = db.append_audit("acme", std::slice::from_ref(wrong)).await?;
        ensure_eq!(
            head,
            AuditHead::default(),
            "the end of a log without entries"
        );
    }
    ensure!(
        db.audited_tenants().await?.is_empty(),
        "a log has begun with an entry that is not the first"
    );
    db.append_audit("acme", &entries).await?;
    let head = db.audit_head("acme").await?;
    let next = chain(head, 2);
    let other_hash = AuditEntry {
        previous: [1; 32],
        ..next[0].clone()
    };
    let gap = AuditEntry {
        previous: head.hash,
        ..next[1].clone()
    };
    let same_number = AuditEntry {
        seq: last.seq,
        ..next[0].clone()
    };
    let number_zero = AuditEntry {
        seq: 0,
        ..next[0].clone()
    };
    let broken_inside = [
        next[0].clone(),
        AuditEntry {
            previous: [1; 32],
            ..next[1].clone()
        },
    ];
    let gap_inside = [
        next[0].clone(),
        AuditEntry {
            seq: 9,
            ..next[1].clone()
        },
    ];
    for (what, wrong) in [
        ("another hash", &[other_hash] as &[AuditEntry]),
        ("a gap", &[gap]),
        ("a number that exists", &[same_number]),
        ("number zero", &[number_zero]),
        ("the beginning of a log", &entries),
        ("a broken chain", &broken_inside),
        ("a chain with a gap", &gap_inside),
    ] {
        let found = db.append_audit("acme", wrong).await?;
        ensure_eq!(found, head, "the end after {what}");
        let found = db.audit("acme", 0, 10).await?;
        ensure_eq!(found, entries, "the entries after {what}");
    }
    let appended = db.append_audit("acme", &next).await?;
    ensure_eq!(Some(appended), end_of(&next), "the end after what fits");
    Ok(())
}

pub(super) async fn same_entries_twice_are_appended_once(db: &dyn Registry) -> Verdict {
    let entries = chain(AuditHead::default(), 3);
    for part in [&entries[..2], &entries[2..]] {
        for time in ["first", "second"] {
            let appended = db.append_audit("acme", part).await?;
            ensure_eq!(Some(appended), end_of(part), "the end, the {time} time");
        }
    }
    let found = db.audit("acme", 0, 10).await?;
    ensure_eq!(found, entries, "the entries");
    Ok(())
}

pub(super) async fn racing_appends_make_one_chain(db: &dyn Registry) -> Verdict {
    let mut head = AuditHead::default();
    for round in 0..8u8 {
        let racing: Vec<_> = (0..16u8)
            .map(|n| {
                let mut entries = chain(head, 2);
                entries[1].hash = [round, n].repeat(16).try_into().unwrap_or([n; 32]);
                entries
            })
            .collect();
        let results = join_all(racing.iter().map(|part| db.append_audit("acme", part))).await;
        let mut won = Vec::new();
        for (part, result) in racing.iter().zip(results) {
            if Some(result?) == end_of(part) {
                won.push(part);
            }
        }
        ensure_eq!(won.len(), 1, "winners of round {round}");
        let found = db.audit("acme", head.seq, 10).await?;
        ensure_eq!(&found, won[0], "the entries of round {round}");
        head = db.audit_head("acme").await?;
        ensure_eq!(Some(head), end_of(won[0]), "the end of round {round}");
    }
    Ok(())
}

pub(super) async fn prune_deletes_the_beginning_of_a_log(db: &dyn Registry) -> Verdict {
    let entries = chain(AuditHead::default(), 5);
    db.append_audit("acme", &entries).await?;
    for (through, count, wanted) in [(2, 2, &entries[2..]), (4, 2, &entries[4..])] {
        let end = end_of(&entries[..through]).unwrap_or_default();
        let deleted = db.prune_audit("acme", end).await?;
        ensure_eq!(deleted, count, "entries up to {through}");
        let found = db.audit("acme", 0, 10).await?;
        ensure_eq!(found, wanted, "what is left after {through}");
        let again = db.prune_audit("acme", end).await?;
        ensure_eq!(again, 0, "entries up to {through}, the second time");
    }
    // The log goes on as if it were whole.
    let head = db.audit_head("acme").await?;
    ensure_eq!(Some(head), end_of(&entries), "the end");
    let next = chain(head, 2);
    let appended = db.append_audit("acme", &next).await?;
    ensure_eq!(Some(appended), end_of(&next), "the end after more entries");
    Ok(())
}

pub(super) async fn prune_needs_the_hash_of_an_entry_before_the_last(db: &dyn Registry) -> Verdict {
    let entries = chain(AuditHead::default(), 3);
    db.append_audit("acme", &entries).await?;
    let end = end_of(&entries).unwrap_or_default();
    let second = end_of(&entries[..2]).unwrap_or_default();
    for (what, through) in [
        ("the last entry", end),
        (
            "another hash",
            AuditHead {
                hash: [9; 32],
                ..second
            },
        ),
        ("the hash of another entry", AuditHead { seq: 1, ..second }),
        ("an entry to come", AuditHead { seq: 4, ..end }),
        ("no entry", AuditHead::default()),
    ] {
        let deleted = db.prune_audit("acme", through).await?;
        ensure_eq!(deleted, 0, "entries up to {what}");
        let found = db.audit("acme", 0, 10).await?;
        ensure_eq!(found, entries, "the entries after {what}");
    }
    Ok(())
}

pub(super) async fn prune_spares_the_logs_of_others(db: &dyn Registry) -> Verdict {
    let entries = chain(AuditHead::default(), 3);
    for tenant in ["acme", "acme-corp"] {
        db.append_audit(tenant, &entries).await?;
    }
    let second = end_of(&entries[..2]).unwrap_or_default();
    for tenant in STRANGERS
        .into_iter()
        .filter(|tenant| *tenant != "acme-corp")
    {
        let deleted = db.prune_audit(tenant, second).await?;
        ensure_eq!(deleted, 0, "entries of tenant `{tenant}`");
    }
    ensure_eq!(db.prune_audit("acme", second).await?, 2, "own entries");
    let found = db.audit("acme-corp", 0, 10).await?;
    ensure_eq!(found, entries, "the entries of another tenant");
    Ok(())
}

pub(super) async fn tenants_are_apart_in_audit_logs(db: &dyn Registry) -> Verdict {
    let own = chain(AuditHead::default(), 2);
    db.append_audit("acme", &own).await?;
    for tenant in STRANGERS {
        let found = db.audit(tenant, 0, 10).await?;
        ensure_eq!(found, [], "the entries of tenant `{tenant}`");
        let head = db.audit_head(tenant).await?;
        ensure_eq!(head, AuditHead::default(), "the end of tenant `{tenant}`");
    }
    // Each log has numbers of its own.
    let mut other = chain(AuditHead::default(), 1);
    other[0].principal = "eve".into();
    let appended = db.append_audit("acme-corp", &other).await?;
    ensure_eq!(Some(appended), end_of(&other), "the end of the other log");
    let found = db.audit("acme", 0, 10).await?;
    ensure_eq!(found, own, "the entries after those of the other tenant");
    let found = db.audit("acme-corp", 0, 10).await?;
    ensure_eq!(found, other, "the entries of the other tenant");
    Ok(())
}

pub(super) async fn audited_tenants_are_in_order(db: &dyn Registry) -> Verdict {
    let first = chain(AuditHead::default(), 1);
    for tenant in ["b", "", "a-b", "B", "a", "ä", "ab"] {
        db.append_audit(tenant, &first).await?;
    }
    let wanted = ["", "B", "a", "a-b", "ab", "b", "ä"];
    let found = db.audited_tenants().await?;
    ensure_eq!(found, wanted, "the tenants, by their bytes");
    Ok(())
}

pub(super) async fn hostile_texts_of_audit_entries_survive(db: &dyn Registry) -> Verdict {
    for text in &hostile_texts() {
        let mut entries = chain(AuditHead::default(), 2);
        for entry in &mut entries {
            entry.principal.clone_from(text);
            entry.action.clone_from(text);
            entry.resource.clone_from(text);
            entry.detail.clone_from(text);
        }
        db.append_audit(text, &entries).await?;
        let found = db.audit(text, 0, 10).await?;
        ensure_eq!(found, entries, "the entries of {text:?}");
    }
    Ok(())
}

/// Entries that continue a log. The registry does not compute hashes, so these are only different ones.
pub(super) fn chain(head: AuditHead, count: u8) -> Vec<AuditEntry> {
    let mut previous = head.hash;
    let mut entries = Vec::new();
    for n in 1..=count {
        let seq = head.seq + u64::from(n);
        let mut hash = [n; 32];
        hash[..8].copy_from_slice(&seq.to_le_bytes());
        entries.push(AuditEntry {
            seq,
            at: later(seq),
            principal: "ann".into(),
            action: "run.create".into(),
            resource: format!("threads/{seq}"),
            detail: "{}".into(),
            previous,
            hash,
        });
        previous = hash;
    }
    entries
}

/// Returns the end of a log whose last entries are these.
fn end_of(entries: &[AuditEntry]) -> Option<AuditHead> {
    entries.last().map(|last| AuditHead {
        seq: last.seq,
        hash: last.hash,
    })
}
