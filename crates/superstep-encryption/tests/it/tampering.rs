//! What was changed or moved is refused, even where every checksum fits.

use serde_json::json;
use superstep_conformance::block_on;
use superstep_conformance::sample::{Owner, answer_by};
use superstep_core::checkpoint::format::{BodyKind, RECORD_SEQ, unwrap_encrypted, wrap_encrypted};
use superstep_core::checkpoint::{AnswerBody, Archive, Checkpointer, InterruptQuery, Status};
use superstep_core::{Seq, ThreadId, Value};

use crate::kit::{Kit, OTHER_KEY, code};

fn id(tenant: &str, name: &str) -> ThreadId {
    ThreadId::of_tenant(tenant, name).unwrap()
}

/// A paused thread with everything that a thread can have.
async fn furnished(kit: &Kit, thread: &ThreadId) -> Owner {
    let mut owner = Owner::started_at(&kit.db, thread).await.unwrap();
    owner.save_steps(&kit.db, 6).await.unwrap();
    for (task, key) in [(1, "a"), (1, "b"), (2, "a")] {
        let record = owner.record(task, key, json!({ "of": task, "key": key }));
        kit.db.record(&record).await.unwrap();
    }
    let pause = owner.pause(&[1, 2]);
    owner.save(&kit.db, pause).await.unwrap();
    let answers = [answer_by(1, "ada")];
    kit.db.answer(thread, &answers).await.unwrap();
    owner
}

/// Puts a changed thread in the place of one, as an attacker with write access to the database can, and returns how reading it ends.
async fn read_with(
    kit: &Kit,
    thread: &ThreadId,
    change: impl FnOnce(&mut Archive),
) -> [&'static str; 3] {
    let mut archive = kit.plain.export(thread).await.unwrap();
    change(&mut archive);
    let forged = Kit::new().again(|_| kit.encryption.clone());
    forged.plain.import(thread, &archive).await.unwrap();
    let all = InterruptQuery {
        tenant: thread.tenant().to_owned(),
        ..InterruptQuery::default()
    };
    [
        code(forged.db.load(thread).await),
        code(forged.db.entries(thread, Seq(0), 100).await),
        code(forged.db.interrupts(&all).await),
    ]
}

/// The same content in the envelope of another place.
fn moved(
    body: &[u8],
    kind: BodyKind,
    from: (&ThreadId, Seq),
    to: (BodyKind, &ThreadId, Seq),
) -> Vec<u8> {
    let content = unwrap_encrypted(kind, from.0, from.1, body)
        .unwrap()
        .unwrap();
    wrap_encrypted(to.0, to.1, to.2, content)
}

const READ: [&str; 3] = ["done"; 3];

#[test]
fn what_was_moved_to_another_place_is_refused() {
    use BodyKind::{Entry, Interrupt, Record, Snapshot};
    block_on(async {
        let kit = Kit::new();
        let (here, there, foreign) = (id("acme", "here"), id("acme", "there"), id("evil", "here"));
        for thread in [&here, &there, &foreign] {
            furnished(&kit, thread).await;
        }
        assert_eq!(read_with(&kit, &here, |_| ()).await, READ);
        for other in [&there, &foreign] {
            let source = kit.plain.export(other).await.unwrap();
            let entry = |archive: &mut Archive| {
                let seq = source.entries[1].seq;
                let to = (Entry, &here, seq);
                archive.entries[1].body = moved(&source.entries[1].body, Entry, (other, seq), to);
            };
            // A load begins at the newest snapshot, so only the log shows an old entry.
            assert_eq!(
                read_with(&kit, &here, entry).await[1],
                refused_in(other, &here),
                "an entry of {other}"
            );
            let snapshot = |archive: &mut Archive| {
                let stored = source.snapshots.last().unwrap();
                let to = (Snapshot, &here, stored.seq);
                archive.snapshots.last_mut().unwrap().body =
                    moved(&stored.body, Snapshot, (other, stored.seq), to);
            };
            assert_eq!(
                read_with(&kit, &here, snapshot).await[0],
                refused_in(other, &here),
                "a snapshot of {other}"
            );
            let record = |archive: &mut Archive| {
                let to = (Record, &here, RECORD_SEQ);
                archive.records[0].body =
                    moved(&source.records[0].body, Record, (other, RECORD_SEQ), to);
            };
            assert_eq!(
                read_with(&kit, &here, record).await[0],
                refused_in(other, &here),
                "a record of {other}"
            );
            let interrupt = |archive: &mut Archive| {
                let row = &source.interrupts[0];
                let to = (Interrupt, &here, row.seq);
                archive.interrupts[0].body = moved(&row.body, Interrupt, (other, row.seq), to);
            };
            let found = read_with(&kit, &here, interrupt).await;
            assert_eq!(
                [found[0], found[2]],
                [refused_in(other, &here); 2],
                "an interrupt of {other}"
            );
            let answer = |archive: &mut Archive| {
                archive.interrupts[0].answer = source.interrupts[0].answer.clone();
            };
            assert_eq!(
                read_with(&kit, &here, answer).await[0],
                refused_in(other, &here),
                "an answer of {other}"
            );
        }
    });
}

/// Another tenant's data names a key that this one does not have.
fn refused_in(from: &ThreadId, to: &ThreadId) -> &'static str {
    match from.tenant() == to.tenant() {
        true => "encryption-refused",
        false => "encryption-unknown-key",
    }
}

#[test]
fn what_was_moved_within_its_thread_is_refused() {
    use BodyKind::{Entry, Interrupt, Snapshot};
    block_on(async {
        let kit = Kit::new();
        let here = id("", "here");
        furnished(&kit, &here).await;
        let records = |archive: &mut Archive, a: usize, b: usize| {
            let body = archive.records[b].body.clone();
            archive.records[a].body = body;
        };
        for (a, b) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
            let found = read_with(&kit, &here, |archive| records(archive, a, b)).await;
            assert_eq!(found[0], "encryption-refused", "record {b} as {a}");
        }
        let swapped = |archive: &mut Archive| {
            let (one, two) = (archive.entries[1].clone(), archive.entries[2].clone());
            let to = (Entry, &here, two.seq);
            archive.entries[2].body = moved(&one.body, Entry, (&here, one.seq), to);
        };
        assert_eq!(
            read_with(&kit, &here, swapped).await[1],
            "encryption-refused"
        );
        let snapshot = |archive: &mut Archive| {
            let entry = archive.entries.last().unwrap().clone();
            let stored = archive.snapshots.last_mut().unwrap();
            let to = (Snapshot, &here, stored.seq);
            stored.body = moved(&entry.body, Entry, (&here, entry.seq), to);
        };
        assert_eq!(
            read_with(&kit, &here, snapshot).await[0],
            "encryption-refused"
        );
        let interrupt = |archive: &mut Archive| {
            let row = archive.interrupts[0].clone();
            let to = (Interrupt, &here, row.seq);
            archive.interrupts[1].body = moved(&row.body, Interrupt, (&here, row.seq), to);
        };
        assert_eq!(
            read_with(&kit, &here, interrupt).await[0],
            "encryption-refused"
        );
        let answer = |archive: &mut Archive| {
            archive.interrupts[1].answer = archive.interrupts[0].answer.clone();
        };
        assert_eq!(
            read_with(&kit, &here, answer).await[0],
            "encryption-refused"
        );
    });
}

#[test]
fn every_flipped_bit_is_refused_although_the_checksum_fits() {
    block_on(async {
        let kit = Kit::new();
        let here = id("acme", "here");
        furnished(&kit, &here).await;
        let archive = kit.plain.export(&here).await.unwrap();
        let stored = archive.snapshots.last().unwrap();
        let content = unwrap_encrypted(BodyKind::Snapshot, &here, stored.seq, &stored.body);
        let content = content.unwrap().unwrap().to_vec();
        for bit in 0..content.len() * 8 {
            let mut content = content.clone();
            content[bit / 8] ^= 1 << (bit % 8);
            let flip = |archive: &mut Archive| {
                let stored = archive.snapshots.last_mut().unwrap();
                stored.body = wrap_encrypted(BodyKind::Snapshot, &here, stored.seq, &content);
            };
            // The first eight bytes name the key.
            let wanted = match bit / 8 {
                0..8 => "encryption-unknown-key",
                _ => "encryption-refused",
            };
            assert_eq!(read_with(&kit, &here, flip).await[0], wanted, "bit {bit}");
        }
        // Where the checksum does not fit, it is damage.
        let damage = |archive: &mut Archive| {
            let stored = archive.snapshots.last_mut().unwrap();
            *stored.body.last_mut().unwrap() ^= 1;
        };
        let mut archive = archive.clone();
        damage(&mut archive);
        assert_eq!(
            code(kit.plain.import(&here, &archive).await),
            "checkpoint-format"
        );
    });
}

#[test]
fn plain_data_that_was_planted_is_refused() {
    block_on(async {
        let (kit, plain) = (Kit::new(), Kit::new());
        let here = id("acme", "here");
        furnished(&kit, &here).await;
        // The same thread, never encrypted.
        let mut owner = Owner::started_at(&plain.plain, &here).await.unwrap();
        owner.save_steps(&plain.plain, 6).await.unwrap();
        let plain_archive = plain.plain.export(&here).await.unwrap();
        let planted = |archive: &mut Archive| {
            archive.snapshots.last_mut().unwrap().body =
                plain_archive.snapshots.last().unwrap().body.clone();
        };
        assert_eq!(read_with(&kit, &here, planted).await[0], "encryption-plain");
        let planted = |archive: &mut Archive| {
            let answer = archive.interrupts[0].answer.as_mut().unwrap();
            answer.body = AnswerBody::Value(Value::from_json_bytes(b"\"evil\""));
        };
        assert_eq!(read_with(&kit, &here, planted).await[0], "encryption-plain");
        let planted = |archive: &mut Archive| {
            let answer = archive.interrupts[0].answer.as_mut().unwrap();
            answer.by = "mallory".to_owned();
        };
        assert_eq!(read_with(&kit, &here, planted).await[0], "encryption-plain");
    });
}

#[test]
fn a_process_with_other_keys_is_told_so_and_does_not_retry() {
    block_on(async {
        let kit = Kit::new();
        let here = id("acme", "here");
        let owner = furnished(&kit, &here).await;
        let other = kit.with_keys(OTHER_KEY);
        let wanted = "encryption-key-encryption-key";
        assert_eq!(code(other.db.load(&here).await), wanted);
        assert_eq!(code(other.db.save(&owner.claim()).await), wanted);
        let answers = [answer_by(2, "ada")];
        assert_eq!(code(other.db.answer(&here, &answers).await), wanted);
        let error = other.db.load(&here).await.unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert_eq!(error.code(), "checkpoint-encryption");
        // Nothing was written, and the right keys still read it.
        let head = kit.db.load(&here).await.unwrap().unwrap().head;
        assert_eq!((head.status, head.answers), (Status::Paused, 1));
        assert_eq!(head.epoch, owner.head.epoch);
    });
}
