//! Readers of foreign bytes, for `testing/fuzz`. Not part of the public interface.

use superstep::Notice;

use crate::live::packet;

/// Reads a live message from the bytes that Redis carried; none for what this version does not know.
pub fn decode_packet(bytes: &[u8]) -> Option<Notice> {
    packet::decode(bytes)
}

/// Writes a live message as Redis carries it.
pub fn encode_packet(notice: &Notice) -> Vec<u8> {
    packet::encode(notice)
}
