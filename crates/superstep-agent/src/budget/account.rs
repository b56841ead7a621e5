//! The arithmetic of one budget. No store, no clock: the caller brings both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use superstep_core::Timestamp;

use crate::budget::{Amounts, CallKey, Limits, Meter};

/// What was spent, and what is reserved for calls that are under way.
///
/// Invariant: what was spent and what is reserved only fall together by [`release`](Self::release), and by
/// [`settle`](Self::settle) where a call cost less than its estimate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    spent: Amounts,
    reserved: BTreeMap<CallKey, Reservation>,
    /// The limits that people raised, whatever the program says.
    raised: Limits,
}

/// What is set aside for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// How much.
    pub amounts: Amounts,
    /// Since when.
    pub at: Timestamp,
}

/// A limit, and a call that does not fit under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    /// The limit on what.
    pub meter: Meter,
    /// The limit.
    pub limit: u64,
    /// What was spent so far.
    pub spent: u64,
    /// What is reserved for calls that are under way, or were never settled.
    pub reserved: u64,
    /// What this call asked for.
    pub asked: u64,
}

impl Over {
    /// By how much the limit is too low for this call.
    pub fn short_by(&self) -> u64 {
        self.needed().saturating_sub(self.limit)
    }

    /// The lowest limit under which this call would fit.
    pub fn needed(&self) -> u64 {
        self.spent
            .saturating_add(self.reserved)
            .saturating_add(self.asked)
    }
}

impl Account {
    /// How many reservations one account keeps. Past this the oldest counts as spent, and what is settled for
    /// it later is not: an account that is left open by a thousand dead calls stays small, and stays on the safe side.
    pub const RESERVATIONS_MAX: usize = 1_000;

    /// Sets aside what a call may cost.
    ///
    /// If there is a reservation under its key already, that call was begun and nobody knows how it ended: it
    /// counts as spent, and this one must fit beside it.
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

    /// The first limit that this does not fit under. What asks for nothing of a kind fits under any limit of it.
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

    /// Replaces what was set aside for a call by what it cost, be it more or less. Says whether something was set
    /// aside: settling once more changes nothing.
    ///
    /// Its time is what passed since it was reserved, whatever `actual` says.
    pub fn settle(&mut self, key: &CallKey, actual: &Amounts, now: Timestamp) -> bool {
        let Some(reservation) = self.reserved.remove(key) else {
            return false;
        };
        // A clock that went back gives no time back.
        let ms = now.0.saturating_sub(reservation.at.0).max(0).unsigned_abs();
        self.spend(&actual.clone().and(Meter::TimeMs, ms));
        true
    }

    /// Gives back what was set aside for a call that was surely not made. Says whether something was.
    pub fn release(&mut self, key: &CallKey) -> bool {
        self.reserved.remove(key).is_some()
    }

    /// Raises limits permanently. What was spent stays spent. Raising to the same once more changes nothing, so
    /// that a node which runs again after the answer of a person may do so.
    pub fn raise(&mut self, limits: &Limits) {
        self.raised = std::mem::take(&mut self.raised).or_higher(limits);
    }

    /// The limits that hold: what the program says, or what people raised that to.
    pub fn limits(&self, limits: &Limits) -> Limits {
        limits.clone().raised_to(&self.raised)
    }

    /// Counts reservations that were made before this time as spent: nobody will settle them. Gives how many.
    pub fn forfeit(&mut self, before: Timestamp) -> usize {
        let old = self.reserved.iter().filter(|(_, open)| open.at < before);
        let old: Vec<CallKey> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.spend_unsettled(key);
        }
        old.len()
    }

    /// What was spent.
    pub fn spent(&self) -> &Amounts {
        &self.spent
    }

    /// What is set aside, all in all.
    pub fn reserved(&self) -> Amounts {
        let open = self.reserved.values();
        open.fold(Amounts::NONE, |sum, open| sum.plus(&open.amounts))
    }

    /// What is set aside for each call.
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
