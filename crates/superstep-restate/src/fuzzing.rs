//! Parsers of untrusted bytes, for `testing/fuzz`. Not part of the public API.

use superstep::LiveMessage;

use crate::live::packet;

/// Decodes a live message from Redis; `None` if this version does not know it.
pub fn decode_packet(bytes: &[u8]) -> Option<LiveMessage> {
    packet::decode(bytes)
}

/// Encodes a live message for Redis.
pub fn encode_packet(notice: &LiveMessage) -> Vec<u8> {
    packet::encode(notice)
}
