//! Channels: the fields of a state, each with a rule for what a write does to it.
//!
//! A rule is a few lines that `derive(State)` writes into `apply`; this module has the kinds, the sets of channels that an
//! update touches, and the one rule that is more than a line (messages).

mod messages;

pub use messages::{Message, MessageWrite, merge_messages, remove_unknown_message};

/// One field of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Name of the field in stored data and in JSON.
    pub name: &'static str,
    /// What a write to the field does.
    pub kind: ChannelKind,
}

/// What a write to a channel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// The written value replaces the old one. Two writers in one superstep are an error.
    Last,
    /// Items are appended, in task order.
    Append,
    /// Messages are merged by id: a known id replaces in place, a new one is appended.
    Messages,
    /// A reducer folds each write into the value, in task order.
    Reduce,
    /// Items live for one superstep: the next one clears them.
    Topic,
    /// The value lives for one superstep.
    Ephemeral,
    /// The value is kept in memory during a run and never stored.
    Untracked,
}

impl ChannelKind {
    /// Whether two tasks of one superstep may both write the channel.
    pub const fn takes_many(self) -> bool {
        match self {
            ChannelKind::Append
            | ChannelKind::Messages
            | ChannelKind::Reduce
            | ChannelKind::Topic => true,
            ChannelKind::Last | ChannelKind::Ephemeral | ChannelKind::Untracked => false,
        }
    }
}

/// A set of channels of one state, as bits in the order of [`crate::State::CHANNELS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelSet(u64);

impl ChannelSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// Highest number of channels of a state.
    pub const CHANNELS_MAX: usize = 64;

    /// Returns the set, with channel number `index` added if `present`.
    #[must_use]
    pub const fn with(self, index: u32, present: bool) -> Self {
        if present {
            Self(self.0 | 1 << index)
        } else {
            self
        }
    }

    /// Whether channel number `index` is in the set.
    pub const fn has(self, index: u32) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the channels that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the channels that are in this set and not in the other.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the numbers of the channels, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let lowest = (left != 0).then(|| left.trailing_zeros());
            left &= left.wrapping_sub(1);
            lowest
        })
    }
}
