//! Branches of a thread's log. Every entry names the entry that it follows, which is an older one after a fork.

use std::collections::{BTreeMap, BTreeSet};

use superstep::{HistoryEntry, Seq};

/// Returns the entries on the way from the beginning to an entry, which is one of them.
pub(super) fn entries_before(log: &[HistoryEntry], last: Seq) -> BTreeSet<Seq> {
    let parents: BTreeMap<Seq, Seq> = log
        .iter()
        .map(|past| (past.seq, past.entry.parent))
        .collect();
    let mut found = BTreeSet::new();
    let mut seq = last;
    while let Some(parent) = parents.get(&seq) {
        found.insert(seq);
        // A stored parent is always older; one that is not would make this endless.
        if *parent >= seq {
            break;
        }
        seq = *parent;
    }
    found
}

/// Returns the entries that continue from an entry on the newest branch that does, oldest first, without the entry itself.
pub(super) fn entries_after(log: &[HistoryEntry], from: Seq) -> Vec<&HistoryEntry> {
    let mut continues = BTreeSet::from([from]);
    // A parent is older than its child, so one pass in order finds all of them.
    for past in log {
        if continues.contains(&past.entry.parent) {
            continues.insert(past.seq);
        }
    }
    let newest = continues.last().copied().unwrap_or(from);
    let branch = entries_before(log, newest);
    let is_after = |past: &&HistoryEntry| past.seq > from && branch.contains(&past.seq);
    log.iter().filter(is_after).collect()
}

#[cfg(test)]
mod tests {
    use superstep::Timestamp;
    use superstep::checkpoint::format::{Entry, EntryKind, Extensions};

    use super::*;

    fn log(parents: &[u64]) -> Vec<HistoryEntry> {
        let entry = |parent: u64| Entry {
            kind: EntryKind::Step,
            parent: Seq(parent),
            at: Timestamp(0),
            changes: Vec::new(),
            stop: None,
            extensions: Extensions::default(),
        };
        let entries = parents.iter().zip(1..);
        let entries = entries.map(|(parent, seq)| HistoryEntry {
            seq: Seq(seq),
            entry: entry(*parent),
        });
        entries.collect()
    }

    #[test]
    fn a_fork_leaves_the_entries_that_it_does_not_continue() {
        // 1 ← 2 ← 3, then a fork at 1: 1 ← 4 ← 5.
        let log = log(&[0, 1, 2, 1, 4]);
        let before = entries_before(&log, Seq(5));
        assert_eq!(before, BTreeSet::from([Seq(1), Seq(4), Seq(5)]));
        let after = |from: u64| {
            let found = entries_after(&log, Seq(from)).into_iter();
            found.map(|past| past.seq.0).collect::<Vec<_>>()
        };
        assert_eq!(after(1), [4, 5], "the newest branch");
        assert_eq!(after(2), [3]);
        assert_eq!(after(5), [0; 0]);
    }
}
