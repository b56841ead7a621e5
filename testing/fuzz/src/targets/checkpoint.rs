//! Stored bodies: entries, snapshots, questions, records and requests.
//!
//! The first byte chooses the kind. The rest is tried as a stored body, which mostly tries the checksum, and as the
//! content of one whose checksum is right, which tries the decoder.

use std::fmt::Debug;

use serde_json::Value as Json;
use superstep_core::checkpoint::format::{
    Body, BodyKind, Entry, FORMAT, InterruptRecord, Record, Snapshot,
};
use superstep_core::driver::QueuedRequest;
use superstep_core::{RunId, Seq, ThreadId, Value};

pub(super) fn run(bytes: &[u8]) {
    let (kind, bytes) = super::choice(bytes);
    match kind % 5 {
        0 => check::<Entry>(bytes),
        1 => check::<Snapshot>(bytes),
        2 => check::<InterruptRecord>(bytes),
        3 => check::<Record>(bytes),
        _ => check_order(bytes),
    }
}

fn check<T: Body + PartialEq + Debug>(bytes: &[u8]) {
    let (thread, seq) = place();
    let sealed = seal(T::KIND, Some((&thread, seq)), bytes);
    for bytes in [bytes, &sealed] {
        let Ok(body) = T::unseal(bytes, &thread, seq) else {
            continue;
        };
        let again = body.seal(&thread, seq);
        let read = T::unseal(&again, &thread, seq).expect("what was written is read");
        assert_eq!(read, body, "it is another one when it is read again");
        assert_eq!(read.seal(&thread, seq), again, "it is written in two ways");
        assert!(
            T::unseal(bytes, &thread, Seq(seq.0 + 1)).is_err(),
            "a body of another place is accepted"
        );
        check_flips(&again, |bytes| T::unseal(bytes, &thread, seq).is_err());
    }
}

fn check_order(bytes: &[u8]) {
    let (thread, _) = place();
    let sealed = seal(QueuedRequest::KIND, Some((&thread, Seq(0))), bytes);
    let Ok(order) = QueuedRequest::from_bytes(&sealed, &thread) else {
        return;
    };
    // What an order says of its options may be anything; it is an error or it is not.
    let _ = order.options(RunId::from_bytes([7; 16]));
    assert!(order.is_same_as(&order), "an order is not itself");
    let again =
        QueuedRequest::from_bytes(&order.to_bytes(&thread), &thread).expect("it is read again");
    assert_eq!(again, order);
}

/// Seven bits in different places of the header, the checksum and the content.
pub(super) fn check_flips(whole: &[u8], is_refused: impl Fn(&[u8]) -> bool) {
    let length = whole.len();
    for at in [0, 1, 3, 6, 7, length / 2, length - 1] {
        let mut bytes = whole.to_vec();
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (at % 8);
            assert!(is_refused(&bytes), "a flipped bit of byte {at} is accepted");
        }
    }
}

fn place() -> (ThreadId, Seq) {
    let thread = ThreadId::of_tenant("acme", "thread-1").expect("a thread");
    (thread, Seq(7))
}

/// The envelope, written down a second time: a change of the format shows here, too.
pub(super) fn seal(kind: BodyKind, row: Option<(&ThreadId, Seq)>, content: &[u8]) -> Vec<u8> {
    let header = [FORMAT, kind as u8, 0];
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header);
    if let Some((thread, seq)) = row {
        for part in [thread.tenant(), thread.name()] {
            let length = u32::try_from(part.len()).expect("names are short");
            sum.update(&length.to_le_bytes());
            sum.update(part.as_bytes());
        }
        sum.update(&seq.0.to_le_bytes());
    }
    sum.update(content);
    let mut bytes = header.to_vec();
    bytes.extend(sum.finalize().to_le_bytes());
    bytes.extend(content);
    bytes
}

/// A value is JSON that reads the same when it is written again, or an error.
pub(super) fn check_value(value: &Value) {
    if let Ok(json) = value.decode::<Json>() {
        let again = Value::plain(&json).expect("JSON is written");
        assert_eq!(again.decode::<Json>().expect("it is read again"), json);
    }
}
