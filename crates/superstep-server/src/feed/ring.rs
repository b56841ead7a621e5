//! The newest events of a thread, bounded in number and in bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use superstep::RunId;

use crate::feed::FeedId;
use crate::feed::event::{FeedBody, FeedEvent};

/// The newest events of a thread. Each has a position, counted from the first event that was ever pushed.
#[derive(Debug, Default)]
pub(super) struct EventRing {
    events: VecDeque<Arc<FeedEvent>>,
    /// Position of the oldest event.
    first: u64,
    bytes: usize,
    /// Everything after this id is in the ring; `None` while nothing is known of the thread.
    floor: Option<FeedId>,
    /// Number of times that the thread was deleted. With each, ids start from the beginning.
    generation: u64,
}

/// Highest number of events.
const EVENTS_MAX: usize = 10_000;
/// About what an event takes besides its values.
const EVENT_BYTES: usize = 512;
/// Highest number of bytes: a large state is in many events.
const BYTES_MAX: usize = 16 * 1024 * 1024;

impl EventRing {
    /// Adds an event, and drops the oldest ones if there are too many.
    pub(super) fn push(&mut self, event: Arc<FeedEvent>) {
        self.bytes += event.bytes;
        self.events.push_back(event);
        let is_full = |ring: &Self| {
            ring.events.len() > EVENTS_MAX || (ring.bytes > BYTES_MAX && ring.events.len() > 1)
        };
        while is_full(self)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.bytes;
            self.first += 1;
            self.floor = Some(oldest.id);
        }
    }

    /// Sets the id after which events are pushed from now on.
    pub(super) fn start_after(&mut self, floor: FeedId) {
        self.floor = Some(floor);
    }

    /// Drops all events, and what is known of the thread. Positions are not used again, because subscribers hold some.
    pub(super) fn reset(&mut self) {
        self.first = self.end();
        self.events.clear();
        self.bytes = 0;
        self.floor = None;
    }

    /// Drops all events, because the thread was deleted: one of the same name has the same ids again.
    pub(super) fn begin_anew(&mut self) {
        self.reset();
        self.generation += 1;
    }

    /// Returns the number of times that the thread was deleted.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the id after which the ring has everything; `None` while nothing is known of the thread.
    pub(super) fn floor(&self) -> Option<FeedId> {
        self.floor
    }

    /// Returns the id of the newest event; the floor if the ring is empty.
    pub(super) fn last_id(&self) -> FeedId {
        let last = self.events.back().map(|event| event.id);
        last.or(self.floor).unwrap_or_default()
    }

    /// Returns about how many bytes the events take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.events.len() * EVENT_BYTES
    }

    /// Returns the position of the oldest event.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the position after the newest event.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// Returns the event at a position; `None` if it was dropped, or is yet to come.
    pub(super) fn get(&self, position: u64) -> Option<&Arc<FeedEvent>> {
        let index = position.checked_sub(self.first)?;
        self.events.get(usize::try_from(index).ok()?)
    }

    /// Returns the position of the first event with a higher id.
    pub(super) fn after(&self, id: FeedId) -> u64 {
        self.first + self.events.partition_point(|event| event.id <= id) as u64
    }

    /// Returns the position at which a run begins, if that is in the ring.
    pub(super) fn beginning_of(&self, run: RunId) -> Option<u64> {
        let begins =
            |event: &Arc<FeedEvent>| event.run == run && matches!(event.body, FeedBody::RunBegan);
        let index = self.events.iter().position(begins)?;
        Some(self.first + index as u64)
    }

    /// Returns the newest run that began in the ring, with the position at which it did.
    pub(super) fn last_run(&self) -> Option<(RunId, u64)> {
        let begins = |event: &Arc<FeedEvent>| matches!(event.body, FeedBody::RunBegan);
        let index = self.events.iter().rposition(begins)?;
        Some((self.events[index].run, self.first + index as u64))
    }

    /// Iterates over the events from a position on.
    pub(super) fn since(&self, position: u64) -> impl Iterator<Item = &Arc<FeedEvent>> {
        let skipped = position.saturating_sub(self.first);
        self.events
            .iter()
            .skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use superstep::Timestamp;

    use super::*;
    use crate::feed::event::Namespace;

    fn event(entry: u64, bytes: usize, body: FeedBody) -> Arc<FeedEvent> {
        Arc::new(FeedEvent {
            id: FeedId { entry, place: 0 },
            run: RunId::from_bytes([u8::try_from(entry / 100).unwrap(); 16]),
            namespace: Namespace::default(),
            at: Timestamp(0),
            bytes,
            body,
        })
    }

    fn values() -> FeedBody {
        FeedBody::Values(Arc::default())
    }

    #[test]
    fn the_oldest_events_are_dropped() {
        let mut ring = EventRing::default();
        assert_eq!(ring.floor(), None);
        for _ in 0..EVENTS_MAX + 5 {
            ring.push(event(1, 1, values()));
        }
        assert_eq!((ring.first(), ring.end()), (5, EVENTS_MAX as u64 + 5));
        assert!(ring.get(4).is_none());
        assert!(ring.get(5).is_some());
        assert!(ring.floor().is_some());
    }

    #[test]
    fn a_large_event_stays_alone() {
        let mut ring = EventRing::default();
        ring.push(event(1, 10, values()));
        ring.push(event(2, BYTES_MAX * 2, values()));
        assert_eq!(ring.since(0).count(), 1);
        assert_eq!(ring.floor(), Some(FeedId { entry: 1, place: 0 }));
    }

    #[test]
    fn runs_and_ids_are_found() {
        let mut ring = EventRing::default();
        for (entry, body) in [
            (100, FeedBody::RunBegan),
            (101, values()),
            (200, FeedBody::RunBegan),
        ] {
            ring.push(event(entry, 1, body));
        }
        let first = RunId::from_bytes([1; 16]);
        assert_eq!(ring.beginning_of(first), Some(0));
        assert_eq!(ring.last_run(), Some((RunId::from_bytes([2; 16]), 2)));
        assert_eq!(
            ring.after(FeedId {
                entry: 100,
                place: 0
            }),
            1
        );
        assert_eq!(ring.after(FeedId::START), 0);
        assert_eq!(
            ring.last_id(),
            FeedId {
                entry: 200,
                place: 0
            }
        );
        ring.reset();
        assert_eq!((ring.first(), ring.end()), (3, 3));
        assert_eq!(ring.last_id(), FeedId::START);
    }
}
