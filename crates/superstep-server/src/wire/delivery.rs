//! Deliveries to webhooks.

use serde_json::{Value as Json, json};
use superstep::registry::{Delivery, DeliveryStatus};

use crate::wire::{time, uuid};

/// Returns a delivery as clients read it. What is delivered is not part of it: the run has that.
pub(crate) fn delivery(delivery: &Delivery) -> Json {
    let new = &delivery.new;
    let is_pending = delivery.status == DeliveryStatus::Pending;
    json!({
        "delivery_id": uuid(new.id.to_bytes()),
        "run_id": uuid(new.run.to_bytes()),
        "thread_id": new.thread.name(),
        "event": new.event,
        "webhook": new.address,
        "status": status(delivery.status),
        "attempts": delivery.attempts,
        "next_attempt_at": is_pending.then(|| time(delivery.due)),
        "error": (!delivery.error.is_empty()).then_some(&delivery.error),
        "created_at": time(new.at),
        "updated_at": time(delivery.updated),
    })
}

fn status(status: DeliveryStatus) -> &'static str {
    match status {
        DeliveryStatus::Pending => "pending",
        DeliveryStatus::Delivered => "delivered",
        DeliveryStatus::Dead => "dead",
    }
}

/// Returns the status of deliveries with this name.
pub(crate) fn read_delivery_status(name: &str) -> Option<DeliveryStatus> {
    DeliveryStatus::ALL
        .into_iter()
        .find(|found| status(*found) == name)
}
