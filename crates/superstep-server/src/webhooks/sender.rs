//! The sender: sends deliveries until their receivers confirm them.
//!
//! The registry hands out a delivery to one sender at a time, for longer than an attempt takes, and of a run only the oldest. So
//! several servers send side by side, deliveries of a run stay in order, and if a server dies, another one tries again.
//!
//! Of a tenant only some are sent at once. So receivers of one tenant that hang, or a tenant with many deliveries, leave room for those
//! of others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use superstep::checkpoint::CheckpointResult;
use superstep::registry::{AttemptEnd, Delivery, Registry};
use superstep::{Runtime, Timestamp};
use superstep_http::{Call, Fault};
use tokio::task::{self, JoinError, JoinSet};
use uuid::Uuid;

use crate::webhooks::end_hook::SENT_AT;
use crate::webhooks::{SenderPhase, WebhookAttempts, Webhooks};
use crate::{App, wire};

/// Starts to send deliveries, for as long as the server exists.
pub(crate) fn start_sender(app: &App) {
    // Not the server itself, which the task must not keep alive.
    let sender = Arc::new(Sender {
        registry: app.registry().clone(),
        runtime: app.runtime.clone(),
        webhooks: app.webhooks.clone(),
    });
    app.background.run(send_until_stopped(sender));
}

struct Sender {
    registry: Arc<dyn Registry>,
    runtime: Runtime,
    webhooks: Arc<Webhooks>,
}

async fn send_until_stopped(sender: Arc<Sender>) {
    let mut attempts = Attempts::default();
    let mut phase = sender.webhooks.phase.subscribe();
    while *phase.borrow_and_update() == SenderPhase::Sending {
        let wait = match take(&sender, &mut attempts).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(?error, "the deliveries that are due were not found");
                LOOK_AGAIN
            }
        };
        tokio::select! {
            () = sender.webhooks.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
            // There is room, and perhaps the next delivery of the same run.
            () = attempts.one_ends() => {}
            _ = phase.changed() => {}
        }
    }
    while attempts.running.join_next().await.is_some() {}
    sender.webhooks.phase.send_replace(SenderPhase::Stopped);
}

/// The attempts in progress.
#[derive(Debug, Default)]
struct Attempts {
    running: JoinSet<()>,
    /// Whose they are.
    tenants: BTreeMap<task::Id, String>,
}

/// How many deliveries may be taken.
#[derive(Debug, PartialEq, Eq)]
struct Room {
    /// At most so many at once, so that all may be of one tenant.
    limit: u32,
    /// Tenants that have no room.
    full: Vec<String>,
}

impl Attempts {
    fn start(&mut self, tenant: &str, attempt: impl Future<Output = ()> + Send + 'static) {
        let started = self.running.spawn(attempt);
        self.tenants.insert(started.id(), tenant.to_owned());
    }

    /// Waits until an attempt ends, for ever if there is none.
    async fn one_ends(&mut self) {
        match self.running.join_next_with_id().await {
            Some(ended) => self.forget(ended),
            None => std::future::pending().await,
        }
    }

    fn forget_ended(&mut self) {
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.forget(ended);
        }
    }

    fn forget(&mut self, ended: Result<(task::Id, ()), JoinError>) {
        // An attempt that panicked has ended, too.
        let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
        self.tenants.remove(&id);
    }

    fn room(&self) -> Room {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for tenant in self.tenants.values() {
            *counts.entry(tenant).or_default() += 1;
        }
        let (mut limit, mut full) = (ATTEMPTS_OF_TENANT, Vec::new());
        for (tenant, count) in counts {
            match ATTEMPTS_OF_TENANT.saturating_sub(count) {
                0 => full.push(tenant.to_owned()),
                left => limit = limit.min(left),
            }
        }
        let left = ATTEMPTS_AT_ONCE.saturating_sub(self.tenants.len());
        Room {
            limit: u32::try_from(limit.min(left)).unwrap_or(u32::MAX),
            full,
        }
    }
}

/// Attempts what is due, and returns how long to wait until the next delivery is.
async fn take(sender: &Arc<Sender>, attempts: &mut Attempts) -> CheckpointResult<Duration> {
    let registry = &sender.registry;
    let lease = sender.webhooks.attempts.timeout + LEASE_MARGIN;
    let full = loop {
        attempts.forget_ended();
        let Room { limit, full } = attempts.room();
        if limit == 0 {
            return Ok(LOOK_AGAIN);
        }
        let now = sender.runtime.now();
        let again = now.plus_ms(ms(lease));
        let taken = registry.take_deliveries(now, again, limit, &full);
        let taken = taken.await?;
        let are_all = taken.len() < limit as usize;
        for delivery in taken {
            let tenant = delivery.new.thread.tenant().to_owned();
            let sender = sender.clone();
            attempts.start(&tenant, async move { sender.attempt(&delivery).await });
        }
        if are_all {
            break full;
        }
    };
    let Some(next) = registry.next_delivery_due().await? else {
        return Ok(LOOK_AGAIN);
    };
    let left = next.0.saturating_sub(sender.runtime.now().0);
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    // In the past if it waits for an earlier delivery of its run, or for room of its tenant, of which the end of an attempt tells.
    let shortest = match full.is_empty() {
        true => SHORTEST_WAIT,
        false => WAIT_WHILE_FULL,
    };
    Ok(left.clamp(shortest, LOOK_AGAIN))
}

/// Why an attempt failed.
#[derive(Debug, PartialEq, Eq)]
struct AttemptFailure {
    error: String,
    /// Whether another attempt cannot succeed.
    is_final: bool,
    /// How long the receiver wants to be left alone.
    wait: Option<Duration>,
}

impl Sender {
    async fn attempt(&self, delivery: &Delivery) {
        let (id, tenant) = (delivery.new.id, delivery.new.thread.tenant());
        let sent = self.send(delivery).await;
        let now = self.runtime.now();
        let end = match sent {
            Ok(()) => AttemptEnd::Delivered,
            Err(failure) => {
                let entropy = Uuid::new_v4().as_u64_pair().1 as u32;
                let end = end_of(
                    &self.webhooks.attempts,
                    delivery.attempts,
                    failure,
                    now,
                    entropy,
                );
                tracing::info!(delivery = %id, run = %delivery.new.run, attempt = delivery.attempts, ?end, "webhook delivery failed");
                end
            }
        };
        let stored = self
            .registry
            .end_attempt(tenant, id, delivery.attempt(), &end, now);
        match stored.await {
            Ok(true) => {}
            Ok(false) => tracing::debug!(delivery = %id, "another attempt has begun meanwhile"),
            // It becomes due again, and is sent again.
            Err(error) => {
                tracing::warn!(delivery = %id, ?error, "the end of an attempt was not stored")
            }
        }
    }

    async fn send(&self, delivery: &Delivery) -> Result<(), AttemptFailure> {
        let webhooks = &self.webhooks;
        let call = signed_call(webhooks, delivery, self.runtime.now());
        let sent = webhooks.connector.send(call, &webhooks.allowed);
        // Resolving a name takes time as well.
        match tokio::time::timeout(webhooks.attempts.timeout, sent).await {
            Ok(Ok(answer)) if (200..300).contains(&answer.status) => Ok(()),
            Ok(Ok(answer)) => Err(AttemptFailure {
                error: format!("the receiver answered {}", answer.status),
                is_final: answer.status == GONE,
                wait: answer.retry_after,
            }),
            Ok(Err(fault)) => Err(AttemptFailure {
                error: fault.to_string(),
                is_final: matches!(fault, Fault::Refused(_)),
                wait: None,
            }),
            Err(_) => Err(AttemptFailure {
                error: "nothing came in time".to_owned(),
                is_final: false,
                wait: None,
            }),
        }
    }
}

/// Returns the call that delivers something. Only the time of the attempt, and so the signature, differ between attempts.
fn signed_call(webhooks: &Webhooks, delivery: &Delivery, now: Timestamp) -> Call {
    let mut body = delivery.new.body.clone();
    if let Ok(Json::Object(mut fields)) = serde_json::from_str(&body) {
        fields.insert(SENT_AT.to_owned(), wire::time(now).into());
        body = Json::Object(fields).to_string();
    }
    let id = wire::uuid(delivery.new.id.to_bytes());
    let timestamp = now.0.div_euclid(1_000);
    let signatures = webhooks.secrets.iter();
    let signatures = signatures.map(|secret| secret.sign(&id, timestamp, body.as_bytes()));
    let signatures = signatures.collect::<Vec<_>>().join(" ");
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("webhook-id".to_owned(), id),
        ("webhook-timestamp".to_owned(), timestamp.to_string()),
    ];
    if !signatures.is_empty() {
        headers.push(("webhook-signature".to_owned(), signatures));
    }
    Call {
        method: "POST".to_owned(),
        url: delivery.new.address.clone(),
        headers,
        body: Some(body.into_bytes()),
        credential: None,
    }
}

/// Returns what follows from a failed attempt: another one after a pause, or none.
fn end_of(
    settings: &WebhookAttempts,
    attempts: u32,
    failure: AttemptFailure,
    now: Timestamp,
    entropy: u32,
) -> AttemptEnd {
    let AttemptFailure {
        error,
        is_final,
        wait,
    } = failure;
    if is_final || attempts >= settings.max {
        return AttemptEnd::Dead { error };
    }
    let pause = pause_after(settings, attempts, entropy);
    let pause = pause.max(wait.unwrap_or_default());
    let pause = pause.min(settings.longest_pause);
    AttemptEnd::Retry {
        error,
        due: now.plus_ms(ms(pause)),
    }
}

/// Returns the pause after an attempt: four times as long each time, and shortened by up to a half at random, so that deliveries that
/// failed together are not sent again together.
fn pause_after(settings: &WebhookAttempts, attempts: u32, entropy: u32) -> Duration {
    let factor = 4_u32.saturating_pow(attempts.saturating_sub(1));
    let longest = settings.shortest_pause.saturating_mul(factor);
    let longest = longest.min(settings.longest_pause);
    let share = f64::from(entropy) / f64::from(u32::MAX);
    longest.mul_f64(0.5 + share / 2.0)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Number of deliveries that a server sends at once.
const ATTEMPTS_AT_ONCE: usize = 128;
/// Number of them that may be of one tenant.
const ATTEMPTS_OF_TENANT: usize = 16;
/// How much longer than an attempt may take a delivery stays with its sender.
const LEASE_MARGIN: Duration = Duration::from_secs(20);
/// How often to look for deliveries that another server left.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
const SHORTEST_WAIT: Duration = Duration::from_millis(20);
/// How soon to look for deliveries of other tenants, whose times are not known while a tenant without room has the next one.
const WAIT_WHILE_FULL: Duration = Duration::from_millis(250);
/// The receiver will never want it.
const GONE: u16 = 410;

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(wait: Option<u64>) -> AttemptFailure {
        AttemptFailure {
            error: "no".to_owned(),
            is_final: false,
            wait: wait.map(Duration::from_secs),
        }
    }

    #[test]
    fn pauses_grow_from_a_second_to_an_hour_and_then_the_delivery_is_dead() {
        let settings = WebhookAttempts::default();
        let mut pauses = Vec::new();
        for attempt in 1..=12 {
            match end_of(&settings, attempt, failed(None), Timestamp(0), u32::MAX) {
                AttemptEnd::Retry { due, .. } => pauses.push(due.0 / 1_000),
                end => assert!(attempt >= 10 && matches!(end, AttemptEnd::Dead { .. })),
            }
        }
        assert_eq!(pauses, [1, 4, 16, 64, 256, 1_024, 3_600, 3_600, 3_600]);
        let half = pause_after(&settings, 2, 0);
        assert_eq!(half, Duration::from_secs(2));
    }

    #[tokio::test]
    async fn a_tenant_has_a_part_of_the_room_and_gets_it_back() {
        let mut attempts = Attempts::default();
        let all = ATTEMPTS_OF_TENANT as u32;
        assert_eq!(attempts.room().limit, all);
        attempts.start("acme", std::future::ready(()));
        for _ in 1..all {
            attempts.start("acme", std::future::pending());
        }
        let full = attempts.room();
        assert_eq!((full.limit, full.full), (all, vec!["acme".to_owned()]));
        attempts.start("other", std::future::pending());
        assert_eq!(attempts.room().limit, all - 1);
        attempts.one_ends().await;
        let room = attempts.room();
        assert_eq!((room.limit, room.full), (1, Vec::new()));
        for number in attempts.tenants.len()..ATTEMPTS_AT_ONCE {
            attempts.start(&format!("tenant{number}"), std::future::pending());
        }
        assert_eq!(attempts.room().limit, 0);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_pause_up_to_the_longest() {
        let settings = WebhookAttempts::default();
        let due = |wait| match end_of(&settings, 3, failed(Some(wait)), Timestamp(0), u32::MAX) {
            AttemptEnd::Retry { due, .. } => due.0 / 1_000,
            end => panic!("{end:?}"),
        };
        assert_eq!([due(0), due(100), due(1_000_000)], [16, 100, 3_600]);
    }
}
