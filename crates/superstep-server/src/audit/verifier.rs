//! Finds entries that were deleted, changed, reordered or cut off.
//!
//! The first entry of a log is number 1, or follows an entry that the log itself says was the last one to be pruned. That entry of
//! the log is hashed like all others, so only who has the key can prune.

use superstep::error::CheckpointError;
use superstep::registry::{AuditEntry, AuditHead, Registry};

use super::chain::{AuditKey, entry_hash};
use super::prune::pruned_through;

/// Checks a tenant's audit log, entry by entry, oldest first.
#[derive(Debug)]
pub struct AuditVerifier {
    tenant: String,
    key: Option<AuditKey>,
    /// An end that the log had once.
    anchor: Option<AuditHead>,
    head: AuditHead,
    /// The entry before the first one; `None` before that was checked.
    beginning: Option<AuditHead>,
    /// Whether an entry says that the log was pruned up to its beginning.
    is_beginning_known: bool,
}

/// What is wrong with an audit log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditProblem {
    /// An entry is not where it should be.
    #[error("entry {expected} is missing: entry {found} is in its place")]
    Missing {
        /// Number of the entry that is missing.
        expected: u64,
        /// Number of the entry in its place.
        found: u64,
    },
    /// An entry does not follow the one before it.
    #[error("entry {seq} does not follow the entry before it: one of them was replaced")]
    Unlinked {
        /// Number of the entry.
        seq: u64,
    },
    /// The hash of an entry is not that of its content.
    #[error("entry {seq} was changed, or the key is not the one it was written with")]
    Changed {
        /// Number of the entry.
        seq: u64,
    },
    /// The log does not end where its stored end is.
    #[error(
        "the log ends at entry {found}, and its stored end is entry {stored}: the end was cut off or replaced"
    )]
    End {
        /// Number of the last entry.
        found: u64,
        /// Number of the stored end.
        stored: u64,
    },
    /// The log does not contain an end that it had once.
    #[error(
        "entry {seq} is not the one that was noted: the log was cut off there and continued, or written again"
    )]
    Anchor {
        /// Number of the noted entry.
        seq: u64,
    },
    /// Entries at the beginning of the log are missing, and no entry says that they were pruned.
    #[error(
        "the log begins with entry {first}, and no entry says that those before it were pruned: they were deleted"
    )]
    Beginning {
        /// Number of the first entry.
        first: u64,
    },
    /// An end that the log had once was pruned, so it cannot be compared.
    #[error(
        "entry {seq} was noted, and the entries up to {through} were pruned; compare the end that was noted last"
    )]
    AnchorPruned {
        /// Number of the noted entry.
        seq: u64,
        /// Number of the last entry that was pruned.
        through: u64,
    },
    /// The log could not be read.
    #[error("the audit log cannot be read")]
    Read(#[from] CheckpointError),
}

impl AuditVerifier {
    /// Creates a verifier for a tenant's log that was written under this key.
    pub fn new(tenant: &str, key: Option<&AuditKey>) -> Self {
        Self {
            tenant: tenant.to_owned(),
            key: key.cloned(),
            anchor: None,
            head: AuditHead::default(),
            beginning: None,
            is_beginning_known: false,
        }
    }

    /// Checks also that the log contains an end that it had once, and that was noted outside of the database. Without that, a
    /// database that was set back as a whole to an earlier time cannot be told from one in which nothing happened since.
    #[must_use]
    pub fn anchor(mut self, anchor: AuditHead) -> Self {
        self.anchor = Some(anchor);
        self
    }

    /// Checks the next entry.
    pub fn check(&mut self, entry: &AuditEntry) -> Result<(), AuditProblem> {
        let seq = entry.seq;
        if self.beginning.is_none() {
            // Whether the log may begin here is known when all entries were checked.
            self.head = AuditHead {
                seq: seq.saturating_sub(1),
                hash: entry.previous,
            };
            self.beginning = Some(self.head);
            self.is_beginning_known = self.head == AuditHead::default();
            if let Some(anchor) = self.anchor.filter(|anchor| anchor.seq == self.head.seq)
                && anchor != self.head
            {
                return Err(AuditProblem::Anchor { seq: anchor.seq });
            }
        }
        if seq != self.head.seq + 1 {
            return Err(AuditProblem::Missing {
                expected: self.head.seq + 1,
                found: seq,
            });
        }
        if entry.previous != self.head.hash {
            return Err(AuditProblem::Unlinked { seq });
        }
        if entry.hash != entry_hash(self.key.as_ref(), &self.tenant, entry) {
            return Err(AuditProblem::Changed { seq });
        }
        if let Some(anchor) = self.anchor
            && anchor.seq == seq
            && anchor.hash != entry.hash
        {
            return Err(AuditProblem::Anchor { seq });
        }
        self.head = AuditHead {
            seq,
            hash: entry.hash,
        };
        if !self.is_beginning_known {
            self.is_beginning_known = pruned_through(entry) == self.beginning;
        }
        Ok(())
    }

    /// Checks the stored end after the last entry, and returns it.
    pub fn finish(self, stored: AuditHead) -> Result<AuditHead, AuditProblem> {
        let beginning = self.beginning.unwrap_or_default();
        if self.beginning.is_some() && !self.is_beginning_known {
            return Err(AuditProblem::Beginning {
                first: beginning.seq + 1,
            });
        }
        if self.head != stored {
            return Err(AuditProblem::End {
                found: self.head.seq,
                stored: stored.seq,
            });
        }
        match self.anchor {
            Some(anchor) if anchor.seq > self.head.seq => {
                Err(AuditProblem::Anchor { seq: anchor.seq })
            }
            Some(anchor) if anchor.seq < beginning.seq => Err(AuditProblem::AnchorPruned {
                seq: anchor.seq,
                through: beginning.seq,
            }),
            _ => Ok(self.head),
        }
    }
}

/// Checks the whole audit log of a tenant, and returns its end.
pub async fn verify_audit_log(
    registry: &dyn Registry,
    tenant: &str,
    mut verifier: AuditVerifier,
) -> Result<AuditHead, AuditProblem> {
    let mut stored = registry.audit_head(tenant).await?;
    let mut after = 0;
    loop {
        let page = registry.audit(tenant, after, PAGE).await?;
        let Some(last) = page.last().map(|last| last.seq) else {
            return verifier.finish(stored);
        };
        for entry in &page {
            if entry.seq > stored.seq {
                // Appended meanwhile, and the end with it; or the end was set back.
                stored = registry.audit_head(tenant).await?;
                if entry.seq > stored.seq {
                    return Err(AuditProblem::End {
                        found: entry.seq,
                        stored: stored.seq,
                    });
                }
            }
            verifier.check(entry)?;
        }
        after = last;
    }
}

const PAGE: u32 = 1_000;

#[cfg(test)]
mod tests {
    use superstep::Timestamp;

    use super::*;
    use crate::audit::chain::entries_after;
    use crate::audit::prune::prune_record;
    use crate::audit::writer::AuditRecord;

    fn log(key: Option<&AuditKey>, length: i64) -> Vec<AuditEntry> {
        let records = (0..length).map(|number| AuditRecord {
            at: Timestamp(number),
            principal: "ann".to_owned(),
            action: "POST /threads".to_owned(),
            resource: format!("/threads/{number}"),
            detail: "{}".to_owned(),
        });
        let records: Vec<_> = records.collect();
        entries_after(AuditHead::default(), key, "acme", &records)
    }

    fn verify(
        key: Option<&AuditKey>,
        entries: &[AuditEntry],
        stored: AuditHead,
    ) -> Result<AuditHead, AuditProblem> {
        let mut verifier = AuditVerifier::new("acme", key);
        entries.iter().try_for_each(|entry| verifier.check(entry))?;
        verifier.finish(stored)
    }

    fn head(entries: &[AuditEntry]) -> AuditHead {
        entries
            .last()
            .map_or_else(AuditHead::default, |last| AuditHead {
                seq: last.seq,
                hash: last.hash,
            })
    }

    /// Numbers that look random and are the same in every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: usize) -> usize {
            // The generator SplitMix64.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % end as u64) as usize
        }
    }

    /// Changes the log in one of the ways that must be found.
    fn tamper(entries: &mut Vec<AuditEntry>, dice: &mut Dice) -> &'static str {
        let at = dice.below(entries.len());
        let entry = &mut entries[at];
        match dice.below(13) {
            0 => {
                entries.remove(at);
                "deleted"
            }
            1 => {
                let cut = entries.len() - 1 - dice.below(entries.len() - 1);
                entries.truncate(cut);
                "cut off"
            }
            2 => {
                let other = (at + 1 + dice.below(entries.len() - 1)) % entries.len();
                entries.swap(at, other);
                "reordered"
            }
            3 => {
                // With the numbers in order again.
                let other = (at + 1 + dice.below(entries.len() - 1)) % entries.len();
                let first = entries[0].seq;
                entries.swap(at, other);
                (first..)
                    .zip(entries)
                    .for_each(|(seq, entry)| entry.seq = seq);
                "reordered and numbered"
            }
            4 => {
                let copy = entry.clone();
                entries.insert(at, copy);
                "repeated"
            }
            5 => {
                entry.at = Timestamp(entry.at.0 + 1);
                "time"
            }
            6 => {
                entry.principal = "bob".to_owned();
                "principal"
            }
            7 => {
                entry.action.push('s');
                "action"
            }
            8 => {
                // The boundary between two fields moves.
                entry.detail = format!("{}{}", entry.resource.pop().unwrap(), entry.detail);
                "boundary"
            }
            9 => {
                entry.detail = "{ }".to_owned();
                "detail"
            }
            10 => {
                entry.hash[dice.below(32)] ^= 1 << dice.below(8);
                "hash"
            }
            11 => {
                entry.previous[dice.below(32)] ^= 1 << dice.below(8);
                "previous"
            }
            _ => {
                // A change whose author recomputes every hash from there on, and the stored end, without the key.
                entry.principal = "bob".to_owned();
                let mut previous = entry.previous;
                for entry in &mut entries[at..] {
                    entry.previous = previous;
                    entry.hash = entry_hash(None, "acme", entry);
                    previous = entry.hash;
                }
                "recomputed"
            }
        }
    }

    #[test]
    fn a_thousand_of_a_thousand_tamperings_are_found() {
        let key = AuditKey::new(b"a secret of the operator").unwrap();
        let mut dice = Dice(20);
        for round in 0..1_000 {
            let whole = log(Some(&key), 2 + dice.below(40) as i64);
            let mut stored = head(&whole);
            verify(Some(&key), &whole, stored).unwrap();
            let mut changed = whole.clone();
            let how = tamper(&mut changed, &mut dice);
            if how == "recomputed" {
                stored = head(&changed);
            }
            let found = verify(Some(&key), &changed, stored);
            assert!(found.is_err(), "round {round}: {how} was not found");
        }
    }

    #[test]
    fn a_thousand_of_a_thousand_tamperings_of_pruned_logs_are_found() {
        let key = AuditKey::new(b"a secret of the operator").unwrap();
        let mut dice = Dice(21);
        for round in 0..1_000 {
            let pruned = pruned_log(&key, &mut dice);
            let mut stored = head(&pruned);
            verify(Some(&key), &pruned, stored).unwrap();
            let mut changed = pruned.clone();
            let how = match dice.below(6) {
                // The beginning is what a pruned log may lack, so this is where to try.
                0 => {
                    changed.drain(..=dice.below(pruned.len() - 1));
                    "deleted at the beginning"
                }
                1 => {
                    changed.retain(|entry| pruned_through(entry).is_none());
                    "no entry about the pruning"
                }
                _ => tamper(&mut changed, &mut dice),
            };
            assert_ne!(changed, pruned, "round {round}: {how} changed nothing");
            if how == "recomputed" {
                stored = head(&changed);
            }
            let found = verify(Some(&key), &changed, stored);
            assert!(found.is_err(), "round {round}: {how} was not found");
        }
    }

    /// A log that was pruned once, with entries before and after the one that says so.
    fn pruned_log(key: &AuditKey, dice: &mut Dice) -> Vec<AuditEntry> {
        let mut entries = log(Some(key), 4 + dice.below(40) as i64);
        let through = &entries[dice.below(entries.len() - 2)];
        let through = AuditHead {
            seq: through.seq,
            hash: through.hash,
        };
        let mut records = vec![prune_record(through, Timestamp(0), ("ann", Timestamp(0)))];
        records.resize(1 + dice.below(3), records[0].clone());
        for record in &mut records[1..] {
            record.action = "POST /threads".to_owned();
        }
        let later = entries_after(head(&entries), Some(key), "acme", &records);
        entries.extend(later);
        entries.retain(|entry| entry.seq > through.seq);
        entries
    }

    #[test]
    fn a_log_without_a_key_is_checked_too() {
        let whole = log(None, 10);
        verify(None, &whole, head(&whole)).unwrap();
        let mut changed = whole.clone();
        changed[4].action.push('s');
        let found = verify(None, &changed, head(&whole)).unwrap_err();
        assert!(matches!(found, AuditProblem::Changed { seq: 5 }), "{found}");
        let cut = &whole[..9];
        let found = verify(None, cut, head(&whole)).unwrap_err();
        let is_end = matches!(
            found,
            AuditProblem::End {
                found: 9,
                stored: 10
            }
        );
        assert!(is_end, "{found}");
    }

    #[test]
    fn a_log_of_another_tenant_or_key_is_not_accepted() {
        let key = AuditKey::new(b"a secret of the operator").unwrap();
        let whole = log(Some(&key), 3);
        assert!(verify(None, &whole, head(&whole)).is_err());
        let mut other = AuditVerifier::new("other", Some(&key));
        assert!(other.check(&whole[0]).is_err());
        assert!(AuditKey::new(b"short").is_none());
    }

    #[test]
    fn a_log_that_was_set_back_does_not_contain_the_noted_end() {
        let whole = log(None, 10);
        let noted = head(&whole);
        let verify = |entries: &[AuditEntry]| {
            let mut verifier = AuditVerifier::new("acme", None).anchor(noted);
            entries.iter().try_for_each(|entry| verifier.check(entry))?;
            verifier.finish(head(entries))
        };
        verify(&whole).unwrap();
        let found = verify(&whole[..9]).unwrap_err();
        assert!(matches!(found, AuditProblem::Anchor { seq: 10 }), "{found}");
    }
}
