//! Ids of streamed events.

use std::fmt;
use std::str::FromStr;

/// The place of an event among everything that a thread streams: an entry of the log, and a place after it. Written `12-3`;
/// later events have higher ids.
///
/// What comes from the log has the same id whenever it is streamed, so a client can continue on another server. What nodes
/// show live has places from [`FeedId::LIVE`] after the entry that was the newest at the time; it has no id that outlives the
/// feed, and a client that returns with one continues with the next entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct FeedId {
    /// Number of the entry.
    pub(crate) entry: u64,
    /// Place among what is streamed for the entry, from 0.
    pub(crate) place: u64,
}

impl FeedId {
    /// Before the first event of every thread.
    pub(crate) const START: Self = Self { entry: 0, place: 0 };
    /// First place of live events.
    pub(crate) const LIVE: u64 = 1_000_000;
    /// Number of places per entry. JavaScript reads numbers exactly up to 2^53, so this leaves room for 2^31 entries.
    const PLACES: u64 = 1 << 22;

    /// Returns the last id of an entry: everything of the entry is before it.
    pub(crate) fn end_of(entry: u64) -> Self {
        Self {
            entry,
            place: Self::PLACES - 1,
        }
    }

    /// Creates the id of the live event with this number, counted from 0 since the entry.
    pub(crate) fn live(entry: u64, number: u64) -> Self {
        Self {
            entry,
            place: (Self::LIVE + number).min(Self::PLACES - 1),
        }
    }

    /// Returns the id as one number, for the protocol whose events are numbered. Numbers are ordered like ids.
    pub(crate) fn number(self) -> u64 {
        let before = self.entry.saturating_mul(Self::PLACES);
        before.saturating_add(self.place.min(Self::PLACES - 1))
    }

    /// Returns the id with this number.
    pub(crate) fn from_number(number: u64) -> Self {
        Self {
            entry: number / Self::PLACES,
            place: number % Self::PLACES,
        }
    }

    /// Reads the value of a `Last-Event-ID` header. Clients send `-1` or `0` for the beginning.
    pub(crate) fn from_header(value: &str) -> Option<Self> {
        match value.trim() {
            "-1" | "0" => Some(Self::START),
            text => text.parse().ok(),
        }
    }
}

impl fmt::Display for FeedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.entry, self.place)
    }
}

impl FromStr for FeedId {
    type Err = InvalidFeedId;

    fn from_str(text: &str) -> Result<Self, InvalidFeedId> {
        let (entry, place) = text.split_once('-').ok_or(InvalidFeedId)?;
        let number = |digits: &str| digits.parse().map_err(|_| InvalidFeedId);
        Ok(Self {
            entry: number(entry)?,
            place: number(place)?,
        })
    }
}

/// A text is not the id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidFeedId;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back_and_numbers_keep_their_order() {
        let ids = [
            FeedId::START,
            FeedId { entry: 1, place: 0 },
            FeedId { entry: 1, place: 7 },
            FeedId::live(1, 0),
            FeedId::live(1, 41),
            FeedId::live(1, u64::MAX - FeedId::LIVE),
            FeedId { entry: 2, place: 0 },
        ];
        assert!(ids.is_sorted());
        let numbers = ids.map(FeedId::number);
        assert!(numbers.is_sorted());
        for id in ids {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(FeedId::from_number(id.number()), id);
        }
    }

    #[test]
    fn the_forms_of_a_header_are_read() {
        assert_eq!(FeedId::from_header("-1"), Some(FeedId::START));
        assert_eq!(FeedId::from_header(" 0 "), Some(FeedId::START));
        let id = FeedId {
            entry: 12,
            place: 3,
        };
        assert_eq!(FeedId::from_header("12-3"), Some(id));
        assert_eq!(FeedId::from_header("latest"), None);
        assert_eq!(FeedId::from_header("1-"), None);
    }
}
