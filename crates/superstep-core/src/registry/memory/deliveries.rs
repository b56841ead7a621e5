//! The outbox in memory.

use std::collections::BTreeSet;

use super::Rows;
use crate::ids::{DeliveryId, Timestamp};
use crate::registry::{
    AttemptEnd, Delivery, DeliveryAttempt, DeliveryQuery, DeliveryStatus, NewDelivery,
};

impl Rows {
    pub(super) fn store_deliveries(&mut self, new: &[NewDelivery]) {
        for new in new {
            if self.delivery_mut(new.thread.tenant(), new.id).is_none() {
                self.deliveries.push(Delivery::pending(new));
            }
        }
    }

    pub(super) fn take_deliveries(
        &mut self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &[String],
    ) -> Vec<Delivery> {
        let is_skipped = |found: &Delivery| {
            let tenant = found.new.thread.tenant();
            skipped.iter().any(|skipped| skipped == tenant)
        };
        let first = self.first_deliveries().into_iter();
        let mut due: Vec<usize> = first
            .filter(|place| self.deliveries[*place].due <= now)
            .filter(|place| !is_skipped(&self.deliveries[*place]))
            .collect();
        // Deliveries that are equally late are in the order in which they were stored, which a stable sort keeps.
        due.sort_by_key(|place| self.deliveries[*place].due);
        due.truncate(limit as usize);
        let take = |place: usize| {
            let taken = &mut self.deliveries[place];
            taken.attempts += 1;
            taken.due = again;
            taken.updated = now.max(taken.updated);
            taken.clone()
        };
        due.into_iter().map(take).collect()
    }

    pub(super) fn end_attempt(
        &mut self,
        tenant: &str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &AttemptEnd,
        now: Timestamp,
    ) -> bool {
        let found = self.delivery_mut(tenant, id);
        let Some(found) = found.filter(|found| found.awaits_end_of(attempt)) else {
            return false;
        };
        *found = found.clone().after_attempt(end, now);
        true
    }

    pub(super) fn repeat_delivery(
        &mut self,
        tenant: &str,
        id: DeliveryId,
        now: Timestamp,
    ) -> Option<Delivery> {
        let found = self.delivery_mut(tenant, id)?;
        *found = found.clone().repeated(now);
        Some(found.clone())
    }

    pub(super) fn deliveries(&self, query: &DeliveryQuery) -> Vec<Delivery> {
        let matches = |found: &&Delivery| {
            found.new.thread.tenant() == query.tenant
                && query.id.is_none_or(|id| found.new.id == id)
                && query.run.is_none_or(|run| found.new.run == run)
                && (query.statuses.is_empty() || query.statuses.contains(&found.status))
        };
        let found = self.deliveries.iter().rev().filter(matches);
        let rest = found.skip(query.page.offset as usize);
        rest.take(query.page.limit as usize).cloned().collect()
    }

    pub(super) fn next_delivery_due(&self) -> Option<Timestamp> {
        let first = self.first_deliveries().into_iter();
        first.map(|place| self.deliveries[place].due).min()
    }

    pub(super) fn sweep_deliveries(&mut self, unchanged_since: Timestamp, limit: u32) -> u64 {
        let mut left = limit;
        let before = self.deliveries.len();
        self.deliveries.retain(|found| {
            let is_old =
                found.status == DeliveryStatus::Delivered && found.updated <= unchanged_since;
            let is_swept = is_old && left > 0;
            left -= u32::from(is_swept);
            !is_swept
        });
        (before - self.deliveries.len()) as u64
    }

    fn delivery_mut(&mut self, tenant: &str, id: DeliveryId) -> Option<&mut Delivery> {
        let mut all = self.deliveries.iter_mut();
        all.find(|found| found.new.thread.tenant() == tenant && found.new.id == id)
    }

    /// Returns the places of the oldest pending delivery of each run. Those behind it wait until it is delivered or given up, so a
    /// receiver gets the deliveries of a run in order.
    fn first_deliveries(&self) -> Vec<usize> {
        let mut runs = BTreeSet::new();
        let all = self.deliveries.iter().enumerate();
        let pending = all.filter(|(_, found)| found.status == DeliveryStatus::Pending);
        let first =
            pending.filter(|(_, found)| runs.insert((found.new.thread.tenant(), found.new.run)));
        first.map(|(place, _)| place).collect()
    }
}
