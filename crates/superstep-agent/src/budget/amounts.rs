//! What is counted, how much of it, and how much of it is allowed.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// Tokens of models, in and out.
    Tokens,
    /// Money, in thousand-millionths of a dollar, so that a sum of small prices is exact.
    NanoDollars,
    /// Time that calls took, in milliseconds. Measured from the reservation to its settlement; waiting for a
    /// person between calls costs nothing.
    TimeMs,
    /// Calls of models and tools.
    Calls,
    /// Supersteps, or turns of a loop: whatever the caller counts as one.
    Steps,
    /// Tasks that were sent out to run side by side, all in all.
    FanOut,
}

impl fmt::Display for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Meter::Tokens => "tokens",
            Meter::NanoDollars => "nano-dollars",
            Meter::TimeMs => "ms of time",
            Meter::Calls => "calls",
            Meter::Steps => "steps",
            Meter::FanOut => "tasks sent out",
        })
    }
}

/// So much of everything that is counted; what is not named is 0.
///
/// ```
/// use superstep_agent::budget::{Amounts, Meter};
///
/// let call = Amounts::of(Meter::Calls, 1).and(Meter::Tokens, 500);
/// assert_eq!(call.get(Meter::Tokens), 500);
/// assert_eq!(call.get(Meter::Steps), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(BTreeMap<Meter, u64>);

impl Amounts {
    /// Nothing.
    pub const NONE: Self = Self(BTreeMap::new());

    /// So much of one thing.
    pub fn of(meter: Meter, amount: u64) -> Self {
        Self::NONE.and(meter, amount)
    }

    /// And so much of another. Named twice, the later one counts.
    #[must_use]
    pub fn and(mut self, meter: Meter, amount: u64) -> Self {
        if amount == 0 {
            self.0.remove(&meter);
        } else {
            self.0.insert(meter, amount);
        }
        self
    }

    /// How much of it.
    pub fn get(&self, meter: Meter) -> u64 {
        self.0.get(&meter).copied().unwrap_or(0)
    }

    /// What is not 0, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Meter, u64)> {
        self.0.iter().map(|(meter, amount)| (*meter, *amount))
    }

    /// Both together. At the end of the numbers it stays there, which is over any limit.
    #[must_use]
    pub fn plus(mut self, other: &Amounts) -> Self {
        for (meter, amount) in other.iter() {
            let sum = self.get(meter).saturating_add(amount);
            self.0.insert(meter, sum);
        }
        self
    }
}

/// How much is allowed; what is not named is without limit.
///
/// ```
/// use superstep_agent::budget::{Limits, Meter};
///
/// let limits = Limits::of(Meter::NanoDollars, 2_000_000_000).and(Meter::Calls, 100);
/// assert_eq!(limits.get(Meter::Tokens), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(BTreeMap<Meter, u64>);

impl Limits {
    /// No limit on anything.
    pub const NONE: Self = Self(BTreeMap::new());

    /// So much of one thing, and of everything else whatever is needed.
    pub fn of(meter: Meter, limit: u64) -> Self {
        Self::NONE.and(meter, limit)
    }

    /// And so much of another. Named twice, the later one counts.
    #[must_use]
    pub fn and(mut self, meter: Meter, limit: u64) -> Self {
        self.0.insert(meter, limit);
        self
    }

    /// The limit on it, if there is one.
    pub fn get(&self, meter: Meter) -> Option<u64> {
        self.0.get(&meter).copied()
    }

    /// The limits there are, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Meter, u64)> {
        self.0.iter().map(|(meter, limit)| (*meter, *limit))
    }

    /// The limits here, each as high as the other says if that is higher. What has no limit here gets none.
    #[must_use]
    pub fn raised_to(mut self, other: &Limits) -> Self {
        for (meter, limit) in &mut self.0 {
            *limit = (*limit).max(other.get(*meter).unwrap_or(0));
        }
        self
    }

    /// All limits of both, the higher one where both have one.
    #[must_use]
    pub fn or_higher(mut self, other: &Limits) -> Self {
        for (meter, limit) in other.iter() {
            let higher = self.get(meter).unwrap_or(0).max(limit);
            self.0.insert(meter, higher);
        }
        self
    }
}
