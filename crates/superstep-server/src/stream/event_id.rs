//! Ids of the events that clients of streams see.
//!
//! What happens once may be several events for a client, one for each mode that shows it. Each has an id of its own, so a client that
//! was cut off between two of them continues with the second.

use std::fmt;

use serde::Serialize;

use crate::feed::{FeedId, Namespace};
use crate::stream::sse::write_event;

/// Id of an event that a client sees: what happened, and the number of the event among those that show it. Written `12-97`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenId {
    id: FeedId,
    number: u64,
}

/// How many events may show one thing that happened.
const NUMBERS: u64 = 32;

impl SeenId {
    /// Returns the id of a client that has seen everything up to this.
    pub(super) fn all_of(id: FeedId) -> Self {
        let number = match id {
            FeedId::START => 0,
            _ => NUMBERS - 1,
        };
        Self { id, number }
    }

    /// Reads the value of a `Last-Event-ID` header.
    pub(super) fn from_header(value: &str) -> Option<Self> {
        let FeedId { entry, place } = FeedId::from_header(value)?;
        let id = FeedId {
            entry,
            place: place / NUMBERS,
        };
        let number = place % NUMBERS;
        Some(Self { id, number })
    }

    /// Returns the id after which a client continues that has seen this event: before what it shows, if there may be more of it.
    pub(super) fn continue_after(self) -> FeedId {
        let FeedId { entry, place } = self.id;
        match (self.number == NUMBERS - 1, place) {
            (true, _) => self.id,
            (false, 0) => FeedId::end_of(entry.saturating_sub(1)),
            (false, place) => FeedId {
                entry,
                place: place - 1,
            },
        }
    }

    /// Returns how many events of something that happened the client has seen.
    pub(super) fn seen_of(self, id: FeedId) -> u64 {
        match id == self.id {
            true => self.number + 1,
            false => 0,
        }
    }
}

impl fmt::Display for SeenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.id.place * NUMBERS + self.number;
        write!(f, "{}-{place}", self.id.entry)
    }
}

/// Where the events are written that show one thing that happened.
pub(super) struct EventSink<'a> {
    out: &'a mut Vec<u8>,
    id: FeedId,
    namespace: &'a Namespace,
    /// Number of the next event.
    number: u64,
    /// How many of the events the client has seen.
    seen: u64,
}

impl<'a> EventSink<'a> {
    pub(super) fn new(
        out: &'a mut Vec<u8>,
        id: FeedId,
        namespace: &'a Namespace,
        last: SeenId,
    ) -> Self {
        Self {
            out,
            id,
            namespace,
            number: 0,
            seen: last.seen_of(id),
        }
    }

    pub(super) fn namespace(&self) -> &'a Namespace {
        self.namespace
    }

    /// Writes an event of the graph in which it happened.
    pub(super) fn write(&mut self, name: &str, data: &impl Serialize) {
        match self.namespace.is_root() {
            true => self.write_plain(name, data),
            false => self.write_plain(&format!("{name}|{}", self.namespace), data),
        }
    }

    /// Writes an event whose name does not say in which graph it happened.
    pub(super) fn write_plain(&mut self, name: &str, data: &impl Serialize) {
        let number = self.number.min(NUMBERS - 2);
        self.number += 1;
        if self.number > self.seen {
            let id = SeenId {
                id: self.id,
                number,
            };
            write_event(self.out, name, data, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(entry: u64, place: u64) -> FeedId {
        FeedId { entry, place }
    }

    #[test]
    fn an_id_is_read_back() {
        for seen in [
            SeenId::all_of(FeedId::START),
            SeenId::all_of(id(3, 7)),
            SeenId {
                id: id(12, FeedId::LIVE + 3),
                number: 2,
            },
        ] {
            assert_eq!(SeenId::from_header(&seen.to_string()), Some(seen));
        }
        assert_eq!(SeenId::all_of(FeedId::START).to_string(), "0-0");
        let beginning = SeenId::from_header("-1").unwrap();
        assert_eq!(beginning.continue_after(), FeedId::end_of(0));
        assert_eq!(SeenId::from_header("latest"), None);
    }

    #[test]
    fn a_client_continues_between_two_events_of_one_thing() {
        let namespace = Namespace::default();
        let written = |last: SeenId| {
            let mut out = Vec::new();
            let mut sink = EventSink::new(&mut out, id(3, 7), &namespace, last);
            sink.write("updates", &1);
            sink.write("values", &2);
            String::from_utf8(out).unwrap()
        };
        let all = written(SeenId::all_of(FeedId::START));
        let (first, second) = all.split_at(all.find("event: values").unwrap());
        let first_id = first.trim_end().rsplit(' ').next().unwrap();
        let last = SeenId::from_header(first_id).unwrap();
        assert!(last.continue_after() < id(3, 7));
        assert_eq!(written(last), second);
        let second_id = second.trim_end().rsplit(' ').next().unwrap();
        assert_eq!(written(SeenId::from_header(second_id).unwrap()), "");
        assert_eq!(SeenId::all_of(id(3, 7)).continue_after(), id(3, 7));
    }
}
