//! Archives of whole threads.
//!
//! Tried as they are, as the content of one whose checksum is right, and with the bodies inside sealed for their places:
//! otherwise no mutation would get past the checksums. What is accepted can be imported and exported again.

use futures_util::FutureExt;
use superstep_core::Checkpointer;
use superstep_core::checkpoint::format::BodyKind;
use superstep_core::checkpoint::{Archive, Memory};
use superstep_core::{Seq, ThreadId};

use super::checkpoint::{check_flips, check_value, seal};

pub(super) fn run(bytes: &[u8]) {
    check(bytes);
    check(&seal(BodyKind::Archive, None, bytes));
    if let Ok(mut archive) = postcard::from_bytes::<Archive>(bytes) {
        seal_bodies(&mut archive);
        check(&archive.to_bytes());
    }
}

fn check(bytes: &[u8]) {
    let Ok(archive) = Archive::from_bytes(bytes) else {
        return;
    };
    let written = archive.to_bytes();
    let read = Archive::from_bytes(&written).expect("what was written is read");
    assert_eq!(read, archive, "it is another one when it is read again");
    assert!(read.is_same_thread(&archive));
    check_flips(&written, |bytes| Archive::from_bytes(bytes).is_err());
    if let Some(values) = &archive.listing.values {
        check_value(values);
    }
    check_import(&archive);
}

fn check_import(archive: &Archive) {
    let memory = Memory::new();
    let thread = &archive.thread;
    let other = ThreadId::new("somebody-elses").expect("a thread");
    if other != *thread {
        let refused = block_on(memory.import(&other, archive));
        assert!(refused.is_err(), "an archive of another thread is imported");
    }
    block_on(memory.import(thread, archive)).expect("what was read can be imported");
    block_on(memory.import(thread, archive)).expect("a second import has nothing to do");
    let exported = block_on(memory.export(thread)).expect("what was imported can be exported");
    // Extensions that may be passed over are passed over.
    let expected = Archive {
        extensions: exported.extensions.clone(),
        ..archive.clone()
    };
    assert_eq!(exported, expected, "the import changed the thread");
}

fn seal_bodies(archive: &mut Archive) {
    let thread = archive.thread.clone();
    let sealed = |kind, seq: Seq, body: &mut Vec<u8>| {
        let content = body.get(7..).unwrap_or_default().to_vec();
        *body = seal(kind, Some((&thread, seq)), &content);
    };
    for row in &mut archive.entries {
        sealed(BodyKind::Entry, row.seq, &mut row.body);
    }
    for row in &mut archive.snapshots {
        sealed(BodyKind::Snapshot, row.seq, &mut row.body);
    }
    for row in &mut archive.records {
        sealed(BodyKind::Record, Seq(0), &mut row.body);
    }
    for row in &mut archive.interrupts {
        sealed(BodyKind::Interrupt, row.seq, &mut row.body);
    }
}

/// A store in memory has nothing to wait for.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never()
        .expect("a store in memory answers at once")
}
