//! Ids of checkpoints: UUIDs that carry their place in the log.
//!
//! An id needs no table: it holds the number of an entry and a check value of the thread, so the id of another thread's checkpoint
//! is refused. Ids sort in the order of the log.

use serde_json::{Value as Json, json};
use superstep::{FramePath, Seq, ThreadId};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::wire;

/// Place of the checkpoint before the input of a run was applied.
pub(crate) const BEFORE_INPUT: u8 = 0;
/// Place of every other checkpoint of the root graph. The places of those of a subgraph go on from here: its entry may hold several.
pub(crate) const AFTER: u8 = 1;

/// A checkpoint as clients see it. An entry that starts a run is two of them: before its input was applied, and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckpointId {
    /// Number of the entry.
    pub(crate) seq: Seq,
    /// [`BEFORE_INPUT`] or [`AFTER`]; in a subgraph, even for those before an input and odd for the others.
    pub(crate) place: u8,
}

impl CheckpointId {
    /// Returns the id of the state after an entry.
    pub(crate) fn after(seq: Seq) -> Self {
        Self { seq, place: AFTER }
    }

    /// Whether it is the state before an input was applied.
    pub(crate) fn is_before_input(self) -> bool {
        self.place.is_multiple_of(2)
    }

    /// Returns the id in the form that clients send back.
    pub(crate) fn to_uuid(self, thread: &ThreadId) -> String {
        self.as_uuid(thread).to_string()
    }

    fn as_uuid(self, thread: &ThreadId) -> Uuid {
        let mut bytes = [0; 16];
        // 48 bits of the number, so that ids sort like their entries.
        bytes[..6].copy_from_slice(&self.seq.0.to_be_bytes()[2..]);
        bytes[7] = self.place;
        bytes[9..].copy_from_slice(&self.check(thread).to_be_bytes()[1..]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    fn check(self, thread: &ThreadId) -> u64 {
        let mut text = Vec::new();
        for part in [thread.tenant(), thread.name()] {
            text.extend_from_slice(part.as_bytes());
            text.push(0);
        }
        text.extend_from_slice(&self.seq.0.to_be_bytes());
        text.push(self.place);
        xxh3_64(&text)
    }

    /// Reads the id of a checkpoint of this thread; `None` for anything else.
    pub(crate) fn parse(thread: &ThreadId, text: &str) -> Option<Self> {
        let found = Uuid::parse_str(text).ok()?;
        let bytes = found.as_bytes();
        let mut seq = [0; 8];
        seq[2..].copy_from_slice(&bytes[..6]);
        let id = Self {
            seq: Seq(u64::from_be_bytes(seq)),
            place: bytes[7],
        };
        (id.as_uuid(thread) == found).then_some(id)
    }
}

/// Returns a checkpoint in the form in which clients name it.
pub(crate) fn checkpoint(thread: &ThreadId, frame: &FramePath, id: CheckpointId) -> Json {
    json!({
        "thread_id": thread.name(),
        "checkpoint_ns": wire::namespace(frame),
        "checkpoint_id": id.to_uuid(thread),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    #[test]
    fn an_id_is_read_back_and_sorts_like_the_log() {
        let own = thread("a");
        let mut ids = Vec::new();
        for seq in [1, 2, 255, 256, 70_000] {
            for place in [BEFORE_INPUT, AFTER] {
                let id = CheckpointId {
                    seq: Seq(seq),
                    place,
                };
                let text = id.to_uuid(&own);
                assert_eq!(CheckpointId::parse(&own, &text), Some(id));
                ids.push(text);
            }
        }
        assert!(ids.is_sorted());
    }

    #[test]
    fn an_id_of_another_thread_is_refused() {
        let text = CheckpointId::after(Seq(7)).to_uuid(&thread("a"));
        assert_eq!(CheckpointId::parse(&thread("b"), &text), None);
        assert_eq!(
            CheckpointId::parse(&thread("a"), "0190a6b2-0000-7000-8000-000000000001"),
            None
        );
        assert_eq!(CheckpointId::parse(&thread("a"), "not an id"), None);
    }
}
