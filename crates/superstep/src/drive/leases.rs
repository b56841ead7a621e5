//! Leases: how a process shows others that it still runs its threads.
//!
//! A claim sets the thread's lease in the same write, so a short run costs nothing more. While runs are in progress, one task
//! renews all leases of which a third has passed, in one call. The leases of runs that this process gave up, because their
//! futures were dropped or they were drained, are ended, so that nobody waits for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use superstep_core::__private::lock;
use superstep_core::checkpoint::CheckpointResult;
use superstep_core::{Epoch, ThreadId, Timestamp};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::retrying_checkpointer::RetryingCheckpointer;

/// The leases of one runtime.
pub(crate) struct Leases {
    length: Duration,
    store: RetryingCheckpointer,
    clock: Clock,
    held: Mutex<HeldLeases>,
}

#[derive(Default)]
struct HeldLeases {
    active: BTreeMap<ThreadId, ActiveLease>,
    given_up: Vec<(ThreadId, Epoch)>,
    /// The task that renews leases. It ends when there are none, after it has said so here.
    renewal: JoinSet<()>,
    is_renewing: bool,
    /// Tasks that end leases which were given up.
    endings: JoinSet<()>,
}

#[derive(Clone, Copy)]
struct ActiveLease {
    epoch: Epoch,
    until: Timestamp,
}

impl Leases {
    /// Creates the leases of a runtime. With a length of zero there are none.
    pub(crate) fn new(length: Duration, store: RetryingCheckpointer, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            length,
            store,
            clock,
            held: Mutex::default(),
        })
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Returns the end of a lease that begins now; `None` if there are no leases.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        let ms = u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX);
        (ms > 0).then(|| self.clock.now().plus_ms(ms))
    }

    /// Keeps a lease that a claim has set, until the guard is dropped.
    pub(crate) fn hold(
        self: &Arc<Self>,
        thread: &ThreadId,
        epoch: Epoch,
        until: Timestamp,
    ) -> LeaseGuard {
        let mut held = lock(&self.held);
        let lease = ActiveLease { epoch, until };
        held.active.insert(thread.clone(), lease);
        // The task may be gone although leases are held: the tokio runtime that it was on was shut down.
        while held.renewal.try_join_next().is_some() {}
        if !held.is_renewing || held.renewal.is_empty() {
            held.is_renewing = true;
            let interval = self.length / 3;
            held.renewal
                .spawn(renew_while_held(Arc::downgrade(self), interval));
        }
        LeaseGuard {
            leases: self.clone(),
            thread: thread.clone(),
            epoch,
            is_over: false,
        }
    }

    async fn renew(&self) -> CheckpointResult<()> {
        self.end_given_up().await?;
        let Some(until) = self.until() else {
            return Ok(());
        };
        let third = i64::try_from(self.length.as_millis() / 3).unwrap_or(i64::MAX);
        let due: Vec<(ThreadId, Epoch)> = {
            let held = lock(&self.held);
            let active = held.active.iter();
            let due = active.filter(|(_, lease)| until.0.saturating_sub(lease.until.0) >= third);
            due.map(|(thread, lease)| (thread.clone(), lease.epoch))
                .collect()
        };
        if due.is_empty() {
            return Ok(());
        }
        self.store.renew(&due, until).await?;
        let mut held = lock(&self.held);
        for (thread, epoch) in &due {
            let lease = held.active.get_mut(thread);
            if let Some(lease) = lease.filter(|lease| lease.epoch == *epoch) {
                lease.until = until;
            }
        }
        Ok(())
    }

    /// Ends the leases of runs that this process gave up.
    pub(crate) async fn end_given_up(&self) -> CheckpointResult<()> {
        let given_up = std::mem::take(&mut lock(&self.held).given_up);
        if given_up.is_empty() {
            return Ok(());
        }
        let ended = self.store.renew(&given_up, Timestamp(0)).await;
        if ended.is_err() {
            lock(&self.held).given_up.extend(given_up);
        }
        ended
    }

    pub(crate) async fn end_given_up_or_warn(&self) {
        if let Err(error) = self.end_given_up().await {
            tracing::warn!(%error, "leases of runs that stopped early were not ended; others recover the threads when they are over");
        }
    }

    /// Whether the renewal has nothing left to do. If so, the next lease starts it again.
    fn is_renewal_over(&self) -> bool {
        let mut held = lock(&self.held);
        held.is_renewing = !(held.active.is_empty() && held.given_up.is_empty());
        !held.is_renewing
    }
}

async fn renew_while_held(leases: Weak<Leases>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(leases) = leases.upgrade() else {
            return;
        };
        if let Err(error) = leases.renew().await {
            tracing::warn!(%error, "leases were not renewed; other processes may recover the threads of this one");
        }
        if leases.is_renewal_over() {
            return;
        }
    }
}

/// A lease that this process renews as long as this lives.
pub(crate) struct LeaseGuard {
    leases: Arc<Leases>,
    thread: ThreadId,
    epoch: Epoch,
    is_over: bool,
}

impl LeaseGuard {
    /// Lets go of the lease of a run that stopped: the store knows that nobody runs the thread.
    pub(crate) fn stopped(mut self) {
        self.is_over = true;
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut held = lock(&self.leases.held);
        // Another run of this process may have claimed the thread since.
        if (held.active.get(&self.thread)).is_some_and(|lease| lease.epoch == self.epoch) {
            held.active.remove(&self.thread);
        }
        if self.is_over {
            return;
        }
        held.given_up.push((self.thread.clone(), self.epoch));
        // Outside of a tokio runtime, the renewal or the next recovery ends the lease.
        if let Ok(tokio) = Handle::try_current() {
            while held.endings.try_join_next().is_some() {}
            let leases = self.leases.clone();
            let ending = async move { leases.end_given_up_or_warn().await };
            held.endings.spawn_on(ending, &tokio);
        }
    }
}
