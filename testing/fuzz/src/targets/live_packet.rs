//! Live messages, as Redis carries them between workers.

use superstep_restate::fuzzing::{decode_packet, encode_packet};

pub(super) fn run(bytes: &[u8]) {
    let Some(notice) = decode_packet(bytes) else {
        return;
    };
    let again = encode_packet(&notice);
    assert_eq!(decode_packet(&again).as_ref(), Some(&notice));
    let mut newer = again;
    newer[0] ^= 0x40;
    assert_eq!(
        decode_packet(&newer),
        None,
        "a version that nobody knows is read"
    );
}
