//! Ids of checkpoints: UUIDs that carry their place in the log.
//!
//! An id needs no table: it holds the number of an entry and a check value of the thread and the graph, so the id of another
//! thread's checkpoint is refused, and a subgraph has other ids than its parent. Ids sort in the order of the log. A copy of a thread
//! has the same ids, as on LangGraph's server: the check value is of the part of the thread's id that copies share.

use serde_json::{Map, Value as Json, json};
use superstep::{FramePath, Seq, ThreadId};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::history::OuterCheckpoint;
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

    /// Returns the id of the state of a subgraph after an entry, which follows on a checkpoint of the subgraph.
    pub(crate) fn of_subgraph(seq: Seq, before: Option<Self>) -> Self {
        let place = match before.filter(|before| before.seq == seq) {
            // The states of an entry are two places apart: one is before the input, if there is one.
            Some(before) if before.is_before_input() => before.place.saturating_add(1),
            Some(before) => before.place.saturating_add(2),
            None => AFTER,
        };
        Self { seq, place }
    }

    /// Returns the id of the state before the input that led to this one.
    pub(crate) fn before_input(self) -> Self {
        Self {
            place: self.place.saturating_sub(1),
            ..self
        }
    }

    /// Whether it is the state before an input was applied.
    pub(crate) fn is_before_input(self) -> bool {
        self.place.is_multiple_of(2)
    }

    /// Returns the id of a checkpoint of the root graph in the form that clients send back.
    pub(crate) fn to_uuid(self, thread: &ThreadId) -> String {
        self.to_uuid_in(thread, "")
    }

    /// Returns the id of a checkpoint of the graph with this namespace in the form that clients send back.
    pub(crate) fn to_uuid_in(self, thread: &ThreadId, namespace: &str) -> String {
        self.as_uuid(thread, namespace).to_string()
    }

    fn as_uuid(self, thread: &ThreadId, namespace: &str) -> Uuid {
        let mut bytes = [0; 16];
        // 48 bits of the number, so that ids sort like their entries.
        bytes[..6].copy_from_slice(&self.seq.0.to_be_bytes()[2..]);
        bytes[7] = self.place;
        bytes[9..].copy_from_slice(&self.check(thread, namespace).to_be_bytes()[1..]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    fn check(self, thread: &ThreadId, namespace: &str) -> u64 {
        let mut text = Vec::new();
        for part in [thread.tenant(), shared_by_copies(thread)] {
            text.extend_from_slice(part.as_bytes());
            text.push(0);
        }
        text.extend_from_slice(&self.seq.0.to_be_bytes());
        text.push(self.place);
        text.extend_from_slice(namespace.as_bytes());
        xxh3_64(&text)
    }

    /// Reads the id of a checkpoint of this thread's root graph; `None` for anything else.
    pub(crate) fn parse(thread: &ThreadId, text: &str) -> Option<Self> {
        Self::parse_in(thread, "", text)
    }

    /// Reads the id of a checkpoint of this thread's graph with this namespace; `None` for anything else.
    pub(crate) fn parse_in(thread: &ThreadId, namespace: &str, text: &str) -> Option<Self> {
        let found = Uuid::parse_str(text).ok()?;
        let bytes = found.as_bytes();
        let mut seq = [0; 8];
        seq[2..].copy_from_slice(&bytes[..6]);
        let id = Self {
            seq: Seq(u64::from_be_bytes(seq)),
            place: bytes[7],
        };
        (id.as_uuid(thread, namespace) == found).then_some(id)
    }
}

/// Returns the id of a copy of a thread, given a new id: one with the same check values.
pub(crate) fn name_of_copy(thread: &ThreadId, new: Uuid) -> String {
    let new = new.to_string();
    match is_uuid(thread.name()) {
        true => format!("{}{}", &new[..PREFIX_LENGTH], shared_by_copies(thread)),
        false => new,
    }
}

/// Returns the part of a thread's id that its copies share: the last group of a UUID. Other ids are not copied.
fn shared_by_copies(thread: &ThreadId) -> &str {
    let name = thread.name();
    match is_uuid(name) {
        true => &name[PREFIX_LENGTH..],
        false => name,
    }
}

fn is_uuid(name: &str) -> bool {
    name.len() == UUID_LENGTH && Uuid::parse_str(name).is_ok()
}

/// Length of a UUID with its hyphens, and of that without its last group. The group has 48 bits, enough to tell threads apart; of
/// the others, 26 are random and tell apart copies that are made in the same millisecond.
const UUID_LENGTH: usize = 36;
const PREFIX_LENGTH: usize = 24;

/// Returns a checkpoint in the form in which clients name it. That of a subgraph names those of the graphs around it, too.
pub(crate) fn checkpoint(
    thread: &ThreadId,
    frame: &FramePath,
    id: CheckpointId,
    outer: &[OuterCheckpoint],
) -> Json {
    let namespace = wire::namespace(frame);
    let id = id.to_uuid_in(thread, &namespace);
    let mut named = json!({
        "thread_id": thread.name(),
        "checkpoint_ns": namespace,
        "checkpoint_id": id,
    });
    if !frame.is_root() {
        let mut map = checkpoint_map(thread, outer);
        map.insert(namespace, id.into());
        named["checkpoint_map"] = Json::Object(map);
    }
    named
}

/// Returns the ids of checkpoints by the namespaces of their graphs.
pub(crate) fn checkpoint_map(thread: &ThreadId, outer: &[OuterCheckpoint]) -> Map<String, Json> {
    let ids = outer.iter().map(|outer| {
        let namespace = wire::namespace(&outer.frame);
        let id = outer.id.to_uuid_in(thread, &namespace);
        (namespace, id.into())
    });
    ids.collect()
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

    #[test]
    fn a_subgraph_has_other_ids_than_its_parent() {
        let (own, id) = (thread("a"), CheckpointId::after(Seq(7)));
        let text = id.to_uuid_in(&own, "child:1");
        assert_ne!(text, id.to_uuid(&own));
        assert_eq!(CheckpointId::parse_in(&own, "child:1", &text), Some(id));
        assert_eq!(CheckpointId::parse(&own, &text), None);
        assert_eq!(CheckpointId::parse_in(&own, "child:2", &text), None);
    }

    #[test]
    fn the_states_of_a_subgraph_in_one_entry_follow_one_another() {
        let entered = CheckpointId::of_subgraph(Seq(7), None);
        let next = CheckpointId::of_subgraph(Seq(7), Some(entered));
        assert!(entered.before_input() < entered && entered < next.before_input());
        let input = Some(next.before_input());
        assert_eq!(CheckpointId::of_subgraph(Seq(7), input), next);
        assert_eq!(CheckpointId::of_subgraph(Seq(8), Some(next)).place, AFTER);
    }

    #[test]
    fn a_copy_has_the_ids_of_its_original_and_other_threads_do_not() {
        let [original, other, new] =
            [1_u128, 2, 3].map(|seed| Uuid::from_u128((seed << 64) | seed));
        let original = thread(&original.to_string());
        let copy = thread(&name_of_copy(&original, new));
        assert_ne!(copy, original);
        let id = CheckpointId::after(Seq(7));
        assert_eq!(id.to_uuid(&copy), id.to_uuid(&original));
        assert_ne!(
            id.to_uuid(&thread(&other.to_string())),
            id.to_uuid(&original)
        );
        let tenant = ThreadId::of_tenant("another", original.name()).unwrap();
        assert_ne!(id.to_uuid(&tenant), id.to_uuid(&original));
        // An id that is not a UUID shares nothing, however long it is.
        assert_eq!(name_of_copy(&thread("nightly-chat"), new), new.to_string());
    }
}
