//! The outbox: what is to be delivered to webhooks.
//!
//! A delivery is stored in the same write as the end of its run, so it exists if and only if the run ended.

use crate::checkpoint::Page;
use crate::ids::{DeliveryId, RunId, ThreadId, Timestamp};

/// Something to be delivered to a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Id of the delivery: the same for every attempt.
    pub id: DeliveryId,
    /// The run that it is about. Its tenant is that of the thread.
    pub run: RunId,
    /// Thread of the run.
    pub thread: ThreadId,
    /// Where to deliver it.
    pub address: String,
    /// What happened, such as `run.ended`.
    pub event: String,
    /// What is sent: JSON.
    pub body: String,
    /// When it happened.
    pub at: Timestamp,
}

/// Where a delivery is. The numbers are part of what stores keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DeliveryStatus {
    /// Is to be sent, for the first time or again.
    Pending = 0,
    /// The receiver has confirmed it.
    Delivered = 1,
    /// Every attempt failed. A person may have it sent again.
    Dead = 2,
}

impl DeliveryStatus {
    /// Every status, in the order of the numbers.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// Returns the number that stores keep.
    pub const fn to_number(self) -> u8 {
        self as u8
    }

    /// Returns the status with this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// A delivery, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What is delivered.
    pub new: NewDelivery,
    /// Where it is.
    pub status: DeliveryStatus,
    /// How often it was sent, or was about to be.
    pub attempts: u32,
    /// Not sent before this time.
    pub due: Timestamp,
    /// Why the last attempt failed; empty if it did not.
    pub error: String,
    /// When it last changed. Never goes back, and each repetition is later than what was before it, see [`DeliveryAttempt`].
    pub updated: Timestamp,
}

/// An attempt to deliver something, which the end of the attempt names.
///
/// The number alone does not tell an attempt from one of the same number before a [repetition](Delivery::repeated), which may still
/// be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryAttempt {
    /// [`Delivery::attempts`] after the delivery was taken for it.
    pub number: u32,
    /// [`Delivery::updated`] after the delivery was taken for it.
    pub taken: Timestamp,
}

impl Delivery {
    /// Returns the delivery as it is stored with the end of its run.
    pub fn pending(new: &NewDelivery) -> Self {
        Self {
            new: new.clone(),
            status: DeliveryStatus::Pending,
            attempts: 0,
            due: new.at,
            error: String::new(),
            updated: new.at,
        }
    }

    /// Returns the attempt for which the delivery was last taken.
    pub fn attempt(&self) -> DeliveryAttempt {
        DeliveryAttempt {
            number: self.attempts,
            taken: self.updated,
        }
    }

    /// Whether this attempt can still end: the delivery is pending, and was neither taken again nor repeated since.
    pub fn awaits_end_of(&self, attempt: DeliveryAttempt) -> bool {
        self.status == DeliveryStatus::Pending && self.attempt() == attempt
    }

    /// Returns the delivery after an attempt that ended so.
    #[must_use]
    pub fn after_attempt(mut self, end: &AttemptEnd, now: Timestamp) -> Self {
        self.updated = now.max(self.updated);
        match end {
            AttemptEnd::Delivered => {
                self.status = DeliveryStatus::Delivered;
                self.error.clear();
            }
            AttemptEnd::Retry { error, due } => {
                self.error.clone_from(error);
                self.due = *due;
            }
            AttemptEnd::Dead { error } => {
                self.status = DeliveryStatus::Dead;
                self.error.clone_from(error);
            }
        }
        self
    }

    /// Returns the delivery as it is when it is to be sent again from the beginning.
    #[must_use]
    pub fn repeated(self, now: Timestamp) -> Self {
        Self {
            status: DeliveryStatus::Pending,
            attempts: 0,
            due: now,
            error: String::new(),
            // Later than any attempt before, also within one millisecond.
            updated: now.max(self.updated.plus_ms(1)),
            ..self
        }
    }
}

/// What came of an attempt to deliver something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The receiver has confirmed it.
    Delivered,
    /// It failed for this reason, and is sent again at this time.
    Retry {
        /// Why it failed.
        error: String,
        /// When it is sent again.
        due: Timestamp,
    },
    /// It failed for this reason, and is not sent again.
    Dead {
        /// Why it failed.
        error: String,
    },
}

/// Selects deliveries of a tenant, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeliveryQuery {
    /// Tenant of the deliveries.
    pub tenant: String,
    /// Only the delivery with this id.
    pub id: Option<DeliveryId>,
    /// Only deliveries of this run.
    pub run: Option<RunId>,
    /// Only deliveries with one of these statuses; empty for any.
    pub statuses: Vec<DeliveryStatus>,
    /// Which page of the list to return.
    pub page: Page,
}
