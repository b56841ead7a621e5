//! The arithmetic of one budget. No store and no clock: the caller provides both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use superstep_core::Timestamp;

use crate::budget::{Amounts, CallKey, Limits, Meter};

/// What was spent, and what is reserved for calls in progress. Stored as one item.
///
/// Invariant: the sum of spent and reserved only decreases by [`release`](Self::release), or by [`settle`](Self::settle) when
/// a call cost less than its estimate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    spent: Amounts,
    reserved: BTreeMap<CallKey, Reservation>,
    /// Limits that people raised; they override lower limits of the program.
    raised: Limits,
}

/// Amounts reserved for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Estimated cost of the call.
    pub amounts: Amounts,
    /// When the reservation was made.
    pub at: Timestamp,
}

/// A limit, and the numbers of a call that does not fit under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// What the limit applies to.
    pub meter: Meter,
    /// The limit in effect, including raises.
    pub limit: u64,
    /// Amount spent so far.
    pub spent: u64,
    /// Amount reserved for calls in progress, and for calls that never settled.
    pub reserved: u64,
    /// Amount that this call asked for.
    pub asked: u64,
}

impl Over {
    /// Returns how much the limit must rise for this call to fit.
    pub fn short_by(&self) -> u64 {
        self.needed().saturating_sub(self.limit)
    }

    /// Returns the lowest limit under which this call fits.
    pub fn needed(&self) -> u64 {
        self.spent
            .saturating_add(self.reserved)
            .saturating_add(self.asked)
    }
}

impl Account {
    /// Maximum number of open reservations per account. Beyond it the oldest counts as spent, and a later settlement of it is
    /// ignored. So an account with a thousand dead calls stays small and errs on the safe side.
    pub const RESERVATIONS_MAX: usize = 1_000;

    /// Reserves what a call may cost, or returns the limit that it does not fit under.
    ///
    /// If the key already has a reservation, an earlier attempt was started and its outcome is unknown: it counts as spent,
    /// and this one must fit in addition.
    pub fn reserve(
        &mut self,
        limits: &Limits,
        key: &CallKey,
        estimate: &Amounts,
        now: Timestamp,
    ) -> Result<(), Over> {
        if let Some(over) = self.over(limits, estimate) {
            return Err(over);
        }
        self.spend_unsettled(key);
        let reservation = Reservation {
            amounts: estimate.clone(),
            at: now,
        };
        self.reserved.insert(key.clone(), reservation);
        if self.reserved.len() > Self::RESERVATIONS_MAX {
            self.spend_oldest(key);
        }
        Ok(())
    }

    /// Returns the first limit that the estimate does not fit under. A meter with an estimate of zero always fits.
    fn over(&self, limits: &Limits, estimate: &Amounts) -> Option<Over> {
        let limits = self.limits(limits);
        let reserved = self.reserved();
        limits.iter().find_map(|(meter, limit)| {
            let over = Over {
                meter,
                limit,
                spent: self.spent.get(meter),
                reserved: reserved.get(meter),
                asked: estimate.get(meter),
            };
            (over.asked > 0 && over.short_by() > 0).then_some(over)
        })
    }

    /// Replaces a reservation by the actual cost, higher or lower. Returns whether there was a reservation: settling again
    /// changes nothing.
    ///
    /// The time spent is measured from the reservation to `now`, whatever `actual` says.
    pub fn settle(&mut self, key: &CallKey, actual: &Amounts, now: Timestamp) -> bool {
        let Some(reservation) = self.reserved.remove(key) else {
            return false;
        };
        // A clock that went backwards gives no time back.
        let ms = now.0.saturating_sub(reservation.at.0).max(0).unsigned_abs();
        self.spend(&actual.clone().and(Meter::TimeMs, ms));
        true
    }

    /// Removes the reservation of a call that was certainly not made. Returns whether there was one.
    pub fn release(&mut self, key: &CallKey) -> bool {
        self.reserved.remove(key).is_some()
    }

    /// Raises limits permanently. What was spent stays spent. Idempotent, so a node that runs again after a person's answer
    /// may raise again.
    pub fn raise(&mut self, limits: &Limits) {
        self.raised = std::mem::take(&mut self.raised).or_higher(limits);
    }

    /// Returns the limits in effect: the program's, raised to what people granted.
    pub fn limits(&self, limits: &Limits) -> Limits {
        limits.clone().raised_to(&self.raised)
    }

    /// Counts reservations made before this time as spent, because they will never settle. Returns how many there were.
    pub fn forfeit(&mut self, before: Timestamp) -> usize {
        let old = self.reserved.iter().filter(|(_, open)| open.at < before);
        let old: Vec<CallKey> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.spend_unsettled(key);
        }
        old.len()
    }

    /// Returns what was spent.
    pub fn spent(&self) -> &Amounts {
        &self.spent
    }

    /// Returns the sum of all open reservations.
    pub fn reserved(&self) -> Amounts {
        let open = self.reserved.values();
        open.fold(Amounts::NONE, |sum, open| sum.plus(&open.amounts))
    }

    /// Iterates over the open reservations, in order of their keys.
    pub fn open(&self) -> impl Iterator<Item = (&CallKey, &Reservation)> {
        self.reserved.iter()
    }

    fn spend_oldest(&mut self, but: &CallKey) {
        let others = self.reserved.iter().filter(|(key, _)| *key != but);
        let oldest = others.min_by_key(|(_, open)| open.at);
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.spend_unsettled(&key);
        }
    }

    fn spend_unsettled(&mut self, key: &CallKey) {
        if let Some(unsettled) = self.reserved.remove(key) {
            self.spend(&unsettled.amounts);
        }
    }

    fn spend(&mut self, amounts: &Amounts) {
        self.spent = std::mem::take(&mut self.spent).plus(amounts);
    }
}
