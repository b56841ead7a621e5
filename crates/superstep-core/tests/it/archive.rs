//! A whole thread as bytes: its golden file, and every way in which an archive can be wrong.

use serde_json::json;
use superstep_core::checkpoint::format::{Body, BodyKind, Extensions, OnDeadline, RECORD_SEQ};
use superstep_core::checkpoint::{
    AnswerBody, Archive, ArchivedAnswer, ArchivedEntry, ArchivedInterrupt, ArchivedListing, Head,
    Memory, RecordRow, Status, StoredBody,
};
use superstep_core::error::FormatError;
use superstep_core::{Checkpointer, Epoch, InterruptId, Seq, ThreadId, Timestamp};

use crate::format::{
    SEQ, encrypted, entries, extensions, golden_bytes, question, snapshot, step_record, task,
    task_record, thread, value,
};
use crate::simulate::block_on;

/// A paused thread, pruned up to its snapshot, with a part of every kind.
fn archive() -> Archive {
    let log = [(Seq(6), Epoch(3)), (SEQ, Epoch(900))];
    let log = log.into_iter().zip(entries());
    let entry =
        |((seq, epoch), (_, entry)): (_, (_, superstep_core::checkpoint::format::Entry))| {
            let body = entry.seal(&thread(), seq);
            ArchivedEntry { seq, epoch, body }
        };
    let record = |n, key: &str, body| RecordRow {
        task: task(n),
        key: key.to_owned(),
        body,
    };
    let sealed_record = [step_record(), task_record()].map(|record| record.seal(&thread(), Seq(0)));
    let [step, result] = sealed_record;
    Archive {
        thread: thread(),
        head: Head {
            epoch: Epoch(901),
            seq: SEQ,
            status: Status::Paused,
            recoveries: 2,
            answers: 2,
        },
        seen: 1,
        cancel: true,
        listing: ArchivedListing {
            graph: "graph".to_owned(),
            metadata: serde_json::from_value(json!({"user": "ada", "n": -0.5, "tags": [null]}))
                .unwrap(),
            values: Some(value("{\"x\":1}")),
            created: Timestamp(-1),
            updated: Timestamp(1_700_000_000_000),
        },
        entries: log.map(entry).collect(),
        snapshots: vec![StoredBody {
            seq: Seq(6),
            body: snapshot().seal(&thread(), Seq(6)),
        }],
        records: vec![
            record(1, "=result", result),
            record(1, "pay", step.clone()),
            record(2, "", step),
        ],
        interrupts: interrupts(),
        extensions: extensions(2),
    }
}

/// Open with a deadline, answered, expired and closed.
fn interrupts() -> Vec<ArchivedInterrupt> {
    let asked = |n, answer, closed| ArchivedInterrupt {
        id: InterruptId::from_bytes([n; 16]),
        seq: SEQ,
        asked_at: Timestamp(5),
        deadline: Some(Timestamp(9)).filter(|_| n == 1),
        body: question(OnDeadline::Fail).seal(&thread(), SEQ),
        answer,
        closed,
    };
    let answer = |body, by: &str| ArchivedAnswer {
        body,
        by: by.to_owned(),
        at: Timestamp(8),
    };
    vec![
        asked(1, None, None),
        asked(
            2,
            Some(answer(AnswerBody::Value(value("null")), "ada")),
            None,
        ),
        asked(3, Some(answer(AnswerBody::Expired, "")), Some(SEQ)),
    ]
}

fn code(read: Result<Archive, FormatError>) -> &'static str {
    read.map_or_else(|error| error.code(), |_| "read")
}

fn code_of(bytes: &[u8]) -> &'static str {
    code(Archive::from_bytes(bytes))
}

#[test]
fn the_golden_archive_of_format_1_decodes_and_encodes_to_the_same_bytes() {
    let bytes = golden_bytes("archive", &archive().to_bytes());
    assert_eq!(Archive::from_bytes(&bytes).unwrap(), archive());
}

#[test]
fn every_change_of_a_single_byte_is_noticed() {
    let whole = archive().to_bytes();
    for at in 0..whole.len() {
        for flip in [1, 2, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            assert_eq!(code_of(&bytes), "format-archive-damaged", "byte {at}");
        }
    }
}

#[test]
fn an_archive_that_is_cut_or_longer_is_noticed() {
    let whole = archive().to_bytes();
    for upto in 0..whole.len() {
        assert_eq!(code_of(&whole[..upto]), "format-archive-damaged");
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(code_of(&longer), "format-archive-damaged");
}

/// An archive with other bytes, and a checksum that fits them.
fn sealed_again(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut bytes);
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..3]);
    sum.update(&bytes[7..]);
    bytes[3..7].copy_from_slice(&sum.finalize().to_le_bytes());
    bytes
}

#[test]
fn newer_formats_envelopes_and_other_kinds_are_told_by_name() {
    let read = |header: [u8; 3]| {
        let again = |bytes: &mut Vec<u8>| bytes[..3].copy_from_slice(&header);
        code_of(&sealed_again(archive().to_bytes(), again))
    };
    assert_eq!(read([1, 5, 0]), "read");
    assert_eq!(read([2, 5, 0]), "format-newer");
    assert_eq!(read([1, 5, 1]), "format-envelope");
    assert_eq!(read([1, 1, 0]), "format-archive-content");
    let entry = archive().entries.remove(0).body;
    assert_eq!(code_of(&entry), "format-archive-damaged");
}

#[test]
fn encrypted_bodies_are_carried_without_their_key_and_only_in_their_places() {
    let mut whole = archive();
    for entry in &mut whole.entries {
        entry.body = encrypted(BodyKind::Entry, entry.seq);
    }
    for snapshot in &mut whole.snapshots {
        snapshot.body = encrypted(BodyKind::Snapshot, snapshot.seq);
    }
    for record in &mut whole.records {
        record.body = encrypted(BodyKind::Record, RECORD_SEQ);
    }
    for interrupt in &mut whole.interrupts {
        interrupt.body = encrypted(BodyKind::Interrupt, interrupt.seq);
    }
    let read = Archive::from_bytes(&whole.to_bytes()).unwrap();
    assert_eq!(read, whole);
    whole.entries[0].body = encrypted(BodyKind::Entry, whole.entries[0].seq.next());
    assert_eq!(code_of(&whole.to_bytes()), "format-damaged");
    whole.entries[0].body = encrypted(BodyKind::Snapshot, whole.entries[0].seq);
    assert_eq!(code_of(&whole.to_bytes()), "format-content");
}

#[test]
fn an_archive_of_what_is_no_thread_is_refused() {
    let name = b"acme/thread-1";
    let renamed = sealed_again(archive().to_bytes(), |bytes| {
        let at = bytes.windows(name.len()).position(|part| part == name);
        let at = at.unwrap();
        bytes[at..at + name.len()].copy_from_slice(b"acme/thread/1");
    });
    assert_eq!(code_of(&renamed), "format-archive-content");
}

#[test]
fn an_extension_that_must_be_understood_is_not_passed_over() {
    for (extensions, wanted) in [
        (Extensions::default(), "read"),
        (extensions(4), "read"),
        (extensions(3), "format-extension"),
    ] {
        let bytes = Archive {
            extensions,
            ..archive()
        }
        .to_bytes();
        assert_eq!(code_of(&bytes), wanted);
    }
}

#[test]
fn parts_that_do_not_belong_there_are_noticed() {
    type Change = fn(&mut Archive);
    let changes: &[(&str, Change, &str)] = &[
        (
            "a flipped bit of a snapshot",
            |archive| archive.snapshots[0].body[20] ^= 1,
            "format-damaged",
        ),
        (
            "an entry that is empty",
            |archive| archive.entries[0].body.clear(),
            "format-damaged",
        ),
        (
            "all of it under another name",
            |archive| archive.thread = ThreadId::of_tenant("acme", "thread-2").unwrap(),
            "format-damaged",
        ),
        (
            "a question at another entry",
            |archive| archive.interrupts[0].seq = Seq(6),
            "format-damaged",
        ),
        (
            "a record in the place of a question",
            |archive| {
                let record = step_record().seal(&thread(), SEQ);
                archive.interrupts[0].body = record;
            },
            "format-content",
        ),
    ];
    for (what, change, wanted) in changes {
        let mut archive = archive();
        change(&mut archive);
        assert_eq!(code_of(&archive.to_bytes()), *wanted, "{what}");
        assert_eq!(code(archive.checked()), *wanted, "{what}");
    }
}

#[test]
fn an_archive_that_contradicts_itself_is_refused() {
    type Change = fn(&mut Archive);
    let changes: &[(&str, Change)] = &[
        ("deleted", |archive| archive.head.status = Status::Deleted),
        ("the newest entry is missing", |archive| {
            archive.entries.pop();
        }),
        ("entries out of order", |archive| archive.entries.swap(0, 1)),
        ("an entry twice", |archive| {
            archive.entries.insert(0, archive.entries[0].clone());
        }),
        ("a record twice", |archive| {
            archive.records.insert(0, archive.records[0].clone());
        }),
        ("a snapshot twice", |archive| {
            archive.snapshots.push(archive.snapshots[0].clone());
        }),
        ("a question twice", |archive| {
            archive.interrupts.insert(0, archive.interrupts[0].clone());
        }),
        ("a snapshot of the future", |archive| {
            archive.snapshots[0].seq = Seq(8);
        }),
        ("a question closed in the future", |archive| {
            archive.interrupts[2].closed = Some(Seq(8));
        }),
        ("an entry of an owner to come", |archive| {
            archive.entries[1].epoch = Epoch(902);
        }),
        ("an epoch that nothing can follow", |archive| {
            archive.head.epoch = Epoch(u64::MAX);
        }),
        ("more answers than can be counted", |archive| {
            archive.head.answers = u64::MAX;
        }),
        ("more answers seen than can be counted", |archive| {
            archive.seen = u64::MAX;
        }),
    ];
    for (what, change) in changes {
        let mut archive = archive();
        change(&mut archive);
        assert_eq!(
            code_of(&archive.to_bytes()),
            "format-archive-content",
            "{what}"
        );
    }
}

#[test]
fn the_epoch_of_an_import_is_above_the_remembered_one_and_never_lower_than_before() {
    let archive = archive();
    assert_eq!(archive.epoch_after(Epoch(5)), Epoch(901));
    assert_eq!(archive.epoch_after(Epoch(900)), Epoch(901));
    assert_eq!(archive.epoch_after(Epoch(901)), Epoch(902));
    assert_eq!(archive.epoch_after(Epoch(950)), Epoch(951));
}

#[test]
fn the_same_thread_may_have_a_higher_epoch_and_nothing_else() {
    let stored = |change: fn(&mut Archive)| {
        let mut stored = archive();
        change(&mut stored);
        archive().is_same_thread(&stored)
    };
    assert!(stored(|_| {}));
    assert!(stored(|stored| stored.head.epoch = Epoch(902)));
    assert!(!stored(|stored| stored.head.epoch = Epoch(900)));
    assert!(!stored(|stored| stored.head.status = Status::Running));
    assert!(!stored(|stored| stored.cancel = false));
    assert!(!stored(|stored| stored.seen = 2));
    assert!(!stored(|stored| stored.records.clear()));
    assert!(!stored(|stored| stored.listing.updated = Timestamp(0)));
}

#[test]
fn a_second_import_of_an_archive_with_an_extension_that_was_passed_over_has_nothing_to_do() {
    let memory = Memory::new();
    let archive = archive();
    assert_eq!(archive.extensions, extensions(2));
    for _ in 0..2 {
        block_on(memory.import(&thread(), &archive)).unwrap();
    }
}
