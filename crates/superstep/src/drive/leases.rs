//! Leases: how a process shows others that it still runs its threads.
//!
//! A claim sets the thread's lease in the same write, so a short run costs nothing more. While runs are in progress, one task
//! renews all leases of which a third has passed, in one call. The leases of runs that this process gave up, because their
//! futures were dropped or they were drained, are ended, so that nobody waits for them.
//!
//! Which leases are due is measured by a clock that only goes forward. The wall clock, which others compare a lease with, may
//! be set back or stand still: a renewed lease is always another value, and that is what they look for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use superstep_core::__private::lock;
use superstep_core::checkpoint::CheckpointResult;
use superstep_core::{Epoch, ThreadId, Timestamp};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;

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
    /// By the numbers of their guards: runs that race for a thread hold one each, until the store says which of them won.
    active: BTreeMap<u64, ActiveLease>,
    guards: u64,
    given_up: Vec<(ThreadId, Epoch)>,
    /// The task that renews leases. It ends when there are none, after it has said so here.
    renewal: JoinSet<()>,
    is_renewing: bool,
    /// Tasks that end leases which were given up.
    endings: JoinSet<()>,
}

#[derive(Clone)]
struct ActiveLease {
    thread: ThreadId,
    epoch: Epoch,
    until: Timestamp,
    /// When `until` was chosen. What takes long to be stored is soon due again.
    since: Instant,
}

impl ActiveLease {
    fn owned(&self) -> (ThreadId, Epoch) {
        (self.thread.clone(), self.epoch)
    }
}

/// The end of a lease, and the moment at which it was chosen.
#[derive(Clone, Copy)]
pub(crate) struct LeaseEnd {
    pub(crate) until: Timestamp,
    since: Instant,
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
    pub(crate) fn starting_now(&self) -> Option<LeaseEnd> {
        let ms = u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX);
        (ms > 0).then(|| LeaseEnd {
            until: self.clock.now().plus_ms(ms),
            since: Instant::now(),
        })
    }

    /// Keeps a lease that a claim sets, until the guard is dropped.
    pub(crate) fn hold(
        self: &Arc<Self>,
        thread: &ThreadId,
        epoch: Epoch,
        end: LeaseEnd,
    ) -> LeaseGuard {
        let mut held = lock(&self.held);
        let LeaseEnd { until, since } = end;
        let lease = ActiveLease {
            thread: thread.clone(),
            epoch,
            until,
            since,
        };
        held.guards += 1;
        let number = held.guards;
        held.active.insert(number, lease);
        // The task may be gone although leases are held: the tokio runtime that it was on was shut down.
        while held.renewal.try_join_next().is_some() {}
        if !held.is_renewing || held.renewal.is_empty() {
            held.is_renewing = true;
            let interval = self.length / 6;
            held.renewal
                .spawn(renew_while_held(Arc::downgrade(self), interval));
        }
        LeaseGuard {
            leases: self.clone(),
            number,
            is_over: false,
        }
    }

    /// Renews what is due.
    async fn renew(&self) -> CheckpointResult<()> {
        let third = self.length / 3;
        let due: BTreeMap<u64, ActiveLease> = {
            let held = lock(&self.held);
            let active = held.active.iter();
            let due = active.filter(|(_, lease)| lease.since.elapsed() >= third);
            due.map(|(number, lease)| (*number, lease.clone()))
                .collect()
        };
        if due.is_empty() {
            return Ok(());
        }
        let mut owned: Vec<(ThreadId, Epoch)> = due.values().map(ActiveLease::owned).collect();
        owned.sort();
        owned.dedup();
        let stored = Mutex::new(None);
        // Chosen for each attempt: what was chosen before a store was out of reach may be over when it answers.
        let choose = || {
            let end = self.starting_now().map(|mut end| {
                if due.values().any(|lease| lease.until == end.until) {
                    end.until = end.until.plus_ms(1);
                }
                end
            });
            *lock(&stored) = end;
            end.map(|end| end.until).unwrap_or_default()
        };
        self.store.renew(&owned, choose).await?;
        let Some(LeaseEnd { until, since }) = *lock(&stored) else {
            return Ok(());
        };
        let mut held = lock(&self.held);
        for number in due.keys() {
            if let Some(lease) = held.active.get_mut(number) {
                (lease.until, lease.since) = (until, since);
            }
        }
        Ok(())
    }

    /// Ends the leases of runs that this process gave up.
    pub(crate) async fn end_given_up(&self) -> CheckpointResult<()> {
        let mut given_up = lock(&self.held).given_up.clone();
        if given_up.is_empty() {
            return Ok(());
        }
        given_up.sort();
        self.store.renew(&given_up, Timestamp::default).await?;
        // Removed only now: a caller that drops this future in the middle must not lose them. To end a lease twice does no harm.
        let mut held = lock(&self.held);
        held.given_up
            .retain(|given_up_since| given_up.binary_search(given_up_since).is_err());
        Ok(())
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
    let mut next = Instant::now() + interval;
    loop {
        tokio::time::sleep_until(next).await;
        // Not after the calls: if they take long, what they renewed is due soon.
        next = Instant::now() + interval;
        let Some(leases) = leases.upgrade() else {
            return;
        };
        if let Err(error) = leases.renew().await {
            tracing::warn!(%error, "leases were not renewed; other processes may recover the threads of this one");
        }
        leases.end_given_up_or_warn().await;
        if leases.is_renewal_over() {
            return;
        }
    }
}

/// A lease that this process renews as long as this lives.
pub(crate) struct LeaseGuard {
    leases: Arc<Leases>,
    number: u64,
    is_over: bool,
}

impl LeaseGuard {
    /// Lets go of the lease of a run that stopped, or whose claim was refused: the store knows that nobody runs the thread, or
    /// who does.
    pub(crate) fn stopped(mut self) {
        self.is_over = true;
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut held = lock(&self.leases.held);
        let lease = held.active.remove(&self.number);
        // Most runs stop, and then nothing else is left to do.
        let Some(owned) = lease.filter(|_| !self.is_over).map(|lease| lease.owned()) else {
            return;
        };
        if held.active.values().any(|other| other.owned() == owned) {
            return;
        }
        held.given_up.push(owned);
        // Outside of a tokio runtime, the renewal or the next recovery ends the lease.
        if let Ok(tokio) = Handle::try_current() {
            while held.endings.try_join_next().is_some() {}
            let leases = self.leases.clone();
            let ending = async move { leases.end_given_up_or_warn().await };
            held.endings.spawn_on(ending, &tokio);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use superstep_conformance::sample::Owner;
    use superstep_core::Checkpointer;
    use superstep_core::checkpoint::Memory;

    use super::*;

    const LENGTH: Duration = Duration::from_millis(120);

    async fn lease_of(store: &Memory, thread: &ThreadId) -> Option<Timestamp> {
        let glance = store.glance(thread, None).await.unwrap();
        glance.unwrap().lease
    }

    #[tokio::test]
    async fn a_run_that_lost_the_race_for_a_thread_does_not_end_the_lease_of_the_winner() {
        let store = Memory::new();
        let owner = Owner::started(&store, "t").await.unwrap();
        let (thread, epoch) = (owner.thread, owner.head.epoch);
        let retrying = RetryingCheckpointer {
            store: Arc::new(store.clone()),
            retry_deadline: Duration::ZERO,
        };
        let leases = Leases::new(LENGTH, retrying, Clock::default());
        let end = || leases.starting_now().unwrap();
        let winner = leases.hold(&thread, epoch, end());
        leases.hold(&thread, epoch.next(), end()).stopped();
        drop(leases.hold(&thread, epoch.next(), end()));
        // Even under the same epoch, as a caller that repeats a lost claim.
        drop(leases.hold(&thread, epoch, end()));
        tokio::time::sleep(LENGTH * 3).await;
        let renewed = lease_of(&store, &thread).await.unwrap();
        assert!(renewed > leases.clock.now(), "{renewed:?}");

        drop(winner);
        while lease_of(&store, &thread).await != Some(Timestamp(0)) {
            tokio::task::yield_now().await;
        }
    }
}
