//! Meters, amounts and limits.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A quantity that budgets count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// Model tokens, input and output.
    Tokens,
    /// Money, in billionths of a dollar, so sums of small prices are exact.
    NanoDollars,
    /// Duration of calls, in milliseconds. Measured from the reservation to its settlement; waiting for a person between
    /// calls costs nothing.
    TimeMs,
    /// Model and tool calls.
    Calls,
    /// Supersteps or turns of a loop; the caller decides what counts as one.
    Steps,
    /// Tasks of fan-outs, in total.
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

/// An amount per meter; meters that are not set are zero.
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
    /// Zero on every meter.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Creates an amount of one meter.
    pub fn of(meter: Meter, amount: u64) -> Self {
        Self::NONE.and(meter, amount)
    }

    /// Sets the amount of a meter. Replaces an earlier value.
    #[must_use]
    pub fn and(mut self, meter: Meter, amount: u64) -> Self {
        if amount == 0 {
            self.0.remove(&meter);
        } else {
            self.0.insert(meter, amount);
        }
        self
    }

    /// Returns the amount of a meter; zero if it is not set.
    pub fn get(&self, meter: Meter) -> u64 {
        self.0.get(&meter).copied().unwrap_or(0)
    }

    /// Iterates over the amounts that are not zero, in the order of [`Meter`].
    pub fn iter(&self) -> impl Iterator<Item = (Meter, u64)> {
        self.0.iter().map(|(meter, amount)| (*meter, *amount))
    }

    /// Adds two amounts. Saturates at the maximum, which exceeds any other limit.
    #[must_use]
    pub fn plus(mut self, other: &Amounts) -> Self {
        for (meter, amount) in other.iter() {
            let sum = self.get(meter).saturating_add(amount);
            self.0.insert(meter, sum);
        }
        self
    }
}

/// A limit per meter; meters that are not set are unlimited.
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
    /// No limit on any meter.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Creates a limit on one meter.
    pub fn of(meter: Meter, limit: u64) -> Self {
        Self::NONE.and(meter, limit)
    }

    /// Sets the limit of a meter. Replaces an earlier value.
    #[must_use]
    pub fn and(mut self, meter: Meter, limit: u64) -> Self {
        self.0.insert(meter, limit);
        self
    }

    /// Returns the limit of a meter; `None` if it is unlimited.
    pub fn get(&self, meter: Meter) -> Option<u64> {
        self.0.get(&meter).copied()
    }

    /// Iterates over the limits, in the order of [`Meter`].
    pub fn iter(&self) -> impl Iterator<Item = (Meter, u64)> {
        self.0.iter().map(|(meter, limit)| (*meter, *limit))
    }

    /// Raises each limit to the other's where that is higher. Meters that are unlimited here stay unlimited.
    #[must_use]
    pub fn raised_to(mut self, other: &Limits) -> Self {
        for (meter, limit) in &mut self.0 {
            *limit = (*limit).max(other.get(*meter).unwrap_or(0));
        }
        self
    }

    /// Merges both sets of limits; where both have one, the higher wins.
    #[must_use]
    pub fn or_higher(mut self, other: &Limits) -> Self {
        for (meter, limit) in other.iter() {
            let higher = self.get(meter).unwrap_or(0).max(limit);
            self.0.insert(meter, higher);
        }
        self
    }
}
