//! How many requests a server gets at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of a server. Their number can only fall, and never below one.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    count: Arc<AtomicUsize>,
}

/// A slot in use. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Slot {
    /// `None` if the semaphore was closed, which nobody does.
    permit: Option<OwnedSemaphorePermit>,
    count: Arc<AtomicUsize>,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        let count = count.clamp(1, COUNT_MAX);
        Self {
            free: Arc::new(Semaphore::new(count)),
            count: Arc::new(AtomicUsize::new(count)),
        }
    }

    /// Waits for a free slot. Those who wait get it in order.
    pub(crate) async fn acquire(&self) -> Slot {
        Slot {
            permit: self.free.clone().acquire_owned().await.ok(),
            count: self.count.clone(),
        }
    }
}

impl Slot {
    /// Frees the slot and takes it out of use, unless it is the last one.
    pub(crate) fn give_up(self) {
        let fewer = |count: usize| (count > 1).then(|| count - 1);
        let order = Ordering::Relaxed;
        if self.count.fetch_update(order, order, fewer).is_ok()
            && let Some(permit) = self.permit
        {
            permit.forget();
        }
    }
}

/// More would be no limit.
const COUNT_MAX: usize = 1_024;
