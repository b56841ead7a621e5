//! The defects of the outbox.

use serde_json::Value as Json;
use superstep_conformance::give_way;
use superstep_core::checkpoint::CheckpointResult;
use superstep_core::registry::{
    AttemptEnd, Delivery, DeliveryAttempt, DeliveryQuery, DeliveryStatus, NewDelivery, NewRun,
    Registry, RunEnd, RunStatus, WhenBusy,
};
use superstep_core::{AssistantId, DeliveryId, RunId, ThreadId, Timestamp};

use super::{BrokenRegistry, EVERY, RegistryDefect};

impl BrokenRegistry {
    /// Returns the end of a run with the deliveries that the defect makes of it.
    pub(super) async fn end_by_defect(&self, end: &RunEnd) -> CheckpointResult<RunEnd> {
        let mut end = end.clone();
        match self.defect {
            RegistryDefect::DeliveriesLost => end.deliveries.clear(),
            RegistryDefect::DeliveriesStoredBackwards => end.deliveries.reverse(),
            RegistryDefect::TextsOfDeliveriesTrimmed => {
                for new in &mut end.deliveries {
                    new.address = new.address.trim().to_owned();
                }
            }
            RegistryDefect::KnownDeliveryStoredAgain => {
                for new in &mut end.deliveries {
                    let tenant = new.thread.tenant();
                    if self.find_delivery(tenant, new.id).await?.is_some() {
                        let mut id = new.id.to_bytes();
                        id[15] ^= 128;
                        new.id = DeliveryId::from_bytes(id);
                    }
                }
            }
            _ => {}
        }
        Ok(end)
    }

    /// Stores deliveries although no run has ended.
    pub(super) async fn deliver_anyway(
        &self,
        tenant: &str,
        deliveries: &[NewDelivery],
    ) -> CheckpointResult<()> {
        let Ok(thread) = ThreadId::of_tenant(tenant, "hidden") else {
            return Ok(());
        };
        let hidden = NewRun {
            id: RunId::from_bytes([255; 16]),
            thread,
            assistant: AssistantId::from_bytes([0; 16]),
            principal: String::new(),
            request: Vec::new(),
            arguments: Json::Null,
            metadata: Json::Null,
            when_busy: WhenBusy::Enqueue,
            at: Timestamp(0),
            due: Timestamp(0),
        };
        let end = RunEnd {
            status: RunStatus::Success,
            error: Json::Null,
            at: Timestamp(0),
            deliveries: deliveries.to_vec(),
        };
        self.inner.create_run(&hidden).await?;
        self.inner.end_run(tenant, hidden.id, &end).await?;
        self.inner.delete_run(tenant, hidden.id).await?;
        Ok(())
    }

    pub(super) async fn take_deliveries_by_defect(
        &self,
        now: Timestamp,
        again: Timestamp,
        limit: u32,
        skipped: &[String],
    ) -> CheckpointResult<Vec<Delivery>> {
        let take = |now: Timestamp, again: Timestamp, limit: u32| {
            self.inner.take_deliveries(now, again, limit, skipped)
        };
        match self.defect {
            RegistryDefect::AttemptNotCounted => {
                let mut taken = take(now, again, limit).await?;
                for taken in &mut taken {
                    taken.attempts = 0;
                }
                Ok(taken)
            }
            RegistryDefect::TakenDeliveryStaysDue => take(now, now, limit).await,
            RegistryDefect::TakesDeliveriesBehindOthers => {
                let taken = take(now, again, limit).await?;
                self.with_those_behind(taken).await
            }
            RegistryDefect::LastDueDeliveryFirst => {
                let mut taken = take(now, again, limit).await?;
                taken.reverse();
                Ok(taken)
            }
            RegistryDefect::DueOfDeliveriesIgnored => take(Timestamp(i64::MAX), again, limit).await,
            RegistryDefect::DeliveriesTakenWithoutLimit => take(now, again, u32::MAX).await,
            RegistryDefect::TakeOfDeliveriesTorn => {
                let taken = take(now, now, limit).await?;
                give_way().await;
                take(now, again, limit).await?;
                Ok(taken)
            }
            RegistryDefect::DeliveriesOfNoTenantSkipped => {
                self.inner.take_deliveries(now, again, limit, &[]).await
            }
            _ => take(now, again, limit).await,
        }
    }

    /// Adds the next pending delivery of each run.
    async fn with_those_behind(&self, taken: Vec<Delivery>) -> CheckpointResult<Vec<Delivery>> {
        let mut all = taken.clone();
        for taken in taken {
            let query = DeliveryQuery {
                tenant: taken.new.thread.tenant().to_owned(),
                id: None,
                run: Some(taken.new.run),
                statuses: vec![DeliveryStatus::Pending],
                page: EVERY,
            };
            let mut waiting = self.inner.deliveries(&query).await?;
            waiting.retain(|waiting| waiting.new.id != taken.new.id);
            all.extend(waiting.pop());
        }
        Ok(all)
    }

    pub(super) async fn end_attempt_by_defect(
        &self,
        tenant: &str,
        id: DeliveryId,
        attempt: DeliveryAttempt,
        end: &AttemptEnd,
        now: Timestamp,
    ) -> CheckpointResult<bool> {
        let (mut tenant, mut attempt, mut end) = (tenant.to_owned(), attempt, end.clone());
        match self.defect {
            RegistryDefect::OvertakenAttemptEnds => {
                let found = self.find_delivery(&tenant, id).await?;
                attempt = found.map_or(attempt, |found| found.attempt());
            }
            RegistryDefect::AttemptBeforeRepetitionEnds => {
                let found = self.find_delivery(&tenant, id).await?;
                attempt.taken = found.map_or(attempt.taken, |found| found.updated);
            }
            RegistryDefect::ConfirmedDeliveryEndsAgain => {
                let found = self.find_delivery(&tenant, id).await?;
                if found.is_some_and(|found| {
                    found.status == DeliveryStatus::Delivered && found.attempts == attempt.number
                }) {
                    return Ok(true);
                }
            }
            RegistryDefect::AttemptEndedByAnyTenant => {
                let all = self.all_deliveries().await?;
                if let Some(found) = all.into_iter().find(|found| found.new.id == id) {
                    tenant = found.new.thread.tenant().to_owned();
                }
            }
            RegistryDefect::DeadDeliveryIsRetried => {
                if let AttemptEnd::Dead { error } = &end {
                    let error = error.clone();
                    end = AttemptEnd::Retry { error, due: now };
                }
            }
            RegistryDefect::ErrorOfAttemptsLost => {
                if let AttemptEnd::Retry { error, .. } | AttemptEnd::Dead { error } = &mut end {
                    error.clear();
                }
            }
            _ => {}
        }
        let ended = self.inner.end_attempt(&tenant, id, attempt, &end, now);
        ended.await
    }

    pub(super) async fn repeat_delivery_by_defect(
        &self,
        tenant: &str,
        id: DeliveryId,
        now: Timestamp,
    ) -> CheckpointResult<Option<Delivery>> {
        let found = self.find_delivery(tenant, id).await?;
        match self.defect {
            RegistryDefect::OnlyPendingDeliveriesRepeated
                if found
                    .as_ref()
                    .is_some_and(|found| found.status != DeliveryStatus::Pending) =>
            {
                Ok(found)
            }
            RegistryDefect::RepeatKeepsTheTime => {
                let mut repeated = self.inner.repeat_delivery(tenant, id, now).await?;
                if let (Some(repeated), Some(found)) = (&mut repeated, found) {
                    repeated.due = found.due;
                }
                Ok(repeated)
            }
            _ => self.inner.repeat_delivery(tenant, id, now).await,
        }
    }

    pub(super) async fn deliveries_by_defect(
        &self,
        query: &DeliveryQuery,
    ) -> CheckpointResult<Vec<Delivery>> {
        let mut query = query.clone();
        match self.defect {
            RegistryDefect::IdOfDeliveriesIgnored => query.id = None,
            RegistryDefect::RunOfDeliveriesIgnored => query.run = None,
            RegistryDefect::StatusOfDeliveriesIgnored => query.statuses.clear(),
            RegistryDefect::TenantsMixedInDeliveries => return self.all_deliveries().await,
            _ => {}
        }
        let mut found = self.inner.deliveries(&query).await?;
        match self.defect {
            RegistryDefect::DeliveriesOldestFirst => found.reverse(),
            RegistryDefect::DeliveriesGoWithTheirRun => {
                let mut left = Vec::new();
                for found in found {
                    if self
                        .inner
                        .run(&query.tenant, found.new.run)
                        .await?
                        .is_some()
                    {
                        left.push(found);
                    }
                }
                return Ok(left);
            }
            _ => {}
        }
        Ok(found)
    }

    pub(super) async fn next_delivery_due_by_defect(&self) -> CheckpointResult<Option<Timestamp>> {
        match self.defect {
            RegistryDefect::DeliveriesBehindOthersAreDue => {
                let all = self.all_deliveries().await?.into_iter();
                let pending = all.filter(|found| found.status == DeliveryStatus::Pending);
                Ok(pending.map(|found| found.due).min())
            }
            _ => self.inner.next_delivery_due().await,
        }
    }

    pub(super) async fn sweep_deliveries_by_defect(
        &self,
        unchanged_since: Timestamp,
        limit: u32,
    ) -> CheckpointResult<u64> {
        match self.defect {
            RegistryDefect::DeliveriesSweptEarly => {
                let end_of_time = Timestamp(i64::MAX);
                self.inner.sweep_deliveries(end_of_time, limit).await
            }
            RegistryDefect::DeliveriesSweptWithoutLimit => {
                self.inner.sweep_deliveries(unchanged_since, u32::MAX).await
            }
            _ => self.inner.sweep_deliveries(unchanged_since, limit).await,
        }
    }

    async fn find_delivery(
        &self,
        tenant: &str,
        id: DeliveryId,
    ) -> CheckpointResult<Option<Delivery>> {
        let query = DeliveryQuery {
            tenant: tenant.to_owned(),
            page: EVERY,
            ..DeliveryQuery::default()
        };
        let mut found = self.inner.deliveries(&query).await?.into_iter();
        Ok(found.find(|found| found.new.id == id))
    }

    /// Returns the deliveries of all tenants.
    async fn all_deliveries(&self) -> CheckpointResult<Vec<Delivery>> {
        let mut all = Vec::new();
        for tenant in self.tenants() {
            let query = DeliveryQuery {
                tenant,
                page: EVERY,
                ..DeliveryQuery::default()
            };
            all.extend(self.inner.deliveries(&query).await?);
        }
        Ok(all)
    }
}
